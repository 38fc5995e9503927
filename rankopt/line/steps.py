"""A step function: what events add up to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankopt.line.events import StepEvents

__all__ = ["StepFunction"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StepFunction:
    """M(t) = values[i] for lows[i] < t < highs[i], K + 1 open intervals in rising order, from -∞ to ∞.

    Between them lie the events, each with the rounding of its crossing on both sides. Events that are no farther from
    each other than the rounding of their own crossings are one: between them lies no interval. Three lines that meet in
    a point, say, cross pair by pair at times that differ in floats, and what would lie between is reached by no t.
    """

    lows: Floats
    highs: Floats
    values: Floats

    @classmethod
    def of(cls, events: StepEvents) -> StepFunction:
        order = np.argsort(events.times, kind="stable")
        times, widths = events.times[order], events.widths[order]
        values = events.start + np.append(0.0, np.cumsum(events.steps[order]))
        apart = times[1:] - times[:-1] > widths[1:] + widths[:-1]
        kept = np.concatenate([[True], apart, [True]]) if times.size else np.array([True])
        inner = np.flatnonzero(apart)
        after, before = times + widths, times - widths
        lows = np.concatenate([[-np.inf], after[inner], after[-1:]])
        highs = np.concatenate([before[:1], before[inner + 1], [np.inf]])
        return cls(lows, highs, values[kept])

    def at(self, t: Floats) -> Floats:
        """M at each t; NaN where t is within the rounding of a jumping point."""
        place = np.searchsorted(self.highs, t, side="right")
        return np.where(t > self.lows[place], self.values[place], np.nan)

    @cached_property
    def middles(self) -> Floats:
        """A t inside each interval; of one without an end, one that is half as far from 0 again, and 1 at least."""
        middles = np.zeros(self.values.size)
        if middles.size > 1:
            lows, highs = self.lows, self.highs
            middles[1:-1] = lows[1:-1] + (highs[1:-1] - lows[1:-1]) / 2
            middles[0] = highs[0] - max(1.0, abs(highs[0]) / 2)
            middles[-1] = lows[-1] + max(1.0, abs(lows[-1]) / 2)
        return middles
