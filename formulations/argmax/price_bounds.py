"""Prices for a search that leaves out what cannot be best: a good order gives them, they bound every other order.

For any prices v >= 0 and u_q = max_j (profit[q, j] - v_j), an order earns Σ u + Σ v less the slack u_q + v_j - profit
of each document placed (and the price of each one left out). So no order whose slack exceeds the distance of Σ u + Σ v
from a known value can beat that value. Profits count above those of the last position, where documents are left out.
"""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["greedy_labels", "loose_positions", "open_slack", "price_between", "raise_prices"]


@compiled(nb.void(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, INTS, BYTES))
def greedy_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    ahead: int,
    placed: Ints,
    label: Bytes,
) -> None:
    """label[p] = the chain whose head is best in the direction of the step from position p to a later one that differs:
    the next at least 1 / ahead of what remains away, or just the next if `ahead` is 0."""
    chains = worth.size
    placed[:] = 0
    upto = 0
    for p in range(stop):
        upto = max(upto, p + 1 if ahead == 0 else p + max((stop - p) // ahead, 1))
        while upto < stop and decay[upto] == decay[p] and discount[upto] == discount[p]:
            upto += 1
        dc, da = decay[p] - decay[upto], discount[p] - discount[upto]
        best, most = -1, -np.inf
        for g in range(chains):
            if placed[g] < size[g]:
                key = dc * height[start[g] + placed[g]] - da * worth[g]
                if key > most:
                    best, most = g, key
        label[p] = best
        placed[best] += 1


@compiled(nb.float64(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, BYTES, INTS, FLOATS))
def price_between(
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
) -> float:
    """price[slot] >= 0: midway between the least and the most that keep neighbours in place; the value of the order."""
    chains = worth.size
    floor_c, floor_a = decay[stop], discount[stop]
    placed[:] = 0
    for p in range(stop):
        placed[label[p]] += 1
    c, a = decay[stop - 1] - floor_c, discount[stop - 1] - floor_a
    best_out = -np.inf
    for g in range(chains):
        for slot in range(start[g] + placed[g], start[g] + size[g]):
            price[slot] = 0.0
        if placed[g] < size[g]:
            best_out = max(best_out, c * height[start[g] + placed[g]] - a * worth[g])
    total, level, s_after, b_after, c_after, a_after = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(stop - 1, -1, -1):
        g = label[p]
        placed[g] -= 1
        slot = start[g] + placed[g]
        s, b = height[slot], worth[g]
        c, a = decay[p] - floor_c, discount[p] - floor_a
        total += c * s - a * b
        if p == stop - 1:
            level = (c * s - a * b - best_out) / 2.0
        else:
            level += ((c + c_after) * (s - s_after) - (a + a_after) * (b - b_after)) / 2.0
        level = max(level, 0.0)
        price[slot] = level
        s_after, b_after, c_after, a_after = s, b, c, a
    return total


@compiled(
    nb.float64(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, FLOATS, nb.float64, INTS, FLOATS)
)
def open_slack(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    price: Floats,
    value: float,
    hull: Ints,
    most: Floats,
) -> float:
    """most[p] = u_p = max over documents of profit less price; how far Σ u + Σ v is above `value`.

    In a chain the profit less price is a line in the decay for each document: their upper envelope is walked once.
    """
    floor_c, floor_a = decay[stop], discount[stop]
    most[:stop] = -np.inf
    total = -value
    for g in range(worth.size):
        held = 0
        for slot in range(start[g], start[g] + size[g]):
            total += price[slot]
            s, v = height[slot], price[slot]
            if held and s == height[hull[held - 1]]:
                if v >= price[hull[held - 1]]:
                    continue
                held -= 1
            while held >= 2:
                one, two = hull[held - 2], hull[held - 1]
                # The line of `two` is nowhere above both of the others.
                left = (price[one] - v) * (height[one] - height[two])
                if left >= (price[one] - price[two]) * (height[one] - s):
                    held -= 1
                else:
                    break
            hull[held] = slot
            held += 1
        at = 0
        for p in range(stop):
            c = decay[p] - floor_c
            here = c * height[hull[at]] - price[hull[at]]
            while at + 1 < held:
                after = c * height[hull[at + 1]] - price[hull[at + 1]]
                if after < here:
                    break
                here, at = after, at + 1
            most[p] = max(most[p], here - (discount[p] - floor_a) * worth[g])
    for p in range(stop):
        total += most[p]
    return total


@compiled(
    nb.int64(
        FLOATS, READ_FLOATS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, BYTES, INTS, FLOATS, FLOATS, nb.float64,
    )
)  # fmt: skip
def loose_positions(
    height: Floats,
    worth: Floats,
    start: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    label: Bytes,
    placed: Ints,
    price: Floats,
    most: Floats,
    noise: float,
) -> int:
    """How many positions have a document whose profit less price is not within `noise` of the most there."""
    floor_c, floor_a = decay[stop], discount[stop]
    placed[:] = 0
    loose = 0
    for p in range(stop):
        g = label[p]
        slot = start[g] + placed[g]
        placed[g] += 1
        own = (decay[p] - floor_c) * height[slot] - (discount[p] - floor_a) * worth[g] - price[slot]
        loose += most[p] - own > noise
    return loose


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
