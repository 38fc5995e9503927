"""Step functions: the jumps of a measure along a line, and the choice of a point on it.

A step function is the sum of its events. Its best open interval is found without sorting all events: they are
distributed into bins of t. Within a bin the function is at most its value before the bin plus the positive steps of the
bin. The bin with the largest bound is sorted first, then only those whose bound reaches the best value found.

A point is chosen in or near the best interval, on the line or on a segment [low, high]. A segment contains few values,
so only its events are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.display import Axes, axes_for
from formulations.parallel import share

MANY = 1 << 15  # events from which threads put them together: memory that is new takes longer than to hand out the work


@dataclass(frozen=True, eq=False)
class StepEvents:
    """M(t) = start + Σ steps[e] over the events with times[e] < t, for t that is within `widths` of no event.

    start: the value at t = -∞. times, steps, widths: (E,), in no order. An event is a crossing of two lines of one
    query (or several at one time), and its width the rounding of that crossing: within it scores that are computed in
    floats may have either order.
    """

    start: float
    times: Floats
    steps: Floats
    widths: Floats


def joined(parts: Sequence[StepEvents]) -> StepEvents:
    """The events of all parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.times.size for part in parts])
    combined = StepEvents(sum(part.start for part in parts), *np.empty((3, int(ends[-1]))))

    def fill(number: int) -> None:
        part, rows = parts[number], slice(int(ends[number]) - parts[number].times.size, int(ends[number]))
        combined.times[rows], combined.steps[rows], combined.widths[rows] = part.times, part.steps, part.widths

    if combined.times.size > MANY:
        share(len(parts), fill)
    else:
        for number in range(len(parts)):
            fill(number)
    return combined


@dataclass(frozen=True, eq=False)
class StepFunction:
    """M(t) = values[i] for lows[i] < t < highs[i], K + 1 open intervals in increasing order, from -∞ to ∞.

    Events lie between them, each with the rounding error of its crossing on both sides. Events closer than these errors
    are merged: no interval lies between them. Three lines that meet in a point, for example, cross pair by pair at
    times that differ in floats, and no t reaches what would lie between.
    """

    lows: Floats
    highs: Floats
    values: Floats

    @classmethod
    def from_events(cls, events: StepEvents) -> StepFunction:
        order = np.argsort(events.times, kind="stable")
        times, widths = events.times[order], events.widths[order]
        values = events.start + np.append(0.0, np.cumsum(events.steps[order]))
        apart = times[1:] - times[:-1] > widths[1:] + widths[:-1]
        retained = np.concatenate([[True], apart, [True]]) if times.size else np.array([True])
        inner = np.flatnonzero(apart)
        after, before = times + widths, times - widths
        lows = np.concatenate([[-np.inf], after[inner], after[-1:]])
        highs = np.concatenate([before[:1], before[inner + 1], [np.inf]])
        return cls(lows, highs, values[retained])

    def at(self, t: Floats) -> Floats:
        """M at each t; NaN where t is within the rounding of a jumping point."""
        index = np.searchsorted(self.highs, t, side="right")
        return np.where(t > self.lows[index], self.values[index], np.nan)

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


FEW = 1 << 12  # events that are sorted at once
BINS = 1 << 15  # bins, at most
EQUAL = 1e-12  # values that differ by less are one: sums of steps are rounded


def best_interval(events: StepEvents) -> tuple[float, float, float]:
    """The interval (low, high) of the largest value, and that value; of equal ones the nearest to 0."""
    if events.times.size <= FEW:
        steps = StepFunction.from_events(events)
        return _nearest(steps.lows, steps.highs, steps.values)
    bins = _bins(events.times)
    count = int(bins.max()) + 1
    total = np.bincount(bins, events.steps, count).astype(np.float64, copy=False)
    rising = np.bincount(bins, np.maximum(events.steps, 0.0), count)
    filled = np.flatnonzero(np.bincount(bins, minlength=count))
    before = events.start + np.cumsum(total) - total
    bound = (before + rising)[filled]
    first = _inside(events, bins, before, filled, np.array([np.argmax(bound)]))
    least = max(events.start, first[2].max(initial=-np.inf)) - EQUAL
    return _nearest(*_inside(events, bins, before, filled, np.flatnonzero(bound >= least - EQUAL)))


def _inside(
    events: StepEvents, bins: Ints, before: Floats, filled: Ints, chosen: Ints
) -> tuple[Floats, Floats, Floats]:
    """The intervals that begin in the chosen ones of the filled bins, and the first of all."""
    wanted = np.zeros(filled.size + 1, dtype=bool)
    wanted[chosen] = wanted[chosen + 1] = wanted[0] = True  # an interval ends where the next bin begins
    needed = np.zeros(before.size, dtype=bool)
    needed[filled[wanted[:-1]]] = True
    rows = np.flatnonzero(needed[bins])
    rows = rows[np.argsort(events.times[rows], kind="stable")]
    times, widths, steps, own = events.times[rows], events.widths[rows], events.steps[rows], bins[rows]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    lengths = np.diff(np.append(starts, own.size))
    sums = np.cumsum(steps)
    values = before[own] + sums - np.repeat(sums[starts] - steps[starts], lengths)
    ends = starts + lengths - 1
    apart = np.append(times[1:] - times[:-1] > widths[1:] + widths[:-1], True)
    index = np.searchsorted(filled, own[ends])
    apart[ends] &= wanted[index + 1] | (index == filled.size - 1)  # else the rest is not needed
    lows, highs = (times + widths)[apart], np.append((times - widths)[1:], np.inf)[apart]
    return (np.append(-np.inf, lows), np.append(times[0] - widths[0], highs), np.append(events.start, values[apart]))


def _nearest(lows: Floats, highs: Floats, values: Floats) -> tuple[float, float, float]:
    top = np.flatnonzero(values >= values.max() - EQUAL)
    away = np.maximum(np.maximum(lows[top], -highs[top]), 0.0)
    i = top[np.argmin(away)]
    return float(lows[i]), float(highs[i]), float(values[i])


def _bins(times: Floats) -> Ints:
    """A bin for each time, in increasing order: by exponent and leading digits of the binary representation."""
    bits = (times + 0.0).view(np.int64)
    ordered = np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
    low, high = int(ordered.min()), int(ordered.max())
    shift = max(0, (high - low).bit_length() - (BINS.bit_length() - 1))
    return np.asarray((ordered >> shift) - (low >> shift))


FAR = 1e5  # beyond so many half widths, windows cannot be compared because of rounding


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
    """The t that maximizes (1 / 2h) ∫ M over [t - h, t + h], so that a very short interval is not selected.

    That mean is linear between the jumps ± h, so the optimum is exact. Of an interval of best points the middle is
    returned, of several intervals the one nearest to 0. If t is a jump, it moves into the better adjacent interval.
    Jumps so far out that h vanishes by rounding are skipped: lines that are parallel up to rounding cross there.
    Without other jumps, the middle of the best interval.
    """
    steps = StepFunction.from_events(events)
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
    index = int(np.searchsorted(steps.highs, t, side="right"))
    if not t > steps.lows[index]:
        index = index if steps.values[index] >= steps.values[index - 1] else index - 1
        low, high = float(steps.lows[index]), float(steps.highs[index])
        inside = min(h / 8, (high - low) / 2)
        t = low + inside if t <= low else high - inside
    return _standing(steps, t, index, events)


def penalized_point(events: StepEvents, h: float, slope: float, curvature: float) -> LinePoint:
    """The t that maximizes M(t) - slope t - curvature t²/2, curvature > 0: of each interval the t nearest to the vertex
    of the parabola, away from the ends by h / 8, or by half of an interval that is too narrow for that."""
    steps = StepFunction.from_events(events)
    inside = np.minimum(h / 8, (steps.highs - steps.lows) / 2)
    points = np.clip(-slope / curvature, steps.lows + inside, steps.highs - inside)
    gained = steps.values - points * (slope + curvature * points / 2)
    top = np.flatnonzero(gained >= gained.max() - EQUAL)
    index = int(top[np.argmin(np.abs(points[top]))])
    return _standing(steps, float(points[index]), index, events)


def _standing(steps: StepFunction, t: float, index: int, events: StepEvents) -> LinePoint:
    low, high, value = float(steps.lows[index]), float(steps.highs[index]), float(steps.values[index])
    return LinePoint(t, low, high, value, events.times.size, float(steps.values.max()))


def _areas(jumps: Floats, values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """∫ M from 0 to each jumping point, and t -> ∫ M from 0 to t. Summed from 0 on either way, so that far jumping
    points cost no digits near it."""
    zero = int(np.searchsorted(jumps, 0.0))
    pieces = values[1:-1] * np.diff(jumps)
    at = np.empty(jumps.size)
    if zero < jumps.size:
        at[zero:] = values[zero] * jumps[zero] + np.append(0.0, np.cumsum(pieces[zero:]))
    if zero > 0:
        at[:zero] = values[zero] * jumps[zero - 1] - np.append(0.0, np.cumsum(pieces[: zero - 1][::-1]))[::-1]

    def area(t: Floats) -> Floats:
        index = np.searchsorted(jumps, t)
        right, left = at[np.maximum(index - 1, 0)], at[np.minimum(index, jumps.size - 1)]
        onward = right + values[index] * (t - jumps[np.maximum(index - 1, 0)])
        backward = left - values[index] * (jumps[np.minimum(index, jumps.size - 1)] - t)
        return np.where(index == zero, values[index] * t, np.where(index > zero, onward, backward))

    return at, area


def within(events: StepEvents, low: float, high: float) -> StepEvents:
    """The same function on [low, high]: events before it are in its start, those behind it left out."""
    before = events.times + events.widths < low
    retained = ~before & (events.times - events.widths <= high)
    start = events.start + float(events.steps[before].sum())
    return StepEvents(start, events.times[retained], events.steps[retained], events.widths[retained])


def inside_point(events: StepEvents, low: float, high: float) -> LinePoint:
    """The middle of the interval of the largest value in (low, high), of equal ones the widest."""
    return _Pieces.from_events(events, low, high).best()


def clamped_point(events: StepEvents, low: float, high: float, reach: float) -> LinePoint:
    """`middle_point` of the line, or the nearer end [paper 3, section 2.4]."""
    found = middle_point(events, reach)
    if low <= found.t <= high:
        return found
    return _Pieces.from_events(events, low, high).near(low if found.t < low else high, (high - low) / 8)


class _Pieces:
    """The open intervals of a step function, cut to (low, high)."""

    def __init__(self, lows: Floats, highs: Floats, values: Floats, events: int) -> None:
        self.lows, self.highs, self.values, self.events = lows, highs, values, events

    @classmethod
    def from_events(cls, events: StepEvents, low: float, high: float) -> _Pieces:
        steps = StepFunction.from_events(within(events, low, high))
        lows, highs = np.maximum(steps.lows, low), np.minimum(steps.highs, high)
        retained = lows < highs
        if not retained.any():  # rounding covers it all
            retained[np.argmax(steps.values)] = True
            lows, highs = np.full(lows.size, low), np.full(lows.size, high)
        return cls(lows[retained], highs[retained], steps.values[retained], events.times.size)

    def at(self, i: int, t: float) -> LinePoint:
        best = float(self.values.max())
        return LinePoint(t, float(self.lows[i]), float(self.highs[i]), float(self.values[i]), self.events, best)

    def best(self) -> LinePoint:
        top = np.flatnonzero(self.values >= self.values.max() - EQUAL)
        i = int(top[np.argmax((self.highs - self.lows)[top])])
        return self.at(i, float(self.lows[i] + (self.highs[i] - self.lows[i]) / 2))

    def near(self, t: float, step: float) -> LinePoint:
        """At t, or, if t is a jump, up to `step` inside the better adjacent interval."""
        i = int(np.searchsorted(self.highs, t))
        if i < self.highs.size and self.lows[i] <= t:
            return self.at(i, t)
        adjacent = [j for j in (i - 1, i) if 0 <= j < self.highs.size]
        i = max(adjacent, key=lambda j: self.values[j])
        margin = min(step, float(self.highs[i] - self.lows[i]) / 2)
        return self.at(i, float(self.lows[i]) + margin if t <= self.lows[i] else float(self.highs[i]) - margin)


AROUND = 0.9  # fraction of the jumps that is shown; the others are far out and small
MOST = 4000  # intervals that are drawn, at most: the widest there, since no eye sees the others


def draw_line(
    steps: StepFunction,
    line: LinePoint,
    at: float,
    measure: str,
    about: str,
    axes: Axes | None = None,
) -> Axes:
    """Plot the steps of M(t) against at + t. `line` is the point chosen by a search, `at` the current one. Returns
    the matplotlib axes."""
    axes = axes_for(axes)
    low, high = shown_range(steps, line)
    lows, highs = np.clip(steps.lows, low, high), np.clip(steps.highs, low, high)
    inside = np.flatnonzero(highs > lows)
    inside = np.sort(inside[np.argsort(lows[inside] - highs[inside], kind="stable")[:MOST]])
    x = np.column_stack([lows[inside], highs[inside]]).ravel() + at
    axes.plot(x, np.repeat(steps.values[inside], 2), linewidth=1.2, color="C0", label=measure)
    begin, end = max(line.low, low), min(line.high, high)
    axes.axvspan(begin + at, end + at, alpha=0.25, linewidth=0, color="C1")
    axes.plot([line.t + at], [line.value], marker="o", linestyle="none", color="C1", label="a search stands here")
    axes.axvline(at, linestyle="--", linewidth=1.0, color="C2", label="now")
    axes.set(xlabel=about, ylabel=f"mean {measure}", xlim=(low + at, high + at))
    axes.legend(frameon=False)
    return axes


def shown_range(steps: StepFunction, line: LinePoint) -> tuple[float, float]:
    """The t worth seeing: most jumping points, 0, and the point that was chosen."""
    jumps = steps.highs[:-1]
    if not jumps.size:
        return -1.0, 1.0
    low, high = np.quantile(jumps, [(1 - AROUND) / 2, (1 + AROUND) / 2])
    low, high = min(low, 0.0, line.t), max(high, 0.0, line.t)
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)
