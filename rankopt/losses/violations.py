"""Counting the pairs that violate a margin of one, by a sweep with a Fenwick tree."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["count_violations"]

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


@compiled(nb.void(READ_FLOATS, READ_INTS, READ_INTS, READ_INTS, INTS, INTS))
def count_violations(scores: Floats, level: Ints, rows: Ints, offsets: Ints, above: Ints, below: Ints) -> None:
    """For document j, above[j] counts the documents i of its query with level_i > level_j and s_i - s_j < 1, and
    below[j] those with level_i < level_j and s_j - s_i < 1. `rows` lists the rows by query, then by rising score."""
    for q in range(offsets.size - 1):
        low, high = offsets[q], offsets[q + 1]
        levels = 1
        for row in range(low, high):
            levels = max(levels, level[row] + 1)
        near, far, total = (
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
        )
        for row in range(low, high):
            _insert(total, level[row])
        reached, passed = low, low
        for place in range(low, high):
            j = rows[place]
            while reached < high and scores[rows[reached]] - scores[j] < 1.0:
                _insert(near, level[rows[reached]])
                reached += 1
            while passed < high and scores[j] - scores[rows[passed]] >= 1.0:
                _insert(far, level[rows[passed]])
                passed += 1
            above[j] = (reached - low) - _below(near, level[j] + 1)
            below[j] = _below(total, level[j]) - _below(far, level[j])
