"""From a constrained ranking to the narrowest problem class that its structure allows, with the way back: a matching, a
flow, a sequence of groups, a linear or integer program (widened by violation columns for soft rows)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, memoized
from formulations.bridges.crossover import Back, NotApplicable, Point, order_of_widened, order_on_face
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.rows import SetRows, widened
from formulations.constraints.structure import BlockCollapse, LaminarNetwork, PrefixNetwork, candidates, falls_in_groups
from formulations.errors import FractionalSolutionError, SolverError
from formulations.integrality.evidence import Proof
from formulations.integrality.proofs import proof_of
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.ranking import RankTwoAssignment


def to_group_sequence(problem: ConstrainedRanking) -> tuple[GroupSequence, Back]:
    """Integral for profits of rank one within each group, although the rows are not totally unimodular."""
    network = PrefixNetwork.beyond_flows(problem.admissible.compiled)
    if isinstance(network, str):
        raise NotApplicable(f"it is not taken as limits on prefixes over disjoint groups: {network}")
    profit, k, n = problem.profit, problem.positions, problem.documents
    if not falls_in_groups(profit, network.rows.group):
        raise NotApplicable("its rows limit prefixes over disjoint groups, but its profits are not of rank one")
    chosen = network.chosen(profit[0] - profit[-1] if k == n else profit[0])
    ranked = profit[:, chosen]
    sequences = network.ranking(ranked)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        group = np.asarray(x, dtype=np.int64)
        if y is None:
            y = sequences.recover_dual(group)
        assert y is not None
        passing = y.reshape(network.rows.groups, k)
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
    """Each cell is in one row and its position's, of at most 1: a matching of positions and rows with the best cell
    of each pair [ORM, Corollary 7]."""
    collapse = BlockCollapse.from_rows(problem.admissible.compiled)
    if collapse is None:
        raise NotApplicable("a document has several rows, or one that is not 'at most 1': no collapse")
    narrow, best = collapse.assignment(problem.profit)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        # The duals of the blocks are duals of the rows.
        return collapse.order(best, x), narrow.recover_dual(x) if y is None else y

    return narrow, back


def to_flow(problem: ConstrainedRanking) -> tuple[MinCostFlow, Back]:
    """The rows are two laminar families with integer limits: a flow from positions through cells to documents and
    groups [Edmonds 1970]."""
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
    program = (widened if soft else SetRows.program)(stated, problem.worth, integer, needed)

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
