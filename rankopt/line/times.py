"""Crossings of one line in order of time: nearly linear, for times that spread like those of random lines."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["sort_times"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 24
"""Times that are put in order one by one; and as many in one bucket, at most."""


@compiled(nb.void(FLOATS, INTS))
def _insert_all(times: Floats, who: Ints) -> None:
    """Insertion sort, linear where hardly anything is out of order."""
    for i in range(1, times.size):
        t, line = times[i], who[i]
        j = i
        while j > 0 and times[j - 1] > t:
            times[j], who[j] = times[j - 1], who[j - 1]
            j -= 1
        times[j], who[j] = t, line


@compiled(nb.void(FLOATS, INTS, FLOATS, INTS, INTS, INTS))
def sort_times(times: Floats, who: Ints, spare: Floats, lines: Ints, bucket: Ints, counts: Ints) -> None:
    """Sort times, and who crosses with them. spare, lines, bucket, counts: room for as many, of counts one more.

    They are dealt into buckets by t / (|t| + c), c the middle one of nine |t|, and what is out of order then is
    inserted: right whatever the buckets are. Times that crowd in one are merged instead.
    """
    n = times.size
    if n <= FEW:
        _insert_all(times, who)
        return
    for i in range(9):
        spare[i] = abs(times[i * (n - 1) // 8])
    for i in range(1, 9):
        for j in range(i, 0, -1):
            if spare[j] < spare[j - 1]:
                spare[j], spare[j - 1] = spare[j - 1], spare[j]
    middle, crowd = spare[4], 0
    usable = 0.0 < middle < np.inf
    if usable:
        counts[: n + 1] = 0
        for i in range(n):
            t = times[i]
            size = abs(t)
            part = t / (size + middle) if size < np.inf else -1.0
            b = min(int((part + 1.0) * (0.5 * n)), n - 1)
            bucket[i] = b
            counts[b + 1] += 1
            crowd = max(crowd, counts[b + 1])
    if usable and crowd <= FEW:
        for b in range(n):
            counts[b + 1] += counts[b]
        for i in range(n):
            place = counts[bucket[i]]
            counts[bucket[i]] += 1
            spare[place], lines[place] = times[i], who[i]
    else:
        for i in range(n):
            bucket[i], spare[i] = i, -times[i]
        sort_falling(bucket[:n], spare[:n], counts[:n])
        for i in range(n):
            spare[i], lines[i] = times[bucket[i]], who[bucket[i]]
    for i in range(n):
        times[i], who[i] = spare[i], lines[i]
    _insert_all(times, who)
