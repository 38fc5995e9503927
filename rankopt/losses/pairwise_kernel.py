"""Counting the pairs that violate a margin of one, by a sweep with a Fenwick tree."""

from itertools import pairwise

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import INTS, READ_FLOATS, READ_INTS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["count_violations", "count_violations_in_numpy"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(nb.void(INTS, nb.int64))
def _insert(tree: Ints, level: int) -> None:
    """Count one more document of this level (from 0)."""
    i = level + 1
    while i < tree.size:
        tree[i] += 1
        i += i & -i


@compiled(nb.int64(INTS, nb.int64))
def _below(tree: Ints, level: int) -> int:
    """How many counted documents have a lower level."""
    total = 0
    i = level
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@compiled(nb.void(READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, INTS, INTS))
def count_violations(
    scores: Floats, level: Ints, offsets: Ints, first: int, last: int, above: Ints, below: Ints
) -> None:
    """For document j of the queries first <= q < last, above[j] counts the documents i of its query with
    level_i > level_j and s_i - s_j < 1, and below[j] those with level_i < level_j and s_j - s_i < 1."""
    for q in range(first, last):
        low, count = offsets[q], offsets[q + 1] - offsets[q]
        own, grade = scores[low : low + count], level[low : low + count]
        rising = np.arange(count)
        sort_falling(rising, -own, np.empty(count, np.int64))
        levels = 1
        for j in range(count):
            levels = max(levels, grade[j] + 1)
        near, far, total = (
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
        )
        for j in range(count):
            _insert(total, grade[j])
        reached, passed = 0, 0
        for place in range(count):
            j = rising[place]
            while reached < count and own[rising[reached]] - own[j] < 1.0:
                _insert(near, grade[rising[reached]])
                reached += 1
            while passed < count and own[j] - own[rising[passed]] >= 1.0:
                _insert(far, grade[rising[passed]])
                passed += 1
            above[low + j] = reached - _below(near, grade[j] + 1)
            below[low + j] = _below(total, grade[j]) - _below(far, grade[j])


def count_violations_in_numpy(scores: Floats, level: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """`above` and `below` of `count_violations` for all queries, pair by pair."""
    above, below = np.empty(scores.size, np.int64), np.empty(scores.size, np.int64)
    for low, high in pairwise(offsets.tolist()):
        own, grade = scores[low:high], level[low:high]
        near = (own[:, None] - own < 1.0) & (grade[:, None] > grade)
        above[low:high], below[low:high] = near.sum(axis=0), near.sum(axis=1)
    return above, below
