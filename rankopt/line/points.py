"""Where to stand on a line: which t in, or about, the best interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.line.best import EQUAL, best_interval
from rankopt.line.events import StepEvents
from rankopt.line.steps import StepFunction

__all__ = ["LinePoint", "middle_point", "penalised_point", "window_point"]

Floats = NDArray[np.float64]

FAR = 1e5
"""Windows beyond so many times their half width are not told from rounding well enough to be compared."""


@dataclass(frozen=True)
class LinePoint:
    """A t, the open interval (low, high) around it, the value there, how many events the line has, and the largest
    value of any of its intervals."""

    t: float
    low: float
    high: float
    value: float
    events: int
    best: float


def middle_point(events: StepEvents, reach: float) -> LinePoint:
    """The middle of the best interval; of one without an end its other end, away from it by half of that, and by
    `reach` at least."""
    low, high, value = best_interval(events)
    return LinePoint(middle(low, high, reach), low, high, value, events.times.size, value)


def middle(low: float, high: float, reach: float) -> float:
    """A t in the open interval (low, high)."""
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) / 2
    if np.isfinite(low):
        return low + max(reach, abs(low) / 2)
    return high - max(reach, abs(high) / 2) if np.isfinite(high) else 0.0


def window_point(events: StepEvents, h: float) -> LinePoint:
    """The t of the largest (1 / 2h) ∫ M over [t - h, t + h]: a sliver of an interval is never taken.

    That mean is linear between the jumping points ± h, so it is exact; of a stretch of best points the middle, of
    several stretches the one nearest to 0. Where t is a jumping point it moves into the better interval beside it.
    Jumping points so far out that h is lost in the rounding of what lies between are passed over: lines that are
    parallel but for rounding cross there. The middle of the best interval where there are no others.
    """
    steps = StepFunction.of(events)
    if steps.values.size == 1:
        value = float(steps.values[0])
        return LinePoint(0.0, -np.inf, np.inf, value, events.times.size, value)
    jumps = steps.highs[:-1] + (steps.lows[1:] - steps.highs[:-1]) / 2
    at, area = _areas(jumps, steps.values)
    points = np.concatenate([jumps - h, jumps + h])
    means = np.concatenate([at - area(jumps - 2 * h), area(jumps + 2 * h) - at]) / (2 * h)
    near = np.isfinite(means) & (np.abs(points) * np.abs(steps.values).max() <= FAR * h)
    if not near.any():
        return middle_point(events, h)
    means[~near] = -np.inf
    top = np.flatnonzero(means >= means.max() - EQUAL * np.maximum(1.0, 1e-3 * np.abs(points) / h))
    points = np.sort(points[top])
    rank = np.searchsorted(jumps, points - h) + np.searchsorted(jumps, points + h)  # among all that were tried
    broken = np.diff(rank) > 1
    begins, ends = np.append(0, np.flatnonzero(broken) + 1), np.append(np.flatnonzero(broken), points.size - 1)
    away = np.maximum(np.maximum(points[begins], -points[ends]), 0.0)
    run = np.argmin(away)
    t = float(points[begins[run]] + (points[ends[run]] - points[begins[run]]) / 2)
    place = int(np.searchsorted(steps.highs, t, side="right"))
    if not t > steps.lows[place]:
        place = place if steps.values[place] >= steps.values[place - 1] else place - 1
        low, high = float(steps.lows[place]), float(steps.highs[place])
        inside = min(h / 8, (high - low) / 2)
        t = low + inside if t <= low else high - inside
    return _standing(steps, t, place, events)


def penalised_point(events: StepEvents, h: float, slope: float, curvature: float) -> LinePoint:
    """The t of the largest M(t) - slope t - curvature t²/2, curvature > 0: of each interval the t nearest to the top of
    the parabola, away from the ends by h / 8, or by half of an interval that is narrower than that allows."""
    steps = StepFunction.of(events)
    inside = np.minimum(h / 8, (steps.highs - steps.lows) / 2)
    points = np.clip(-slope / curvature, steps.lows + inside, steps.highs - inside)
    gained = steps.values - points * (slope + curvature * points / 2)
    top = np.flatnonzero(gained >= gained.max() - EQUAL)
    place = int(top[np.argmin(np.abs(points[top]))])
    return _standing(steps, float(points[place]), place, events)


def _standing(steps: StepFunction, t: float, place: int, events: StepEvents) -> LinePoint:
    low, high, value = float(steps.lows[place]), float(steps.highs[place]), float(steps.values[place])
    return LinePoint(t, low, high, value, events.times.size, float(steps.values.max()))


def _areas(jumps: Floats, values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """∫ M from 0 to each jumping point, and t -> ∫ M from 0 to t.

    Summed from 0 on either way, so that far jumping points cost no digits near it.
    """
    zero = int(np.searchsorted(jumps, 0.0))
    pieces = values[1:-1] * np.diff(jumps)
    at = np.empty(jumps.size)
    if zero < jumps.size:
        at[zero:] = values[zero] * jumps[zero] + np.append(0.0, np.cumsum(pieces[zero:]))
    if zero > 0:
        at[:zero] = values[zero] * jumps[zero - 1] - np.append(0.0, np.cumsum(pieces[: zero - 1][::-1]))[::-1]

    def area(t: Floats) -> Floats:
        place = np.searchsorted(jumps, t)
        right, left = at[np.maximum(place - 1, 0)], at[np.minimum(place, jumps.size - 1)]
        onward = right + values[place] * (t - jumps[np.maximum(place - 1, 0)])
        backward = left - values[place] * (jumps[np.minimum(place, jumps.size - 1)] - t)
        return np.where(place == zero, values[place] * t, np.where(place > zero, onward, backward))

    return at, area
