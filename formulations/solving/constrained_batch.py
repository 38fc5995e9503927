"""Batches of constrained rankings: collapsed sets in one compiled pass; limits on prefixes with profits of rank one
without forming the profits; others by branch and bound, and the rest one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.argmax.diverse import diverse_argmax
from formulations.argmax.group_limits import prefix_argmax
from formulations.arrays import Floats, Ints
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.structure import PrefixNetwork
from formulations.display import CompactReprMixin
from formulations.problems.problem import EPSILON
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.solver import Solver
from formulations.solving.branch_and_bound import best_of_groups
from formulations.solving.solve import solve


@dataclass(frozen=True, eq=False)
class SetBatchSolution(CompactReprMixin):
    """order: the document (counted within its query) at each position; value and proved bound, one per query, without
    directed rounding; algorithm: the method."""

    order: Ints
    value: Floats
    bound: Floats
    algorithm: NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class SetBatch(CompactReprMixin):
    """Query q: max over rankings π in sets[q] of Σ_i c[i] scores[π_i] - discount[i] gain[π_i], c the position weights.

    `scores` and `gain` have one entry per document, rows offsets[q] : offsets[q + 1]; `discount` and `position_weights`
    one per position, position_offsets[q : q + 2], as many as the set has. Penalties of soft constraints are subtracted,
    times charge[q] (1 without `charge`).
    """

    sets: Sequence[RankingSet]
    scores: Floats
    gain: Floats
    discount: Floats
    position_weights: Floats
    offsets: Ints
    position_offsets: Ints
    charge: Floats | None = None

    def __len__(self) -> int:
        return len(self.sets)

    def spots(self, query: int) -> slice:
        """The rows of one query in `discount`, `position_weights` and the orders of a solution."""
        return slice(int(self.position_offsets[query]), int(self.position_offsets[query + 1]))

    def data(self, query: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Scores, gain, discount and position weights of one query."""
        rows = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        spots = self.spots(query)
        return self.scores[rows], self.gain[rows], self.discount[spots], self.position_weights[spots]

    def __getitem__(self, query: int) -> ConstrainedRanking:
        """The problem of one query."""
        data = self.data(query)
        admissible = self.sets[query]
        scores, gain, discount, weights = data
        profit = np.outer(weights, scores) - np.outer(discount, gain)
        if admissible.soft_constraints:
            return PenalizedRanking(
                profit, admissible, charge=1.0 if self.charge is None else float(self.charge[query])
            )
        ranked = None if admissible.constraints else RankTwoAssignment(*data)
        return ConstrainedRanking(profit, admissible, ranked)

    def some(self, queries: Ints) -> SetBatch:
        """The batch of these queries, in this order."""
        rows, offsets = _gather(self.offsets, queries)
        spots, position_offsets = _gather(self.position_offsets, queries)
        sets, charge = [self.sets[q] for q in queries.tolist()], None if self.charge is None else self.charge[queries]
        documents, weights = (self.scores[rows], self.gain[rows]), (self.discount[spots], self.position_weights[spots])
        return SetBatch(sets, *documents, *weights, offsets, position_offsets, charge)


def solve_sets(batch: SetBatch, solver: Solver | str = "auto") -> SetBatchSolution:
    """Solve every query. "auto" and "exact" solve collapsed sets, such as Π(B, k), in one compiled pass; limits on
    prefixes by groups alone if the profit has rank one; and others by `best_of_groups` if that proves its answer. Every
    other solver gets query by query. Raises what `solve` raises."""
    count, together = len(batch), list[int]()
    order, value, bound = np.empty(batch.position_weights.size, dtype=np.int64), np.empty(count), np.empty(count)
    way = np.empty(count, dtype=object)
    special = isinstance(solver, str) and solver in ("auto", "exact")
    if special:
        hard = [q for q in range(count) if not batch.sets[q].soft_constraints]
        together = [q for q in hard if batch.sets[q].compiled.blocks_of is not None]
        _solve_collapsed(batch, together, order, value, bound)
        way[together] = "collapsed"
    for q in sorted(set(range(count)) - set(together)):
        found = (_solve_prefix_groups(batch, q) or _solve_by_branching(batch, q)) if special else None
        if found is None:
            solution = solve(batch[q], solver, directed_rounding=False)
            found = solution.order, solution.value, max(solution.bound, solution.value), solution.solver
        order[batch.spots(q)], value[q], bound[q], way[q] = found
    return SetBatchSolution(order, value, bound, way)


Found: TypeAlias = tuple[Ints, float, float, str]  # order, value, bound and algorithm of one query


def _solve_collapsed(batch: SetBatch, queries: list[int], order: Ints, value: Floats, bound: Floats) -> None:
    """Solve the queries whose sets are a matching of positions and blocks of documents."""
    if not queries:
        return
    part = batch.some(np.array(queries))
    blocks = np.concatenate([np.asarray(admissible.compiled.blocks_of) for admissible in part.sets])
    few = np.maximum.reduceat(blocks, part.offsets[:-1]) + 1 < np.diff(part.position_offsets)
    for q in np.flatnonzero(few).tolist():  # the pass would search for a free block forever
        part.sets[q].check_nonempty()
    found, best, proven = np.empty(part.position_weights.size, dtype=np.int64), np.empty(len(part)), np.empty(len(part))
    documents, weights = (part.scores, part.gain, blocks, part.offsets), (part.discount, part.position_weights)
    diverse_argmax(*documents, *weights, part.position_offsets, found, best, proven)
    tallest = [np.maximum.reduceat(np.abs(height), part.offsets[:-1]) for height in (part.scores, part.gain)]
    starts, k = part.position_offsets[:-1], np.diff(part.position_offsets)
    weight = [np.add.reduceat(np.abs(weights), starts) for weights in (part.position_weights, part.discount)]
    rounding = 4.0 * EPSILON * (2.0 + k) * (weight[0] * tallest[0] + weight[1] * tallest[1])
    spots, _ = _gather(batch.position_offsets, np.array(queries))
    order[spots], value[queries], bound[queries] = found, best, np.maximum(proven, best) + rounding


def _solve_prefix_groups(batch: SetBatch, query: int) -> Found | None:
    """Solve a query of limits on prefixes with profits of rank one; None for others."""
    if batch.sets[query].soft_constraints:
        return None
    network = PrefixNetwork.beyond_flows(batch.sets[query].compiled)
    if isinstance(network, str):
        return None
    scores, gain, discount, position_weights = batch.data(query)
    factors = of_rank_one(scores, gain, discount, position_weights)
    if factors is None:
        return None
    batch.sets[query].check_nonempty()
    weights, heights = factors
    chosen = network.chosen(heights)
    problem = network.ranking(np.outer(weights, heights[chosen]))
    group, passing = prefix_argmax(problem)
    assigned = network.order(chosen, group)
    value = float(position_weights @ scores[assigned] - discount @ gain[assigned])
    # What all documents earn at the last position, where all are ranked, is no choice and is in no worth.
    fixed = weights[-1] * heights.sum() if position_weights.size == scores.size else 0.0
    size = np.abs(position_weights).sum() * np.abs(scores).max() + np.abs(discount).sum() * np.abs(gain).max()
    proven = problem.bound(passing.ravel()) + fixed + 8.0 * EPSILON * (2.0 + position_weights.size) * size
    return assigned, value, max(float(proven), value), "prefix groups"


def _solve_by_branching(batch: SetBatch, query: int) -> Found | None:
    """Solve a query by branch and bound; None if it is left open."""
    admissible = batch.sets[query]
    if not admissible.soft_constraints:
        return best_of_groups(admissible.compiled, *batch.data(query))
    admissible.check_nonempty()
    charge = 1.0 if batch.charge is None else float(batch.charge[query])
    costs = admissible.cell_penalties if admissible.cell_penalties.any() else None
    return best_of_groups(admissible.compiled_with_soft, *batch.data(query), charge, costs)


def of_rank_one(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats
) -> tuple[Floats, Floats] | None:
    """Nonincreasing nonnegative weights by position and values by document whose products are the profits c[i]
    scores[j] - discount[i] gain[j], up to rounding; None if there are none."""
    if not scores.any() or not position_weights.any():
        weights, heights = discount, -gain
    elif not gain.any() or not discount.any():
        weights, heights = position_weights, scores
    else:
        largest = int(np.abs(position_weights).argmax())
        factor = discount[largest] / position_weights[largest]
        if (np.abs(discount - factor * position_weights) > 4.0 * EPSILON * np.abs(discount)).any():
            return None
        weights, heights = position_weights, scores - factor * gain
    falls = (np.diff(weights) <= 0.0).all() and (weights[-1] >= 0.0 or weights.size == heights.size)
    return (weights, heights) if falls else None


def _gather(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The entries of the chosen parts, concatenated, and their new offsets."""
    sizes = np.diff(offsets)[chosen]
    fresh = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(fresh[-1]) + np.repeat(offsets[chosen] - fresh[:-1], sizes), fresh
