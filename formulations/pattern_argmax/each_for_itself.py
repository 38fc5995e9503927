"""Every bad for itself: where all rows of cells are concave, bads under the pairwise map choose their places alone.

Bad j (from 1, by falling score) above goods i, i + 1, ... adds f(j, i) = Σ_{i' >= i} [cell(i', j) - cell(i', j - 1)].
Concave rows make each term fall with j, so f(j, i) - f(j, i') falls with j for i < i': a lower i wins for the first
bads, if at all, and who wins where is an envelope of the goods. Goods enter it one by one; each is held against the
last winner, and where they part is found by halving: n₊ log n₋ values of f, each of O(1) by sums over the goods'
scores and over the steps of the discount, as share[g] = first + rise · g.
"""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["each_range"]


@compiled(
    nb.float64(
        READ_FLOATS, FLOATS, READ_FLOATS, READ_FLOATS, nb.float64, nb.float64, nb.float64, nb.int64, nb.int64, nb.int64,
    )
)  # fmt: skip
def _apart(
    bad: Floats, after: Floats, discount: Floats, moment: Floats,
    kappa: float, first: float, rise: float, j: int, i: int, other: int,
) -> float:  # fmt: skip
    """f(j, i) - f(j, other) for i < other; after[i]: the sum of the goods' scores from i on."""
    p, o = i + j - 1, other + j - 1
    scored = kappa * ((other - i) * bad[j - 1] - (after[i] - after[other]))
    earned = (first + rise * (1 - j)) * (discount[p] - discount[o]) + rise * (moment[o] - moment[p])
    return float(scored + earned)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, BYTES,
        nb.int64, nb.int64, INTS,
    )
)  # fmt: skip
def each_range(
    height: Floats,
    share: Floats,
    discount: Floats,
    moment: Floats,
    kappa: Floats,
    offsets: Ints,
    bads: Ints,
    taken: Bytes,
    begin: int,
    end: int,
    above: Ints,
) -> None:
    """above: how many bads stand above each good, of the queries that are `taken`. Of equal places a bad takes the
    lower one."""
    longest = 1
    for q in range(begin, end):
        longest = max(longest, offsets[q + 1] - offsets[q])
    after = np.empty(longest + 1)
    winner, begins = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b = offsets[q], offsets[q + 1], bads[q]
        g = high - low - b
        bad, good, d, m = height[low : low + b], height[low + b : high], discount[low:high], moment[low:high]
        first, rise = share[low], 0.0
        if g > 1:
            rise = (share[low + g - 1] - first) / (g - 1)
        after[g] = 0.0
        for i in range(g - 1, -1, -1):
            after[i] = after[i + 1] + good[i]
        rest, k = after[: g + 1], kappa[q]
        held = 1
        winner[0], begins[0] = 0, 1
        for i in range(1, g + 1):
            while held and not _apart(bad, rest, d, m, k, first, rise, begins[held - 1], winner[held - 1], i) > 0.0:
                held -= 1
            if not held:
                winner[0], begins[0], held = i, 1, 1
                continue
            last = winner[held - 1]
            if _apart(bad, rest, d, m, k, first, rise, b, last, i) > 0.0:
                continue
            # `last` wins at `sure`, i at `lost`
            sure, lost = begins[held - 1], b
            while lost - sure > 1:
                middle = (sure + lost) // 2
                if _apart(bad, rest, d, m, k, first, rise, middle, last, i) > 0.0:
                    sure = middle
                else:
                    lost = middle
            winner[held], begins[held] = i, lost
            held += 1
        there = above[low + b : high]
        for w in range(held):
            passed = b if w == held - 1 else begins[w + 1] - 1
            until = g if w == held - 1 else winner[w + 1]
            for i in range(winner[w], until):
                there[i] = passed
        for i in range(winner[0]):
            there[i] = 0
