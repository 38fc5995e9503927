"""Half the squared error, the loss of regression [paper 5, A.1]: quadratic, so its plane at s is its tangent."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.losses.loss import LossValue
from rankopt.losses.segment_ops import query_of_row


@dataclass(frozen=True, eq=False)
class SquaredError:
    """loss_q(s) = ½ Σ_j (s_j - y_j)² over the documents of query q; slope s - y (the paper prints its opposite).

    relevance: (N,) targets y. offsets: (m + 1,). A sum and no mean, as the paper has it: a long list counts for more.
    Convex, so the tangent lies below it, and every method of planes trains it with a gap, in more steps than a loss
    of kinks: a parabola has no last plane. It sees the level of the scores and not their order alone; where data is
    only to be regressed `RegressionRanker` does that in closed form, and learns from queries of one grade too, which a
    `LossRanker` leaves out.
    """

    relevance: Floats
    offsets: Ints
    convex = True

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and tangents at `scores`, (N,)."""
        began, query, lists = perf_counter(), query_of_row(self.offsets), self.offsets.size - 1
        slope = scores - self.relevance
        value: Floats = np.asarray(np.bincount(query, 0.5 * slope * slope, lists), dtype=np.float64)
        height: Floats = np.asarray(np.bincount(query, -0.5 * slope * (scores + self.relevance), lists), np.float64)
        return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)

    def majorant(self, scores: Floats) -> SquaredError:
        return self

    def only(self, first: int, last: int) -> SquaredError:
        low, high = self.offsets[first], self.offsets[last]
        return SquaredError(self.relevance[low:high], self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)
