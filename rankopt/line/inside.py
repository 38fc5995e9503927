"""Where to stand on a piece of a line: the best t between two ends, beyond which nobody may go.

On [low, high] a step function takes few of its values, so only the events there are put in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankopt.line.best import EQUAL
from rankopt.line.events import StepEvents
from rankopt.line.points import LinePoint, middle_point
from rankopt.line.steps import StepFunction

__all__ = ["clamped_point", "inside_point", "window_inside", "within"]

Floats = NDArray[np.float64]


def within(events: StepEvents, low: float, high: float) -> StepEvents:
    """The same function on [low, high]: events before it are in its start, those behind it left out."""
    before = events.times + events.widths < low
    kept = ~before & (events.times - events.widths <= high)
    start = events.start + float(events.steps[before].sum())
    return StepEvents(start, events.times[kept], events.steps[kept], events.widths[kept])


def inside_point(events: StepEvents, low: float, high: float) -> LinePoint:
    """The middle of the interval of the largest value in (low, high), of equal ones the widest."""
    return _Pieces.of(events, low, high).best()


def clamped_point(events: StepEvents, low: float, high: float, reach: float) -> LinePoint:
    """`middle_point` of the whole line, or the end that is nearer to it [paper 3, section 2.4]."""
    found = middle_point(events, reach)
    if low <= found.t <= high:
        return found
    return _Pieces.of(events, low, high).near(low if found.t < low else high, (high - low) / 8)


def window_inside(events: StepEvents, low: float, high: float, h: float) -> LinePoint:
    """The t in [low, high] of the largest (1 / 2h) ∫ M over [t - h, t + h]; of a stretch of best points the middle.

    The mean is linear between low, high and the jumping points ± h.
    """
    steps = StepFunction.of(within(events, low - h, high + h))
    jumps = steps.highs[:-1] + (steps.lows[1:] - steps.highs[:-1]) / 2
    knots = np.concatenate([[low - h], np.clip(jumps, low - h, high + h), [high + h]])
    area = np.append(0.0, np.cumsum(steps.values * np.diff(knots)))
    points = np.unique(np.clip(np.concatenate([[low, high], jumps - h, jumps + h]), low, high))
    means = (np.interp(points + h, knots, area) - np.interp(points - h, knots, area)) / (2 * h)
    top = means >= means.max() - EQUAL
    t, flat = float(points[np.argmax(means)]), top[:-1] & top[1:]
    if flat.any():
        i = np.argmax(np.where(flat, np.diff(points), -1.0))
        t = float(points[i] + (points[i + 1] - points[i]) / 2)
    return _Pieces.of(events, low, high).near(t, h / 8)


class _Pieces:
    """The open intervals of a step function, cut to (low, high)."""

    def __init__(self, lows: Floats, highs: Floats, values: Floats, events: int) -> None:
        self.lows, self.highs, self.values, self.events = lows, highs, values, events

    @classmethod
    def of(cls, events: StepEvents, low: float, high: float) -> _Pieces:
        steps = StepFunction.of(within(events, low, high))
        lows, highs = np.maximum(steps.lows, low), np.minimum(steps.highs, high)
        kept = lows < highs
        if not kept.any():  # rounding covers it all
            kept[np.argmax(steps.values)] = True
            lows, highs = np.full(lows.size, low), np.full(lows.size, high)
        return cls(lows[kept], highs[kept], steps.values[kept], events.times.size)

    def at(self, i: int, t: float) -> LinePoint:
        best = float(self.values.max())
        return LinePoint(t, float(self.lows[i]), float(self.highs[i]), float(self.values[i]), self.events, best)

    def best(self) -> LinePoint:
        top = np.flatnonzero(self.values >= self.values.max() - EQUAL)
        i = int(top[np.argmax((self.highs - self.lows)[top])])
        return self.at(i, float(self.lows[i] + (self.highs[i] - self.lows[i]) / 2))

    def near(self, t: float, step: float) -> LinePoint:
        """At t, or, where t is a jumping point, as far as `step` inside the better interval beside it."""
        i = int(np.searchsorted(self.highs, t))
        if i < self.highs.size and self.lows[i] <= t:
            return self.at(i, t)
        beside = [j for j in (i - 1, i) if 0 <= j < self.highs.size]
        i = max(beside, key=lambda j: self.values[j])
        room = min(step, float(self.highs[i] - self.lows[i]) / 2)
        return self.at(i, float(self.lows[i]) + room if t <= self.lows[i] else float(self.highs[i]) - room)
