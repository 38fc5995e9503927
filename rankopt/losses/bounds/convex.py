"""The convex bound: H + best - c̄ᵀs with a reference that never depends on the scores [ORM, eq. 20]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.forms.rank_two_assignment import RankTwoBatch
from rankopt.errors import OptionError
from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.by_query import mean_of_runs, query_of_row, sorted_rows

__all__ = ["Convex"]


@dataclass(frozen=True)
class Convex:
    """H(s) + best - c̄ᵀs, c̄ the decay of a fixed order (or a mean of orders) that is best for the measure.

    Under constraints it is one admissible order, ties falling by the score at w₀ and then by the documents' own order.

    reference: "average": documents of equal gain share the mean of c over the positions that they fill together, so
        the order of the input does not matter. "first": equal gains in the order of the input, as in the papers.
    """

    reference: str = "average"
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.reference not in ("average", "first"):
            raise OptionError(f"reference {self.reference!r} is neither 'average' nor 'first'")

    def weights(self, problem: RankTwoBatch, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """c̄, one weight a document; `scores` do not matter."""
        query = query_of_row(problem.offsets)
        rows = sorted_rows(query, problem.gain)
        weights = np.empty_like(problem.decay)
        decay = problem.decay
        if self.reference == "average":
            decay = mean_of_runs(decay, query, problem.gain[rows])
        weights[rows] = decay
        return weights

    def admissible(self, batch: AdmissibleBatch, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The reference under constraints; asked for once, before training."""
        return batch.best_by_score(scores)
