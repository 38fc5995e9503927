"""Crossover: from a point of an integral polytope to a vertex of it.

Interior-point and first-order solvers return points inside the optimal face if there are ties. By Birkhoff and von
Neumann the support of a (nearly) doubly stochastic point contains an assignment; the best one on it is a vertex of the
face, and optimal if the point was. For flows the face is defined by the arcs at a limit, for ranking sets by the cells
with positive mass: the simplex method ends at one of its vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.duals import integral_point
from formulations.constraints.structure import BlockCollapse
from formulations.errors import FractionalSolutionError, SolverError
from formulations.problems.assignment import Assignment, order_of_cells
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.program import Program

Point = tuple[NDArray[Any], Floats | None]  # A primal and a dual

Back = Callable[[NDArray[Any], Floats | None], Point]
"""The way back of a bridge: from a primal and a dual of the restated problem to those of the original one."""


class NotApplicable(Exception):
    """The problem lacks the structure that a narrowing bridge needs."""


THRESHOLDS = (1e-3, 1e-6, 0.0)  # thresholds below which mass counts as zero, in order
INTEGRAL = 1e-6  # tolerance of integrality within which entries are rounded


def _check_filled(positions: Ints, mass: Floats, k: int) -> None:
    """Raise `SolverError` if a position does not hold about one document."""
    held = np.bincount(positions, mass, k)
    if not np.abs(held - 1.0).max() <= 0.05:
        raise SolverError(f"a position holds {held[np.abs(held - 1.0).argmax()]:.3g} documents where it should hold 1")


def order_on_support(problem: Assignment, positions: Ints, documents: Ints, mass: Floats) -> Ints:
    """The document at each position of the best assignment within the cells of positive mass (one entry per allowed
    cell). Mass below a threshold counts as zero; the threshold falls until the support contains an assignment. Raises
    `SolverError` for a point farther from the polytope than rounding errors."""
    from scipy.optimize import linear_sum_assignment

    k, n = problem.positions, problem.documents
    heavy = mass > 0.5
    if np.abs(mass - heavy).max(initial=0.0) < INTEGRAL and np.unique(documents[heavy]).size == k == heavy.sum():
        return order_of_cells((positions * n + documents)[heavy], k, n)
    _check_filled(positions, mass, k)
    for threshold in THRESHOLDS:
        support = mass > threshold
        profit = np.full((k, n), -np.inf)
        profit[positions[support], documents[support]] = problem.gains[positions[support], documents[support]]
        try:
            _, order = linear_sum_assignment(profit, maximize=True)
        except ValueError:  # no assignment on this support
            continue
        return np.asarray(order, dtype=np.int64)
    raise SolverError("the cells that hold a share of a document contain no assignment")


def flow_on_support(problem: MinCostFlow, flow: Floats) -> Floats:
    """A cheapest integral flow that keeps the arcs at a limit where `flow` has them. A flow within 1e-6 of integrality
    is rounded. Else a dual simplex method ends at an integral vertex; arcs count as at a limit within a threshold that
    falls until such a flow exists. If none exists, the flow is returned unchanged for verification."""
    from scipy.optimize import linprog

    rounded = np.round(flow)
    if np.abs(flow - rounded).max(initial=0.0) < INTEGRAL and problem.violation(rounded) == 0.0:
        return rounded
    balance = problem.program.matrix
    for threshold in THRESHOLDS:
        low = np.where(flow > problem.capacity - threshold, problem.capacity, 0)
        high = np.where(flow < threshold, 0, problem.capacity)
        limits = np.column_stack([low, np.maximum(low, high)])
        found = linprog(problem.cost, A_eq=balance, b_eq=problem.supply, bounds=limits, method="highs-ds")
        if found.status == 0:
            return np.asarray(np.round(found.x))
    return flow


LOST = 1e-7  # tolerated loss of value against the point, per position and relative to the largest profit


def order_on_face(problem: ConstrainedRanking, mass: Floats) -> Ints:
    """The best ranking among the cells of positive mass of a point of the linear program (one entry per allowed cell):
    an assignment if the set collapses, else a vertex of the face. The threshold for zero mass falls until the face
    contains a ranking as good as the point. Raises `FractionalSolutionError` if the best vertex is fractional, and
    `SolverError` for a point farther from the polytope than rounding errors."""
    stated = problem.admissible.compiled
    k, n = stated.shape
    row = stated.cell // n
    heavy = mass > 0.5
    if np.abs(mass - heavy).max(initial=0.0) < INTEGRAL and np.array_equal(np.sort(row[heavy]), np.arange(k)):
        return order_of_cells(stated.cell[heavy], k, n)
    _check_filled(row, mass, k)
    aim = float(problem.profit.ravel()[stated.cell] @ mass) - LOST * k * problem.scale
    found: list[Ints] = []
    fractional: FractionalSolutionError | None = None
    for threshold in THRESHOLDS:
        support = mass > threshold
        try:
            vertex = (
                _best_assignment(problem, support) if stated.group is not None else _vertex_of_face(problem, support)
            )
        except FractionalSolutionError as error:
            fractional = error
            continue
        found += [] if vertex is None else [vertex]
        if found and problem.value(found[-1]) >= aim:
            return found[-1]
    if fractional is not None:
        raise fractional
    if not found:
        raise SolverError("the cells that hold a share of a document contain no point of the set")
    return max(found, key=problem.value)


def _best_assignment(problem: ConstrainedRanking, support: Bools) -> Ints | None:
    """The best assignment of positions to rows by cells of the support; None where there is none."""
    from scipy.optimize import linear_sum_assignment

    collapse = BlockCollapse.from_rows(problem.admissible.compiled)
    assert collapse is not None
    lost = 4.0 * (problem.positions + 1) * max(problem.scale, 1.0)
    masked = np.full(problem.profit.size, -lost)
    cell = problem.cells[support]
    masked[cell] = problem.profit.ravel()[cell]
    narrow, best = collapse.assignment(masked.reshape(problem.profit.shape))
    profit = np.where(narrow.masked_profit() > -lost, narrow.profit, -np.inf)
    try:
        _, rows = linear_sum_assignment(profit, maximize=True)
    except ValueError:  # no assignment on this support
        return None
    return collapse.order(best, rows)


def _vertex_of_face(problem: ConstrainedRanking, support: Bools) -> Ints | None:
    """The vertex where the simplex method ends on the face of the cells with mass, or an integral one of equal value if
    it is fractional; None for an empty face."""
    stated = problem.admissible.compiled
    cell = stated.cell[support]
    profit = problem.profit.ravel()[cell]
    rows = stated.matrix[:, np.flatnonzero(support)], stated.lower, stated.upper
    cost, limits = -profit / max(problem.scale, 1e-300), (0.0, 1.0)
    found = integral_point(cost, rows, limits, np.zeros(cell.size))
    if found.x is None:
        return None
    worth = float(profit @ found.x)
    if np.abs(found.x - np.round(found.x)).max() > INTEGRAL:  # a face may have integral and fractional vertices
        found = integral_point(cost, rows, limits, np.ones(cell.size))
    if found.x is None or float(profit @ np.round(found.x)) < worth - 1e-9 * max(problem.scale, abs(worth)):
        raise FractionalSolutionError(
            f"the best vertex of the relaxation is fractional (value {worth:.9g}): the set's rows are not "
            "totally unimodular; use an integer solver, 'highs' or 'cp_sat'"
        )
    return order_of_cells(cell[np.round(found.x) == 1.0], *problem.profit.shape)


def order_of_widened(problem: ConstrainedRanking, program: Program, cell: Ints, x: Floats) -> Ints:
    """The ranking at a point of a widened program over these cells. For a fractional point, the best ranking of its
    cells if it has the same value (a face may have integral and fractional vertices), else `FractionalSolutionError`.
    """
    k, n = problem.positions, problem.documents
    mass = x[: cell.size]
    _check_filled(cell // n, mass, k)
    worth = float(program.objective @ x)
    if np.abs(mass - np.round(mass)).max() < INTEGRAL:
        order = order_of_cells(cell[mass > 0.5], k, n)
        # Fractions of 1e-9 may avoid a penalty of 1e9.
        if program.integer is not None or problem.value(order) >= worth - 1e5 * problem.rounding_at(order):
            return order
    used = np.concatenate([mass > INTEGRAL, np.ones(x.size - cell.size, dtype=bool)])
    integral = np.arange(x.size) < cell.size
    rows = program.matrix[:, np.flatnonzero(used)], program.row_lower, program.row_upper
    limits = program.lower[used], program.upper[used]
    found = integral_point(-program.objective[used] / max(problem.scale, 1e-300), rows, limits, integral[used])
    chosen = cell[used[: cell.size]]
    if found.x is not None:
        order = order_of_cells(chosen[found.x[: chosen.size] > 0.5], k, n)
        if problem.value(order) >= worth - 1e5 * problem.rounding_at(order):
            return order
    raise FractionalSolutionError(
        f"the best vertex of the relaxation is fractional (value {worth:.9g}): the rows, widened, are not totally "
        "unimodular; use an integer solver, 'highs' or 'cp_sat'"
    )
