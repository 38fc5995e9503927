"""Prices that prove a sequence of groups best: what passing a position costs a unit of a group.

Heights are longest ways, from anywhere, in what may still change of the sequence: a unit of group g before position
p + 1 passes position p where a limit leaves room, goes back over it where a limit lets it, or changes to another group
where a position does. No way rises round a circle where the sequence is best, and the heights prove that it is.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.compiled import READ_INTS, compiled

__all__ = ["settle_prices"]

WORTH = nb.types.Array(nb.float64, 2, "C", readonly=True)
LIMITS = nb.types.Array(nb.int64, 2, "C", readonly=True)
MASK = nb.types.Array(nb.bool_, 2, "C", readonly=True)
TABLE = nb.types.Array(nb.float64, 2, "C")


@compiled(nb.void(WORTH, READ_INTS, LIMITS, LIMITS, MASK, nb.float64, READ_INTS, LIMITS, TABLE))
def settle_prices(
    worth: Floats,
    start: Ints,
    lower: Ints,
    upper: Ints,
    banned: Bools,
    noise: float,
    group: Ints,
    held: Ints,
    price: Floats,
) -> None:
    """price[g, p] of passing position p in group g, for the group at each position; held[g, p] of g stand at positions
    0 .. p. As many sweeps as nodes at most; what rises within `noise` is level."""
    groups, k = lower.shape
    height = np.zeros((groups, k + 1))
    top = 0.0
    moved, sweeps = True, 0
    while moved and sweeps <= groups * k:
        moved = False
        sweeps += 1
        for p in range(k):
            h = group[p]
            for g in range(groups):
                if not banned[g, p] and height[h, p] > height[g, p] + noise:
                    height[g, p] = height[h, p]
                    moved = True
            for g in range(groups):
                n = held[g, p]
                if n < upper[g, p]:
                    risen = height[g, p] + worth[p, start[g] + n]
                    if p == k - 1:
                        if risen > top + noise:
                            top = risen
                            moved = True
                    elif risen > height[g, p + 1] + noise:
                        height[g, p + 1] = risen
                        moved = True
        for p in range(k - 1, -1, -1):
            for g in range(groups):
                n = held[g, p]
                if n > lower[g, p]:
                    after = top if p == k - 1 else height[g, p + 1]
                    risen = after - worth[p, start[g] + n - 1]
                    if risen > height[g, p] + noise:
                        height[g, p] = risen
                        moved = True
            h = group[p]
            for g in range(groups):
                if not banned[g, p] and height[h, p] > height[g, p] + noise:
                    height[g, p] = height[h, p]
                    moved = True
    for g in range(groups):
        height[g, k] = top
        for p in range(k):
            price[g, p] = height[g, p + 1] - height[g, p]
