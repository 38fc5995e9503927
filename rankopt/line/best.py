"""The best open interval of a step function, without sorting its events.

Events fall into bins of t. In a bin the function is nowhere above its value before the bin plus what the bin's positive
steps add up to. The bin of the largest bound is sorted first; then only those whose bound reaches what it holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankopt.line.events import StepEvents
from rankopt.line.steps import StepFunction

__all__ = ["best_interval"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 1 << 12
"""Events that are sorted at once."""

BINS = 1 << 15
"""Bins, at most."""

EQUAL = 1e-12
"""Values that differ by less are one: sums of steps are rounded."""


def best_interval(events: StepEvents) -> tuple[float, float, float]:
    """The interval (low, high) of the largest value, and that value; of equal ones the nearest to 0."""
    if events.times.size <= FEW:
        steps = StepFunction.of(events)
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
    asked = np.zeros(before.size, dtype=bool)
    asked[filled[wanted[:-1]]] = True
    rows = np.flatnonzero(asked[bins])
    rows = rows[np.argsort(events.times[rows], kind="stable")]
    times, widths, steps, own = events.times[rows], events.widths[rows], events.steps[rows], bins[rows]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    lengths = np.diff(np.append(starts, own.size))
    sums = np.cumsum(steps)
    values = before[own] + sums - np.repeat(sums[starts] - steps[starts], lengths)
    ends = starts + lengths - 1
    apart = np.append(times[1:] - times[:-1] > widths[1:] + widths[:-1], True)
    place = np.searchsorted(filled, own[ends])
    apart[ends] &= wanted[place + 1] | (place == filled.size - 1)  # else what follows was not asked for
    lows, highs = (times + widths)[apart], np.append((times - widths)[1:], np.inf)[apart]
    return (
        np.append(-np.inf, lows),
        np.append(times[0] - widths[0], highs),
        np.append(events.start, values[apart]),
    )


def _nearest(lows: Floats, highs: Floats, values: Floats) -> tuple[float, float, float]:
    top = np.flatnonzero(values >= values.max() - EQUAL)
    away = np.maximum(np.maximum(lows[top], -highs[top]), 0.0)
    i = top[np.argmin(away)]
    return float(lows[i]), float(highs[i]), float(values[i])


def _bins(times: Floats) -> Ints:
    """A bin for each time, in the order of the times: by exponent and first digits, as they stand in memory."""
    bits = (times + 0.0).view(np.int64)
    ordered = np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
    low, high = int(ordered.min()), int(ordered.max())
    shift = max(0, (high - low).bit_length() - (BINS.bit_length() - 1))
    return np.asarray((ordered >> shift) - (low >> shift))
