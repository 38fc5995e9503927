"""What a sweep tells: the jumping points of a measure along a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.threads import share

__all__ = ["StepEvents", "joined"]

Floats = NDArray[np.float64]

MANY = 1 << 15
"""Events from which threads put them together: memory that is new takes longer than to hand out the work."""


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
    told = StepEvents(sum(part.start for part in parts), *np.empty((3, int(ends[-1]))))

    def fill(number: int) -> None:
        part, rows = parts[number], slice(int(ends[number]) - parts[number].times.size, int(ends[number]))
        told.times[rows], told.steps[rows], told.widths[rows] = part.times, part.steps, part.widths

    if told.times.size > MANY:
        share(len(parts), fill)
    else:
        for number in range(len(parts)):
            fill(number)
    return told
