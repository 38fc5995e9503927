"""Slack rescaling: the largest product of regret and margin over all rankings [paper 2, section 6].

>>> from rankopt.rankers import LossRanker
>>> ranker = LossRanker(RescaledSlack, "nDCG@10")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints, Shorts
from formulations.experimental.slack_rescaling import RescaledBatch, slack_rescaled_ranking, solve_slack_rescaled
from formulations.solvers.solver import Solver
from formulations.sorting import alike
from rankopt.errors import OptionError
from rankopt.losses.loss import LossValue
from rankopt.losses.oracle import EXACTLY
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.segment_ops import shared
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.measures.tied_ranking import query_of_row


@dataclass(frozen=True, eq=False)
class RescaledSlack:
    """loss_q(s) = max_π D(π) (1 + (c[π] - c̄)ᵀs), D(π) = max a[π̄]ᵀb - a[π]ᵀb the regret of π, c̄ the mean c of the
    rankings without regret.

    Convex, as each D >= 0, and at least the regret of the order by score, whose margin is 1 or more. The maximum is
    NP-hard: `value` is that of the best vertex of a hull, `bound` is proven (`formulations.experimental`). The plane
    of any ranking, height D and slope D (c[π] - c̄), lies below the loss, so the lower bound of training holds. The
    objective uses `bound`, so the reported gap is true; it stays open where the hull leaves one.

    measure: positional; a `LossRanker` passes its own. position_weights: c. argmax: any solver of `ranking`.
    """

    relevance: Floats
    offsets: Ints
    measure: Any = "nDCG@10"
    position_weights: Any = "power(0.5)"
    argmax: Solver | str = "exact"
    convex = True
    exact: ClassVar[bool] = False

    @classmethod
    def of_measure(cls, measure: Any) -> Callable[..., RescaledSlack]:
        """The factory of this loss for a measure."""
        return partial(cls, measure=measure)

    @cached_property
    def problem(self) -> RescaledBatch:
        """The batch; its scores do not matter."""
        measure = parse(self.measure)
        if not isinstance(measure, PositionalMeasure):
            raise OptionError(f"measure {measure} has no regret of position weights and gains; train nDCG@k, P@k, ...")
        gain = measure.gain(self.relevance, self.offsets)
        position_weights = parse_position_weights(self.position_weights)
        return slack_rescaled_ranking(
            np.zeros(gain.size),
            gain,
            discount=measure.discount,
            position_weights=lambda n: position_weights.weights(n, measure),
            offsets=self.offsets,
        )

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values, proven bounds and planes at `scores`, (N,)."""
        answer = solve_slack_rescaled(self.problem.with_scores(scores), self.argmax, outward=False)
        answer = answer.proved(EXACTLY) if prove else answer
        rows = self.offsets[query_of_row(self.offsets)] + answer.order
        assigned = np.empty(scores.size)
        assigned[rows] = self.problem.ranking.position_weights
        assigned = shared(assigned, answer.problems.ranking.scores, self.kind, self.offsets)
        slope = np.repeat(answer.loss, np.diff(self.offsets)) * (assigned - self.problem.reference)
        return LossValue(answer.value, answer.bound, answer.loss, slope, np.zeros(scores.size), answer.seconds)

    @cached_property
    def kind(self) -> Shorts:
        """(N,) documents of equal gain have equal ones in their query: exchanging them changes no regret."""
        return alike(self.offsets, self.problem.ranking.gain)

    def majorant(self, scores: Floats) -> RescaledSlack:
        return self

    def select_queries(self, first: int, last: int) -> RescaledSlack:
        low, high = self.offsets[first], self.offsets[last]
        return replace(self, relevance=self.relevance[low:high], offsets=self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)
