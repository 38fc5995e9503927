"""One pass over the bads: where only the first good's place is a question.

Pairwise map and a loss of the first good alone: with b bads above it every other good stands below those bads and below
the bads that score above it. One more bad above the first good passes all goods that stand above it so far, and adds
κ (number of these · its score - the sum of theirs).

First-relevant map: r bads above the lowest-scored good, all other goods at the end, where they earn least.
"""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["first_good_range", "first_relevant_range"]


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, BYTES, nb.int64, nb.int64, INTS,
    )
)  # fmt: skip
def first_good_range(
    height: Floats,
    share: Floats,
    discount: Floats,
    kappa: Floats,
    offsets: Ints,
    bads: Ints,
    taken: Bytes,
    begin: int,
    end: int,
    above: Ints,
) -> None:
    """above: how many bads stand above each good, of the queries that are `taken`, under the pairwise map."""
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], bads[q]
        first, bad = low + count, 0
        for good in range(first, high):
            while bad < count and height[low + bad] > height[good]:
                bad += 1
            above[good] = bad
        b = above[first]
        value = -share[low] * discount[low + b]
        most, at = value, b
        passed, scored = first, 0.0
        gained = 0.0
        while b < count:
            while passed < high and above[passed] <= b:
                scored += height[passed]
                passed += 1
            gained += kappa[q] * ((passed - first) * height[low + b] - scored)
            b += 1
            value = gained - share[low] * discount[low + b]
            if value > most:
                most, at = value, b
        for good in range(first, high):
            if above[good] >= at:
                break
            above[good] = at


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, BYTES, nb.int64, nb.int64, INTS,
    )
)  # fmt: skip
def first_relevant_range(
    height: Floats,
    share: Floats,
    discount: Floats,
    strength: Floats,
    offsets: Ints,
    bads: Ints,
    taken: Bytes,
    begin: int,
    end: int,
    above: Ints,
) -> None:
    """The same under the first-relevant map; goods by rising score. A good that earns no more there stands higher."""
    longest = 1
    for q in range(begin, end):
        longest = max(longest, offsets[q + 1] - offsets[q])
    run = np.empty(longest, np.int64)  # where the run of equal discounts that a position is in begins
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], bads[q]
        first = low + count
        lowest, gained = height[first], 0.0
        most, at = -share[low] * discount[low], 0
        for b in range(1, count + 1):
            gained += strength[q] * (height[low + b - 1] - lowest)
            value = gained - share[low] * discount[low + b]
            if value > most:
                most, at = value, b
        above[first] = at
        run[0] = 0
        for p in range(1, high - low):
            run[p] = run[p - 1] if discount[low + p] == discount[low + p - 1] else p
        for good in range(first + 1, high):
            rank = good - first
            b = 0 if share[low + rank] == 0.0 else max(run[rank + count] - rank, 0)
            above[good] = max(above[good - 1], b)
