"""Widening: restatement of a problem in a more general class, with the way back. It always applies.

Rounding of float costs to integers, for solvers that accept only these, is done here alone. Costs are shifted to begin
at zero if every solution uses the same number of them, multiplied by a power of two and rounded. Each is off by at most
half a unit, so the solution found is optimal to `left` = n / 2^b in the original costs, with n costs per solution.
Doubles are integral multiples of a power of two, so integers of any length need no rounding.

Interior-point and first-order solvers return points inside the optimal face if there are ties; the way back is from
such a point of an integral polytope to a vertex (crossover). By Birkhoff and von Neumann the support of a (nearly)
doubly stochastic point contains an assignment; the best one on it is a vertex of the face, and optimal if the point
was. For flows the face is defined by the arcs at a limit: the simplex method ends at one of its vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.errors import SolverError
from formulations.problems.assignment import Assignment, order_of_cells
from formulations.problems.lattice_path import MOST_STATES, LatticePath
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.program import Block
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP

Point = tuple[NDArray[Any], Floats | None]  # A primal and a dual

Back = Callable[[NDArray[Any], Floats | None], Point]
"""The way back of a bridge: from a primal and a dual of the restated problem to those of the original one."""


class NotApplicable(Exception):
    """The problem lacks the structure that a narrowing bridge needs."""


THRESHOLDS = (1e-3, 1e-6, 0.0)  # thresholds below which mass counts as zero, in order
INTEGRAL = 1e-6  # tolerance of integrality within which entries are rounded


def check_filled(positions: Ints, mass: Floats, k: int) -> None:
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
    check_filled(positions, mass, k)
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


def rank_two_to_assignment(problem: RankTwoAssignment) -> tuple[Assignment, Back]:
    """The matrix of profits, written out."""
    return problem.assignment(), lambda x, y: (x, y)


def assignment_to_flow(problem: Assignment) -> tuple[MinCostFlow, Back]:
    """Each position supplies one unit; it flows through a document, which passes one unit at most, to the sink."""
    k, n = problem.positions, problem.documents
    positions, documents = problem.cells
    sink = k + n
    count = positions.size
    flow = MinCostFlow(
        tail=np.concatenate([positions, k + np.arange(n)]),
        head=np.concatenate([k + documents, np.full(n, sink)]),
        capacity=np.ones(count + n, dtype=np.int64),
        cost=np.concatenate([-problem.gains[positions, documents], np.zeros(n)]),
        supply=np.concatenate([np.ones(k, dtype=np.int64), np.zeros(n, dtype=np.int64), [-k]]),
        arcs=(*problem.cell_names, Block("document", (n,))),
        nodes=(Block("position", (k,)), Block("document", (n,)), Block("sink", ())),
    )

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        prices = None if y is None else np.asarray(y[k:sink] - y[sink])
        return order_on_support(problem, positions, documents, x[:count]), prices

    return flow, back


def assignment_to_linear_program(problem: Assignment) -> tuple[LinearProgram, Back]:
    """One variable per allowed cell; positions are used once, documents at most once."""

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        sign = -1.0 if problem.is_maximization else 1.0
        prices = None if y is None else sign * y[problem.positions :]
        return order_on_support(problem, *problem.cells, x), prices

    return LinearProgram.from_program(problem.program), back


def flow_to_linear_program(problem: MinCostFlow) -> tuple[LinearProgram, Back]:
    """One variable per arc, one row per node."""
    return LinearProgram.from_program(problem.program), lambda x, y: (flow_on_support(problem, x), y)


def to_integer_program(problem: Assignment | MinCostFlow) -> tuple[LinearProgram, Back]:
    """The same program with all variables integer, for solvers that accept only these."""
    if isinstance(problem, Assignment):
        program, back = assignment_to_linear_program(problem)
    else:
        program, back = flow_to_linear_program(problem)
    return replace(program, integer=np.ones(program.objective.size, dtype=bool)), back


def margin_dual_to_quadratic_program(problem: GroupedSimplexQP) -> tuple[QuadraticProgram, Back]:
    """In β = α / unit; the step, where it is written out, is behind β."""
    unit = problem.unit
    return QuadraticProgram.from_program(problem.program), lambda x, y: (x[: unit.size] * unit, None)


def relevance_to_lattice(problem: RelevanceRanking) -> tuple[LatticePath, Back]:
    """Every chain in descending order of score; the chain at each position remains free."""
    if problem.chains.states > MOST_STATES:
        raise NotApplicable(f"its lattice has {problem.chains.states} states, and up to {MOST_STATES} are written out")
    return problem.lattice(), lambda x, y: (problem.chains.order(np.asarray(x, dtype=np.int64)), y)


def lattice_to_flow(problem: LatticePath) -> tuple[MinCostFlow, Back]:
    """One unit from the first state to the last."""
    flow = problem.flow()
    chain = np.nonzero(problem.levels.there)[0]

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        path = _path(flow, chain, np.asarray(x, dtype=np.float64))
        if np.abs(x - np.round(x)).max(initial=0.0) > 1e-5:
            raise SolverError("the solver returned a fractional flow; use another solver")
        # A longest path's potentials rise where a cheapest path's fall.
        return path, None if y is None else -(y - y[0])

    return flow, back


def _path(flow: MinCostFlow, chain: Ints, x: Floats) -> Ints:
    """The chain of each edge of the path: at every state the arc with the largest flow."""
    by_tail = np.lexsort((-x, flow.tail))
    first = np.searchsorted(flow.tail[by_tail], np.arange(flow.supply.size))
    state, path = 0, []
    while state != flow.supply.size - 1:
        arc = int(by_tail[first[state]])
        path.append(int(chain[arc]))
        state = int(flow.head[arc])
    return np.array(path, dtype=np.int64)


@dataclass(frozen=True)
class IntegerCosts:
    """`values` = (cost - shift) · 2^exponent, rounded; an optimum for them is optimal to `left` for the costs."""

    values: Ints | list[int]
    exponent: int
    left: float

    @property
    def details(self) -> dict[str, float]:
        return {"cost_exponent": self.exponent, "rounding_bound": self.left}


def rounded_costs(cost: Floats, terms: int, nodes: int, *, shift: bool) -> IntegerCosts:
    """Costs in 64-bit integers. terms: how many costs make up a solution, counted with their flow. nodes: solvers
    multiply costs by it. shift: whether every solution uses the same number of costs, so that a constant drops out."""
    low = float(cost.min(initial=np.inf)) if shift and cost.size else 0.0
    moved = cost - low
    spread = float(np.abs(moved).max(initial=0.0))
    if spread == 0.0:
        return IntegerCosts(np.zeros(cost.size, dtype=np.int64), 0, 0.0)
    terms = max(terms, 1)
    exponent = floor(60 - log2(max(nodes, 1)) - log2(max(terms, nodes, 1)) - log2(spread))
    values = np.rint(np.ldexp(moved, exponent)).astype(np.int64)
    return IntegerCosts(values, exponent, float(np.ldexp(float(terms), -exponent)))
