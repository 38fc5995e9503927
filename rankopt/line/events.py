"""What a sweep tells: the jumping points of a measure along a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Events", "joined"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Events:
    """M(t) = start + Σ steps[e] over the events with times[e] < t, for t that is within `widths` of no event.

    start: the value at t = -∞. times, steps, widths: (E,), in no order. An event is a crossing of two lines of one
    query (or several at one time), and its width the rounding of that crossing: within it scores that are computed in
    floats may have either order.
    """

    start: float
    times: Floats
    steps: Floats
    widths: Floats


def joined(parts: Sequence[Events]) -> Events:
    """The events of all parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    return Events(
        sum(part.start for part in parts),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.widths for part in parts]),
    )
