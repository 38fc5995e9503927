"""Our exact argmax: sorting, splitting, merging; what is left goes to an assignment of few candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.arrays import Ints
from formulations.modeling.batch import BatchSolution
from formulations.modeling.form import Form
from formulations.modeling.rank_two import RankTwoAssignment, RankTwoBatch
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["Exact"]


@dataclass(frozen=True)
class Exact:
    """The loss-augmented argmax by its structure (see `formulations.argmax`); exact on every input.

    room: states that the dynamic program may hold; a query that needs more is solved as an assignment.
    """

    room: int = 20_000

    accepts: ClassVar[tuple[type[Form], ...]] = (RankTwoAssignment,)
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "exact"

    def declines(self, problem: Form) -> str | None:
        return None

    def solve(self, problem: RankTwoAssignment, start: Solution | None = None) -> Answer:
        padded = _padded(problem)
        if padded is None:  # a negative weight at the last position: left-out documents are worth more than placed ones
            order, way = _few_candidates(problem), "few candidates"
        else:
            answer = self.solve_batch(padded)
            order, way = answer.order[: problem.positions], answer.way[0]
        return Answer(order, message=way, details={"way": way})

    def solve_batch(self, batch: RankTwoBatch) -> BatchSolution:
        """All queries at once; the way taken is reported for each."""
        from formulations.argmax.two_sorts import WAYS, argmax_batch

        order = np.empty(batch.scores.size, dtype=np.int64)
        ways = np.empty(len(batch), dtype=np.int8)
        argmax_batch(
            batch.scores, batch.gain, batch.discount, batch.decay, batch.offsets, max(self.room, 2), order, ways
        )
        names = np.array([*WAYS[:-1], "few candidates"], dtype=object)[ways]
        for query in np.flatnonzero(ways == len(WAYS) - 1).tolist():
            problem, low = batch[query], batch.offsets[query]
            placed = _few_candidates(problem)
            rest = np.setdiff1d(np.arange(problem.documents), placed)
            order[low : batch.offsets[query + 1]] = np.concatenate([placed, rest])
        return BatchSolution.judged(batch, order, way=names, solver=self.spec)


def _padded(problem: RankTwoAssignment) -> RankTwoBatch | None:
    """The problem as a batch of one, with weight zero beyond its positions; None if that would not be the same."""
    spare = problem.documents - problem.positions
    if spare and min(problem.discount[-1], problem.decay[-1]) < 0:
        return None
    discount, decay = (np.pad(weights, (0, spare)) for weights in (problem.discount, problem.decay))
    return RankTwoBatch(problem.scores, problem.gain, discount, decay, np.array([0, problem.documents]))


def _few_candidates(problem: RankTwoAssignment) -> Ints:
    """Of documents with one gain only the best-scored can be needed at positions of decay >= 0, only the worst-scored
    at positions of decay < 0, and no more of them than there are such positions: an assignment of those."""
    from scipy.optimize import linear_sum_assignment

    by_score = np.lexsort((-problem.scores, problem.gain))
    gain = problem.gain[by_score]
    starts = np.flatnonzero(np.diff(gain, prepend=np.nan) != 0)
    sizes = np.diff(np.append(starts, gain.size))
    rank = np.arange(gain.size) - np.repeat(starts, sizes)
    below = int((problem.decay < 0).sum())
    needed = (rank < problem.positions - below) | (np.repeat(sizes, sizes) - rank <= below)
    candidates = np.sort(by_score[needed])
    profit = np.outer(problem.decay, problem.scores[candidates]) - np.outer(problem.discount, problem.gain[candidates])
    _, chosen = linear_sum_assignment(profit, maximize=True)
    return np.asarray(candidates[chosen], dtype=np.int64)
