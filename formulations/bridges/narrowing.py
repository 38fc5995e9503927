"""From a constrained ranking to the narrowest problem class that its structure allows, with the way back: a matching, a
flow, a sequence of groups, a linear or integer program (widened by violation columns for soft rows).

From a point of a program the way back is to a vertex of the face of the cells with positive mass (crossover)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, memoized
from formulations.bridges.widening import INTEGRAL, THRESHOLDS, Back, NotApplicable, Point, check_filled
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.duals import integral_point
from formulations.constraints.rows import SetRows
from formulations.constraints.structure import BlockCollapse, LaminarNetwork, PrefixNetwork, candidates, falls_in_groups
from formulations.errors import FractionalSolutionError, SolverError
from formulations.integrality.evidence import Proof
from formulations.integrality.proofs import proof_of
from formulations.problems.assignment import Assignment, order_of_cells
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.program import Program
from formulations.problems.ranking import RankTwoAssignment


def to_group_sequence(problem: ConstrainedRanking) -> tuple[GroupSequence, Back]:
    """Integral for profits of rank one within each group, although the rows are not totally unimodular."""
    network = PrefixNetwork.beyond_flows(problem.admissible.compiled)
    if isinstance(network, str):
        raise NotApplicable(f"it is not taken as limits on prefixes over disjoint groups: {network}")
    if not falls_in_groups(problem.profit, network.rows.group):
        raise NotApplicable("its rows limit prefixes over disjoint groups, but its profits are not of rank one")
    sequences, ranked, chosen = network.sequences(problem.profit)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        group = np.asarray(x, dtype=np.int64)
        if y is None:
            y = sequences.recover_dual(group)
        assert y is not None
        passing = y.reshape(network.rows.groups, problem.positions)
        return network.order(chosen, group), network.prices(sequences, ranked, chosen, group, passing)

    return sequences, back


def why_not_by_groups(problem: ConstrainedRanking) -> str:
    """Why the relaxation of limits on prefixes is only a bound here; "" for other sets, or if it is exact."""
    network = PrefixNetwork.beyond_flows(problem.admissible.compiled)
    if isinstance(network, str) or falls_in_groups(problem.profit, network.rows.group):
        return ""
    return (
        "limits on prefixes, and profits that are not of rank one inside the groups (scores and gains, and position "
        "weights that are no multiple of the discount): the linear program is a bound"
    )


def group_sequence_to_flow(problem: GroupSequence) -> tuple[MinCostFlow, Back]:
    """A unit from each position to its group."""
    flow = problem.flow()
    at, group = np.nonzero(~problem.banned.T)
    k, groups = problem.positions, problem.groups

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        mass = np.asarray(x[: at.size], dtype=np.float64)
        if np.abs(mass - np.round(mass)).max(initial=0.0) > 1e-5:
            raise SolverError("the solver returned a fractional flow; use another solver")
        chosen = np.zeros(k, dtype=np.int64)
        chosen[at[mass > 0.5]] = group[mass > 0.5]
        if y is None:
            return chosen, None
        height = np.hstack([y[k:-1].reshape(groups, k), np.full((groups, 1), y[-1])])
        return chosen, np.diff(height, axis=1).ravel()

    return flow, back


MAX_ENTRIES = 500
"""Largest number of entries of a set's rows for which a proof is searched, once, to explain an integral relaxation."""


@memoized
def quick_proof(stated: SetRows) -> Proof | None:
    """A quick proof that the rows are totally unimodular and their limits integral, if there is one."""
    return proof_of(stated.matrix) if stated.integral_rows.all() else None


def to_rank_two(problem: ConstrainedRanking) -> tuple[RankTwoAssignment, Back]:
    """A set of all rankings: the original problem of rank two."""
    if problem.ranked is None:
        raise NotApplicable("its profit is not stated as one of rank two")
    if problem.admissible.constraints:
        raise NotApplicable("it has constraints")
    return problem.ranked, lambda x, y: (x, y)


def to_assignment(problem: ConstrainedRanking) -> tuple[Assignment, Back]:
    """Each cell is in its position's row and one of at most 1: a matching of positions and rows [ORM, Corollary 7]."""
    collapse = BlockCollapse.from_rows(problem.admissible.compiled)
    if collapse is None:
        raise NotApplicable("a document has several rows, or one that is not 'at most 1': no collapse")
    narrow, best = collapse.assignment(problem.profit)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        # The duals of the blocks are duals of the rows.
        return collapse.order(best, x), narrow.recover_dual(x) if y is None else y

    return narrow, back


def to_flow(problem: ConstrainedRanking) -> tuple[MinCostFlow, Back]:
    """Two laminar families of rows: a flow from positions through cells to documents and groups [Edmonds 1970]."""
    network = LaminarNetwork.from_rows(problem.admissible.compiled)
    if network is None:
        raise NotApplicable("its rows are not two laminar families with integer limits: no flow")
    needed = candidates(problem.admissible.compiled, problem.profit)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        order = order_on_face(problem, _mass_of_cells(x, needed, problem.cells.size))
        return order, None if y is None else network.prices(y)

    return network.flow(problem.profit, needed), back


def _mass_of_cells(x: NDArray[Any], needed: Bools | None, cells: int) -> Floats:
    """The mass of each allowed cell; 0 if it was not a candidate."""
    if needed is None:
        return np.asarray(x[:cells], dtype=np.float64)
    mass = np.zeros(cells)
    mass[needed] = x[: int(needed.sum())]
    return mass


def to_linear_program(problem: ConstrainedRanking, integer: bool = False) -> tuple[LinearProgram, Back]:
    """The linear program, with integral vertices if the matrix is totally unimodular; or the integer program, with the
    dual of the relaxation."""
    stated, soft = problem.compiled, isinstance(problem, PenalizedRanking)
    needed = candidates(stated, problem.worth)
    program = problem.cell_program(integer, needed)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        prices = None if y is None else -y[stated.shape[0] :]
        if soft:
            return order_of_widened(problem, program, stated.cell if needed is None else stated.cell[needed], x), prices
        if integer and np.abs(x - np.round(x)).max(initial=0.0) > 1e-5:
            raise FractionalSolutionError("the integer solver returned a fractional point; use another solver")
        mass = _mass_of_cells(np.round(x) if integer else x, needed, stated.cell.size)
        return order_on_face(problem, mass), prices

    return LinearProgram.from_program(program), back


def why_relaxed(problem: ConstrainedRanking) -> str:
    """Why the linear program of a set has an integral optimum."""
    stated = problem.admissible.compiled
    prefixes = why_not_by_groups(problem)
    if prefixes:
        return f"{prefixes}, and this vertex of it is integral"
    if stated.matrix.nnz > MAX_ENTRIES:
        return "this vertex of the relaxation is integral (verify_integrality tests all vertices)"
    proof = quick_proof(stated)
    if proof is None:
        return "the rows are not proved totally unimodular, but this vertex of the relaxation is integral"
    return f"the rows are totally unimodular ({proof.kind})"


def why_integral(problem: ConstrainedRanking) -> str:
    """Why a set is solved by an integer search."""
    stated = problem.admissible.compiled
    prefixes = why_not_by_groups(problem)
    if prefixes:
        return f"{prefixes}, solved by integer search"
    if stated.matrix.nnz > MAX_ENTRIES or quick_proof(stated) is None:
        return "the rows are not proved totally unimodular: integer search"
    return "this solver searches over integers"


def to_constrained(problem: PenalizedRanking) -> tuple[ConstrainedRanking, Back]:
    """Where only forbidden and fixed cells are soft, the profit of these cells is reduced by the penalty."""
    if any(one.constraint.rows for one in problem.admissible.soft_constraints):
        raise NotApplicable("some rows are soft (penalized), so it is neither an assignment nor a flow over its cells")
    return ConstrainedRanking(problem.worth, problem.admissible.hard), lambda x, y: (x, y)


def why_widened(problem: PenalizedRanking) -> str:
    """Why the widened program of a set with soft rows has an integral optimum."""
    stated = problem.compiled
    proof = quick_proof(stated) if stated.matrix.nnz <= MAX_ENTRIES else None
    if proof is None:
        return "this vertex of the widened program is integral (verify_integrality tests all vertices)"
    return f"the rows, widened by what they may be broken by, are totally unimodular ({proof.kind})"


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
    check_filled(row, mass, k)
    aim = float(problem.profit.ravel()[stated.cell] @ mass) - LOST * k * problem.scale
    best = _vertex_of_face if stated.group is None else _best_assignment
    found: list[Ints] = []
    fractional: FractionalSolutionError | None = None
    for threshold in THRESHOLDS:
        support = mass > threshold
        try:
            vertex = best(problem, support)
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
    """The vertex where the simplex method ends on the face, or an integral one as good; None for an empty face."""
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
    check_filled(cell // n, mass, k)
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
