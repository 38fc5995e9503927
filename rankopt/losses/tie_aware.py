"""The tie-aware bound: the reference is the best of all orders that are best for the measure [ORM, eq. 21]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.modeling.rank_two import RankTwoBatch
from rankopt.losses.admissible import AdmissibleBatch
from rankopt.losses.within import mean_of_runs, query_of_row, sorted_rows

__all__ = ["TieAware"]


@dataclass(frozen=True)
class TieAware:
    """H(s) + best - max over the orders π that maximise a[π]ᵀb of c[π]ᵀs: convex minus convex.

    Such an order sorts by gain, inside equal gains by score, then inside each run of positions with one discount (all
    positions beyond a cut-off are such a run) by score again.
    """

    convex: ClassVar[bool] = False

    def weights(self, problem: RankTwoBatch, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """c̄ at these scores; documents that could change places for nothing share theirs, so shuffling is no matter."""
        query = query_of_row(problem.offsets)
        by_gain = sorted_rows(query, problem.gain, scores)
        run = np.cumsum(np.diff(problem.discount, prepend=problem.discount[0]) != 0)  # of equal discount, by position
        rows = by_gain[np.lexsort((-scores[by_gain], run, query))]
        decay = mean_of_runs(problem.decay, query, run, scores[rows])
        # Documents alike in gain and score may stand in several runs: they share as well.
        weights = np.empty_like(decay)
        weights[rows] = decay
        weights[by_gain] = mean_of_runs(weights[by_gain], query, problem.gain[by_gain], scores[by_gain])
        return weights

    def admissible(self, batch: AdmissibleBatch, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Of the admissible orders that are best for the measure the one that is best for the scores."""
        return batch.best_by_score(scores)
