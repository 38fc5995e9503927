"""The whole grid of goods and bads: every cell looked at, whatever the loss; O(n₊ n₋).

reached[b] after g goods is the most that a path to (g, b) earns; how it came there is kept, a byte a state, and read
backwards.
"""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["grid_range"]

_PAIRWISE, _POSITIONAL, _FIRST = range(3)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, READ_INTS, READ_INTS,
        BYTES, nb.int64, nb.int64, INTS,
    )
)  # fmt: skip
def grid_range(
    height: Floats,
    share: Floats,
    discount: Floats,
    table: Floats,
    weight: Floats,
    starts: Ints,
    kind: int,
    offsets: Ints,
    bads: Ints,
    taken: Bytes,
    begin: int,
    end: int,
    above: Ints,
) -> None:
    """above: how many bads stand above each good, of the queries that are `taken`. Where a query has a table, of shape
    (2, bads + 1, goods + 1), it says what both earn."""
    longest, largest = 1, 1
    for q in range(begin, end):
        if taken[q]:
            n = offsets[q + 1] - offsets[q]
            longest, largest = max(longest, n), max(largest, (bads[q] + 1) * (n - bads[q] + 1))
    reached, by_good = np.empty(longest + 1), np.empty(largest, np.bool_)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b = offsets[q], offsets[q + 1], bads[q]
        g = high - low - b
        bad, good, d = height[low : low + b], height[low + b : high], discount[low:high]
        cells = table[starts[q] : starts[q + 1]]
        tabled, half = cells.size > 0, (b + 1) * (g + 1)
        strength = 0.0 if kind == _POSITIONAL else weight[q]
        for x in range(g + 1):
            passed, row = 0.0, x * (b + 1)
            for j in range(b + 1):
                value = -np.inf
                if x == 0 and j == 0:
                    value = 0.0
                if j > 0:
                    step = 0.0
                    if kind == _POSITIONAL:
                        step = weight[low + x + j - 1] * bad[j - 1]
                    elif kind == _FIRST and x == 0:
                        step = strength * bad[j - 1]
                    if tabled:
                        step -= cells[(j - 1) * (g + 1) + x]
                    value = reached[j - 1] + step
                    by_good[row + j] = False
                if x > 0:
                    s, step = good[x - 1], 0.0
                    if kind == _POSITIONAL:
                        step = weight[low + x - 1 + j] * s
                    elif kind == _PAIRWISE:
                        step = strength * (passed - j * s)
                    elif x == 1:
                        step = -strength * j * s
                    if tabled:
                        step -= cells[half + j * (g + 1) + x - 1]
                    else:
                        step -= share[low + x - 1] * d[x - 1 + j]
                    other = reached[j] + step
                    if other > value:
                        value = other
                        by_good[row + j] = True
                reached[j] = value
                if j < b:
                    passed += bad[j]
        x, j = g, b
        while x > 0:
            if by_good[x * (b + 1) + j]:
                above[low + b + x - 1] = j
                x -= 1
            else:
                j -= 1
