"""Any measure along a line, by all crossings: the rankings between them are valued by the measure itself.

For measures that say nothing of how they change, and for data so small that compiled sweeps are not worth compiling.
O(n³) memory and time for the n documents of a query, in blocks.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankopt.line.intersections import ROUNDING
from rankopt.line.step_function import StepEvents, joined
from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import ranked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 1 << 17
"""Documents of rankings that are valued at once, about."""


def sweep_crossings(
    measure: Measure, scores: Floats, slopes: Floats, relevance: Floats, weights: Floats, offsets: Ints
) -> StepEvents:
    """The events of Σ_q v_q measure_q(s + t a): scores s, slopes a and grades (N,), weights v (m,)."""
    found = [StepEvents(0.0, *(np.zeros(0) for _ in range(3)))]
    for weight, (low, high) in zip(weights, pairwise(offsets.tolist()), strict=True):
        rows = slice(low, high)
        found.append(_of_query(measure, scores[rows], slopes[rows], relevance[rows], float(weight)))
    return joined(found)


def _of_query(measure: Measure, s: Floats, a: Floats, grades: Floats, weight: float) -> StepEvents:
    upper, steeper = np.nonzero(a[:, None] < a)  # every pair that crosses: who stands above before it, and after it
    with np.errstate(over="ignore"):
        rise = a[steeper] - a[upper]
        times = (s[upper] - s[steeper]) / rise + 0.0
        far = np.abs(s[upper]) + np.abs(s[steeper]) + np.abs(times) * (np.abs(a[upper]) + np.abs(a[steeper]))
        widths = ROUNDING * far / rise
    kept = times < np.inf
    upper, steeper, times, widths = upper[kept], steeper[kept], times[kept], widths[kept]
    jumps, which = np.unique(times, return_inverse=True)
    values = weight * _values(measure, s, a, grades, upper, steeper, which, jumps.size)
    widest = np.zeros(jumps.size)
    np.maximum.at(widest, which, widths)
    steps = np.diff(values)
    moved = (steps != 0) & (jumps > -np.inf)
    begun = int(jumps.size > 0 and jumps[0] == -np.inf)
    return StepEvents(float(values[begun]), jumps[moved], steps[moved], widest[moved])


def _values(
    measure: Measure, s: Floats, a: Floats, grades: Floats, upper: Ints, steeper: Ints, which: Ints, jumps: int
) -> Floats:
    """(jumps + 1,) the values before the first jump, between them, and after the last."""
    n = s.size
    moved = np.zeros((jumps + 1, n), dtype=np.int32)  # how many more stand above a document after each jump
    np.add.at(moved, (which + 1, upper), 1)
    np.add.at(moved, (which + 1, steeper), -1)
    moved[0] = ((a[:, None] > a) | ((a[:, None] == a) & (s[:, None] < s))).sum(axis=1)
    above = np.cumsum(moved, axis=0, out=moved)
    values, rows = np.empty(jumps + 1), max(1, BLOCK // n)
    for begin in range(0, jumps + 1, rows):
        scores = -above[begin : begin + rows].astype(np.float64)
        offsets = np.arange(len(scores) + 1) * n
        values[begin : begin + rows] = measure.values(ranked(np.tile(grades, len(scores)), scores.ravel(), offsets))
    return values
