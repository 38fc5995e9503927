"""Prices raised until no position wants a document that stands before it."""

import numba as nb

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["raise_prices"]


@compiled(nb.void(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, BYTES, INTS, FLOATS))
def raise_prices(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    label: Bytes,
    placed: Ints,
    price: Floats,
) -> None:
    """One pass of Bellman-Ford up the positions, from the last: price[x] >= price[own] + profit[p, x] - profit[p, own]
    for the documents x before p, own the one at p.

    Only the last of each chain before p is looked at: it has still to raise the prices of those before it. Documents
    that are left out keep their prices. placed: room for a number a chain.
    """
    chains = worth.size
    floor_c, floor_a = decay[stop], discount[stop]
    placed[:] = 0
    for p in range(stop):
        placed[label[p]] += 1
    for p in range(stop - 1, -1, -1):
        g = label[p]
        placed[g] -= 1
        slot = start[g] + placed[g]
        c, a = decay[p] - floor_c, discount[p] - floor_a
        level = price[slot] - c * height[slot] + a * worth[g]
        for h in range(chains):
            if placed[h] > 0:
                other = start[h] + placed[h] - 1
                price[other] = max(price[other], level + c * height[other] - a * worth[h])
