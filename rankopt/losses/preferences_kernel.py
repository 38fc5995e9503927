"""By how much violated pairs differ in gain, by two sweeps with a Fenwick tree of counts and sums."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Shorts
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["sum_gains"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(nb.void(INTS, FLOATS, nb.int64, nb.float64))
def _insert(count: Ints, total: Floats, level: int, gain: float) -> None:
    """One more document of this level (from 0) and gain."""
    i = level + 1
    while i < count.size:
        count[i] += 1
        total[i] += gain
        i += i & -i


@compiled(nb.float64(INTS, FLOATS, nb.int64, nb.float64))
def _apart(count: Ints, total: Floats, level: int, gain: float) -> float:
    """Σ of their gains - `gain` over the documents of a lower level."""
    summed, found = 0.0, 0
    i = level
    while i > 0:
        found += count[i]
        summed += total[i]
        i -= i & -i
    return summed - found * gain


@compiled(nb.void(READ_FLOATS, READ_SHORTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS))
def sum_gains(
    scores: Floats, level: Shorts, gain: Floats, offsets: Ints, first: int, last: int, above: Floats, below: Floats
) -> None:
    """For document j of the queries first <= q < last, above[j] = Σ gain_i - gain_j over the documents i of its query
    with level_i > level_j and s_i - s_j < 1, below[j] = Σ gain_j - gain_i over those with level_i < level_j and
    s_j - s_i < 1. Both sweeps only add, so that nothing cancels; the tree of the first counts levels from the top."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    rising, spare, key = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
    counts, totals = np.empty(longest + 1, np.int64), np.empty(longest + 1)
    for q in range(first, last):
        low, size = offsets[q], offsets[q + 1] - offsets[q]
        levels = 0
        for j in range(size):
            rising[j], key[j] = j, -scores[low + j]
            levels = max(levels, level[low + j] + 1)
        sort_falling(rising[:size], key[:size], spare[:size])
        count, total = counts[: levels + 1], totals[: levels + 1]
        for i in range(levels + 1):
            count[i], total[i] = 0, 0.0
        reached = 0
        for place in range(size):
            j = low + rising[place]
            while reached < size and scores[low + rising[reached]] - scores[j] < 1.0:
                i = low + rising[reached]
                _insert(count, total, levels - 1 - level[i], gain[i])
                reached += 1
            above[j] = _apart(count, total, levels - 1 - level[j], gain[j])
        for i in range(levels + 1):
            count[i], total[i] = 0, 0.0
        reached = size - 1
        for place in range(size - 1, -1, -1):
            j = low + rising[place]
            while reached >= 0 and scores[j] - scores[low + rising[reached]] < 1.0:
                i = low + rising[reached]
                _insert(count, total, level[i], gain[i])
                reached -= 1
            below[j] = -_apart(count, total, level[j], gain[j])
