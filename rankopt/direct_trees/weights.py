"""The weight of a tree: where on its line M is best, within limits, or anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.problem import MeasureObjective
from rankopt.errors import OptionError
from rankopt.line.inside import clamped_point, inside_point, window_inside
from rankopt.line.points import LinePoint, middle_point, window_point
from rankopt.rankers.options import number

__all__ = ["RULES", "TreeWeightSearch"]

Floats = NDArray[np.float64]

RULES = ("inside", "window", "clamped")


@dataclass(frozen=True)
class TreeWeightSearch:
    """rule     "inside": the best value in (low, high); "window": the best mean of M over [t - h, t + h], low <= t <=
    high, h so large that scores move by `window` of their deviation inside queries; "clamped": the best of
    the whole line, brought to the nearer end where it lies outside, as in paper 3
    """

    rule: str
    low: float
    high: float
    window: float

    @classmethod
    def named(cls, rule: str, interval: tuple[float, float], window: float) -> TreeWeightSearch:
        """OptionError for what cannot be."""
        if rule not in RULES:
            raise OptionError(f"weight = {rule!r} is unknown; known are {', '.join(RULES)}")
        ends = [number(end) for end in interval] if isinstance(interval, tuple | list) else []
        if not (len(ends) == 2 and 0 < ends[0] < ends[1] < np.inf):
            raise OptionError(f"interval = {interval!r} holds no weights; give two numbers 0 < low < high")
        if not 0 < number(window) < np.inf:
            raise OptionError(f"window = {window!r} cannot be; give the part of the scores' deviation, such as 0.2")
        return cls(rule, ends[0], ends[1], float(window))

    def within(self, problem: MeasureObjective, scores: Floats, column: Floats) -> LinePoint:
        """The weight of a new tree, in [low, high]."""
        (events,) = problem.events(scores, column[None])
        if self.rule == "inside":
            return inside_point(events, self.low, self.high)
        reach = problem.reach(scores, column, self.window)
        if self.rule == "window":
            return window_inside(events, self.low, self.high, reach)
        return clamped_point(events, self.low, self.high, reach)

    def anywhere(self, problem: MeasureObjective, scores: Floats, column: Floats) -> LinePoint:
        """The change of weight of a tree that is there: the best of the whole line, by its middle or by windows."""
        (events,) = problem.events(scores, column[None])
        reach = problem.reach(scores, column, self.window)
        return window_point(events, reach) if self.rule == "window" else middle_point(events, reach)
