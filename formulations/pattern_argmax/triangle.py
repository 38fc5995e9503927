"""A discount that ends at position k: a grid of the first k positions, a triangle, and a tail without loss.

Good g with b bads above, g + b < k, adds its cell; what stands behind position k earns nothing and comes in order of
score. Under the pairwise map good x of the tail has max(k - g, β_x) bads above, β_x those that score above it: a sum
over goods from some on, and over those before it of whole runs, so each of the k + 1 tails costs O(1) after one pass.
Under the positional map a tail is merged: O(n) each.
"""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["triangle_range"]


@compiled(nb.void(READ_FLOATS, READ_FLOATS, nb.float64, nb.int64, FLOATS, INTS, FLOATS, FLOATS, FLOATS))
def _pairwise_tails(
    bad: Floats,
    good: Floats,
    kappa: float,
    k: int,
    tail: Floats,
    beta: Ints,
    scored: Floats,
    summed: Floats,
    free: Floats,
) -> None:
    """tail[g]: what goods g, g + 1, ... add behind k - g bads, for each g at hand. beta[x]: bads that score above x.
    scored, summed, free: room."""
    b, g = bad.size, good.size
    scored[0] = summed[0] = free[g] = 0.0
    for j in range(b):
        scored[j + 1] = scored[j] + bad[j]
    passed = 0
    for x in range(g):
        summed[x + 1] = summed[x] + good[x]
        while passed < b and bad[passed] > good[x]:
            passed += 1
        beta[x] = passed
    for x in range(g - 1, -1, -1):
        free[x] = free[x + 1] + kappa * (scored[beta[x]] - beta[x] * good[x])
    until = 0
    for x in range(min(k, g), max(k - b, 0) - 1, -1):
        here = k - x  # grows as x falls
        while until < g and beta[until] < here:
            until += 1
        tail[x] = free[max(until, x)]
        if until > x:
            tail[x] += kappa * ((until - x) * scored[here] - here * (summed[until] - summed[x]))


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, nb.int64, FLOATS))
def _positional_tails(bad: Floats, good: Floats, decay: Floats, k: int, tail: Floats) -> None:
    for first in range(max(k - bad.size, 0), min(k, good.size) + 1):
        x, j, total = first, k - first, 0.0
        for p in range(k, decay.size):
            if x < good.size and (j == bad.size or good[x] >= bad[j]):
                total += decay[p] * good[x]
                x += 1
            else:
                total += decay[p] * bad[j]
                j += 1
        tail[first] = total


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, nb.boolean, READ_INTS, READ_INTS, READ_INTS, BYTES,
        nb.int64, nb.int64, INTS,
    )
)  # fmt: skip
def triangle_range(
    height: Floats,
    share: Floats,
    discount: Floats,
    weight: Floats,
    positional: bool,
    offsets: Ints,
    bads: Ints,
    stop: Ints,
    taken: Bytes,
    begin: int,
    end: int,
    above: Ints,
) -> None:
    """above: how many bads stand above each good, of the queries that are `taken`; weight: of the feature map."""
    longest, deepest = 1, 0
    for q in range(begin, end):
        if taken[q]:
            longest, deepest = max(longest, offsets[q + 1] - offsets[q]), max(deepest, stop[q])
    beta, tail = np.empty(longest, np.int64), np.empty(deepest + 1)
    scored, summed, free = np.empty(longest + 1), np.empty(longest + 1), np.empty(longest + 1)
    reached, by_good = np.empty((deepest + 1, deepest + 1)), np.empty((deepest + 1, deepest + 1), np.bool_)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b, k = offsets[q], offsets[q + 1], bads[q], stop[q]
        bad, good, d = height[low : low + b], height[low + b : high], discount[low:high]
        g = good.size
        c = weight[low:high] if positional else d
        kappa = 0.0 if positional else weight[q]
        if positional:
            _positional_tails(bad, good, c, k, tail)
        else:
            _pairwise_tails(bad, good, kappa, k, tail, beta, scored, summed, free)
        most, at = -np.inf, 0
        for x in range(min(k, g) + 1):
            passed = 0.0
            for j in range(min(k - x, b) + 1):
                value = -np.inf
                if x == 0 and j == 0:
                    value = 0.0
                if j > 0:
                    value = reached[x, j - 1] + (c[x + j - 1] * bad[j - 1] if positional else 0.0)
                    by_good[x, j] = False
                if x > 0:
                    p = x - 1 + j
                    up = c[p] * good[x - 1] if positional else kappa * (passed - j * good[x - 1])
                    other = reached[x - 1, j] + up - share[low + x - 1] * d[p]
                    if other > value:
                        value = other
                        by_good[x, j] = True
                reached[x, j] = value
                if j < b:
                    passed += bad[j]
                if x + j == k and value + tail[x] >= most:
                    most, at = value + tail[x], x
        there = above[low + b : high]
        x, j = at, k - at
        if positional:
            passed_bads = j
            for y in range(x, g):
                while passed_bads < b and bad[passed_bads] > good[y]:
                    passed_bads += 1
                there[y] = passed_bads
        else:
            for y in range(x, g):
                there[y] = max(j, beta[y])
        while x > 0:
            if by_good[x, j]:
                there[x - 1] = j
                x -= 1
            else:
                j -= 1
