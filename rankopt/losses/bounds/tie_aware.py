"""The tie-aware bound: the reference is the best of all orders that are best for the measure [ORM, eq. 21]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.forms.rank_two_assignment import RankTwoBatch
from formulations.threads import share_ranges
from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.by_query import QUERY_ROWS

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
        from rankopt.losses.bounds.kernels import best_by_score

        weights = np.empty_like(problem.decay)
        given = (scores, problem.gain, problem.discount, problem.decay, problem.offsets)
        share_ranges(problem.offsets, QUERY_ROWS, lambda first, last: best_by_score(*given, first, last, weights))
        return weights

    def admissible(self, batch: AdmissibleBatch, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Of the admissible orders that are best for the measure the one that is best for the scores."""
        return batch.best_by_score(scores)
