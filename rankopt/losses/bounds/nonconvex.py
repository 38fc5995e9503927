"""The nonconvex bound: the reference is the order by score [ORM, eq. 22]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.forms.rank_two_assignment import RankTwoBatch
from formulations.threads import share_ranges
from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.by_query import QUERY_ROWS

__all__ = ["Nonconvex"]


@dataclass(frozen=True)
class Nonconvex:
    """H(s) + best - max over all orders π of c[π]ᵀs: convex minus convex, the tightest of the three bounds."""

    convex: ClassVar[bool] = False

    def weights(self, problem: RankTwoBatch, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """c̄ at these scores: the decay by rank of score, documents of equal score share theirs."""
        from rankopt.losses.bounds.kernels import by_score

        weights = np.empty_like(problem.decay)
        given = (scores, problem.decay, problem.offsets)
        share_ranges(problem.offsets, QUERY_ROWS, lambda first, last: by_score(*given, first, last, weights))
        return weights

    def admissible(self, batch: AdmissibleBatch, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The admissible order that is best for the scores."""
        ones = np.ones(len(batch))
        return batch.argmax(0.0 * ones, ones, scores).rows
