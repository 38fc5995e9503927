"""Many rankings under constraints at once: those that collapse in one compiled pass, the others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.forms.form import EPSILON
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.ranking_set import RankingSet
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve

__all__ = ["SetBatch", "SetBatchSolution", "solve_sets"]


@dataclass(frozen=True, eq=False)
class SetBatchSolution:
    """order: the document (counted within its query) at each place; value and proven bound, one a query, as double
    precision leaves them; way: how."""

    order: Ints
    value: Floats
    bound: Floats
    way: NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class SetBatch:
    """Query q: max over rankings π in sets[q] of Σ_i decay[i] scores[π_i] - discount[i] gain[π_i].

    `scores` and `gain` have one entry a document, rows offsets[q] : offsets[q + 1]; `discount` and `decay` one a
    position, places[q] : places[q + 1], as many as the set has.
    """

    sets: Sequence[RankingSet]
    scores: Floats
    gain: Floats
    discount: Floats
    decay: Floats
    offsets: Ints
    places: Ints

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, query: int) -> ConstrainedRanking:
        """The problem of one query."""
        rows = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        spots = slice(int(self.places[query]), int(self.places[query + 1]))
        scores, gain, discount, decay = self.scores[rows], self.gain[rows], self.discount[spots], self.decay[spots]
        admissible = self.sets[query]
        profit = np.outer(decay, scores) - np.outer(discount, gain)
        free = not admissible.constraints
        return ConstrainedRanking(
            profit, admissible, RankTwoAssignment(scores, gain, discount, decay) if free else None
        )

    def some(self, queries: Ints) -> SetBatch:
        """The batch of these queries, in this order."""
        rows, offsets = _gathered(self.offsets, queries)
        spots, places = _gathered(self.places, queries)
        return SetBatch(
            [self.sets[q] for q in queries.tolist()],
            self.scores[rows],
            self.gain[rows],
            self.discount[spots],
            self.decay[spots],
            offsets,
            places,
        )


def solve_sets(batch: SetBatch, solver: Solver | str = "auto") -> SetBatchSolution:
    """Solve every query. "auto" and "exact" take queries of Π(B, k) and its like in one compiled pass; any other solver
    is asked query by query. Raises what `solve` raises."""
    count = len(batch)
    order, value, bound = np.empty(batch.decay.size, dtype=np.int64), np.empty(count), np.empty(count)
    way = np.empty(count, dtype=object)
    together: list[int] = []
    if isinstance(solver, str) and solver in ("auto", "exact"):
        together = [q for q in range(count) if batch.sets[q].stated.blocks_of is not None]
        _collapsed(batch, together, order, value, bound)
        way[together] = "collapsed"
    for q in sorted(set(range(count)) - set(together)):
        solution = solve(batch[q], solver, outward=False)
        order[batch.places[q] : batch.places[q + 1]] = solution.order
        value[q], bound[q], way[q] = solution.value, max(solution.bound, solution.value), solution.solver
    return SetBatchSolution(order, value, bound, way)


def _collapsed(batch: SetBatch, queries: list[int], order: Ints, value: Floats, bound: Floats) -> None:
    """Fill in the answers of the queries whose sets are a matching of positions and blocks of documents."""
    if not queries:
        return
    from formulations.argmax.collapsed import collapsed_argmax

    part = batch.some(np.array(queries))
    blocks = np.concatenate([np.asarray(admissible.stated.blocks_of) for admissible in part.sets])
    found, best, proven = np.empty(part.decay.size, dtype=np.int64), np.empty(len(part)), np.empty(len(part))
    collapsed_argmax(
        part.scores, part.gain, blocks, part.offsets, part.discount, part.decay, part.places, found, best, proven
    )
    tallest = [np.maximum.reduceat(np.abs(height), part.offsets[:-1]) for height in (part.scores, part.gain)]
    weight = [np.add.reduceat(np.abs(weights), part.places[:-1]) for weights in (part.decay, part.discount)]
    rounding = 4.0 * EPSILON * (2.0 + np.diff(part.places)) * (weight[0] * tallest[0] + weight[1] * tallest[1])
    spots, _ = _gathered(batch.places, np.array(queries))
    order[spots], value[queries], bound[queries] = found, best, np.maximum(proven, best) + rounding


def _gathered(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The entries of the chosen parts, one part after the other, and the offsets that these parts get."""
    sizes = np.diff(offsets)[chosen]
    fresh = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(fresh[-1]) + np.repeat(offsets[chosen] - fresh[:-1], sizes), fresh
