"""The best order from a good one: positions whose document does not suit the prices are filled by shortest paths.

Prices v and levels u_p >= profit[p, j] - v_j are given. Documents that reach the level of their position stay; each of
the other positions takes the document at the end of a shortest path of exchanges [Jonker and Volgenant 1987], prices
rising along it, so levels and prices prove the order in the end. One path costs at most O(n log n)
for a few chains, and next to nothing where it stays near.

In each chain only the neighbours of a position and what is free between them are looked at: beyond a neighbour j' that
stands at q', the way to j over q' is no longer, for (c_q' - c_p)(s_j' - s_j) <= 0. Documents left out stand at one more
position, of weight zero, that has room for all of them.
"""

import numba as nb
import numpy as np

from formulations.argmax.heap import lift, take_nearest
from formulations.argmax.placement import FREE, TABLE, restore_order
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["augment"]


@compiled(nb.int64(nb.int64, nb.float64, nb.float64, nb.int64, FLOATS, INTS, INTS, INTS, INTS, nb.int64))
def _reach(
    slot: int,
    d: float,
    base: float,
    row: int,
    distance: Floats,
    by: Ints,
    heap: Ints,
    place: Ints,
    seen: Ints,
    held: int,
) -> int:
    """A way to `slot` of length d from a position at distance base: kept if shorter; how many the heap then holds."""
    d = max(d, base)
    if d < distance[slot]:
        if place[slot] < 0:
            place[slot], heap[held] = held, slot
            held += 1
            seen[seen[0] + 1] = slot
            seen[0] += 1
        distance[slot], by[slot] = d, row
        lift(heap, place, distance, place[slot])
    return held


@compiled(
    nb.void(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, FLOATS, FLOATS, nb.float64, BYTES, BYTES,
        TABLE,
    )
)  # fmt: skip
def augment(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    price: Floats,
    most: Floats,
    noise: float,
    label: Bytes,
    chain: Bytes,
    after: Shorts,
) -> None:
    """Make `label` (the chain at each position, see `best_labels`) optimal, price its prices.

    price, most: see `price_bounds`; what is within `noise` of the level of its position stays. Room: chain a slot,
    after stop rows of all chains.
    """
    chains, slots = worth.size, height.size
    floor_c, floor_a = decay[stop], discount[stop]
    stands, holds = np.full(slots, FREE, np.int64), np.full(stop, FREE, np.int64)
    at, open_, opened, names = start[:chains].copy(), np.empty(stop, np.int64), 0, np.empty(stop, np.int8)
    for g in range(chains):
        for slot in range(start[g], start[g] + size[g]):
            chain[slot], stands[slot] = g, stop
    for p in range(stop):
        g = label[p]
        slot = at[g]
        at[g] += 1
        if most[p] + price[slot] - ((decay[p] - floor_c) * height[slot] - (discount[p] - floor_a) * worth[g]) <= noise:
            holds[p], stands[slot] = slot, p
        else:
            stands[slot], open_[opened] = FREE, p
            opened += 1
    idle = 0.0
    restore_order(holds, stands, start, size, chain, after, names, at, 0, stop, price, idle)
    distance, by, done = np.full(slots, np.inf), np.empty(slots, np.int64), np.zeros(slots, np.bool_)
    heap, place, seen = np.empty(slots, np.int64), np.full(slots, -1, np.int64), np.empty(slots + 1, np.int64)
    for p in open_[:opened]:
        held, row, base, own, entry = 0, p, 0.0, -1, -1
        seen[0] = 0
        while True:
            # All ways by one more exchange from this position, whose own document is at distance `base`.
            c, a, level = 0.0, 0.0, base - idle
            if row < stop:
                c, a = decay[row] - floor_c, discount[row] - floor_a
                level = most[p] if own < 0 else base + c * height[own] - a * worth[chain[own]] - price[own]
            last = min(row, stop - 1)
            for g in range(chains):
                middle, end, offset = after[last, g], start[g] + size[g], level + a * worth[g]
                for slot in range(middle - 1, start[g] - 1, -1):
                    if slot == own:
                        continue
                    if not done[slot]:
                        d = offset + price[slot] - c * height[slot]
                        held = _reach(slot, d, base, row, distance, by, heap, place, seen, held)
                    if stands[slot] != FREE:
                        break
                for slot in range(middle, end):
                    left_out = stands[slot] == stop
                    if row == stop and left_out:
                        continue
                    if not done[slot]:
                        d = offset + (idle if left_out else price[slot]) - c * height[slot]
                        held = _reach(slot, d, base, row, distance, by, heap, place, seen, held)
                    if row < stop and stands[slot] != FREE:
                        break
            while True:
                own = take_nearest(heap, place, distance, held)
                held -= 1
                if stands[own] != stop or entry < 0:
                    break
            if stands[own] == FREE:
                break
            base, row = distance[own], stands[own]
            done[own] = True
            if row == stop:
                entry = own
        length = distance[own]
        if entry >= 0:
            idle += length - distance[entry]
        for slot in seen[1 : seen[0] + 1]:
            if done[slot] and slot != entry:
                price[slot] += length - distance[slot]
            distance[slot], place[slot], done[slot] = np.inf, -1, False
        # The documents of the path move up by one.
        begin, end = p, p + 1
        while True:
            row = by[own]
            stands[own] = row
            if row == stop:
                moved = entry
                price[moved], end = idle, stop
            else:
                moved = holds[row]
                holds[row] = own
                begin, end = min(begin, row), max(end, row + 1)
            if row == p:
                break
            own = moved
        restore_order(holds, stands, start, size, chain, after, names, at, begin, end, price, idle)
    for p in range(stop):
        label[p] = chain[holds[p]]
