"""The best order from a good one by shortest augmenting paths, for chains, for any gains, and with SciPy.

The input has duals v and levels u_p >= profit[p, j] - v_j. Documents that attain the level of their position stay. Each
other position takes the document at the end of a shortest path of exchanges [Jonker and Volgenant 1987], which raises
the duals along it. At the end levels and duals prove the order. A path costs at most O(n log n) for a few chains.

In each chain a position visits only its neighbours and the free documents between them. Beyond a neighbour j' at
position q', the path to j over q' is not longer, for (c_q' - c_p)(s_j' - s_j) <= 0. Unplaced documents are at one
additional position of weight zero and unlimited capacity. Slots are in a binary heap by distance.

For any gains each position visits all documents, in loops without branches: best for short lists and many gains.
Documents stay in their initial order, for contiguous access. Small batches use SciPy's solver, without compiling.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.argmax.layout import ANY, ASSIGNMENT, FEW, ONE_SORT
from formulations.argmax.order_ideals import FREE, restore_order
from formulations.argmax.order_ideals import TABLE_PLACEMENT as TABLE
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, compiled, inlined


@inlined
def lift(heap: Ints, heap_index: Ints, distance: Floats, i: int) -> None:
    """Move the slot at heap index i up while its distance is below that of its parent."""
    slot = heap[i]
    d = distance[slot]
    while i > 0:
        above = (i - 1) >> 1
        other = heap[above]
        if distance[other] <= d:
            break
        heap[i] = other
        heap_index[other] = i
        i = above
    heap[i] = slot
    heap_index[slot] = i


@inlined
def take_nearest(heap: Ints, heap_index: Ints, distance: Floats, held: int) -> int:
    """Take the slot of least distance off a heap of `held` slots."""
    nearest = heap[0]
    held -= 1
    slot = heap[held]
    d = distance[slot]
    i, below = 0, 1
    while below < held:
        if below + 1 < held and distance[heap[below + 1]] < distance[heap[below]]:
            below += 1
        other = heap[below]
        if distance[other] >= d:
            break
        heap[i] = other
        heap_index[other] = i
        i = below
        below = 2 * i + 1
    heap[i] = slot
    heap_index[slot] = i
    return int(nearest)


@inlined
def _reach(
    slot: int,
    d: float,
    base: float,
    row: int,
    distance: Floats,
    by: Ints,
    heap: Ints,
    heap_index: Ints,
    seen: Ints,
    held: int,
) -> int:
    """Record a path to `slot` of length d from a position at distance base if shorter; returns the heap size."""
    d = max(d, base)
    if d < distance[slot]:
        if heap_index[slot] < 0:
            heap_index[slot], heap[held] = held, slot
            held += 1
            seen[seen[0] + 1] = slot
            seen[0] += 1
        distance[slot], by[slot] = d, row
        lift(heap, heap_index, distance, heap_index[slot])
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
    position_weights: Floats,
    stop: int,
    price: Floats,
    most: Floats,
    noise: float,
    label: Bytes,
    chain: Bytes,
    after: Shorts,
) -> None:
    """Make `label` (the chain at each position, see `best_labels`) optimal; price: its duals.

    price, most: see `pruned_search`; a document within `noise` of the level of its position stays. Buffers: chain per
    slot, after (stop rows of all chains).
    """
    chains, slots = worth.size, height.size
    floor_c, floor_a = position_weights[stop], discount[stop]
    row_of, holds = np.full(slots, FREE, np.int64), np.full(stop, FREE, np.int64)
    at, open_, opened, names = start[:chains].copy(), np.empty(stop, np.int64), 0, np.empty(stop, np.int8)
    for g in range(chains):
        for slot in range(start[g], start[g] + size[g]):
            chain[slot], row_of[slot] = g, stop
    for p in range(stop):
        g = label[p]
        slot = at[g]
        at[g] += 1
        if (
            most[p]
            + price[slot]
            - ((position_weights[p] - floor_c) * height[slot] - (discount[p] - floor_a) * worth[g])
            <= noise
        ):
            holds[p], row_of[slot] = slot, p
        else:
            row_of[slot], open_[opened] = FREE, p
            opened += 1
    idle = 0.0
    restore_order(holds, row_of, start, size, chain, after, names, at, 0, stop, price, idle)
    distance, by, done = np.full(slots, np.inf), np.empty(slots, np.int64), np.zeros(slots, np.bool_)
    heap, heap_index, seen = np.empty(slots, np.int64), np.full(slots, -1, np.int64), np.empty(slots + 1, np.int64)
    for p in open_[:opened]:
        held, row, base, own, entry = 0, p, 0.0, -1, -1
        seen[0] = 0
        while True:
            # All paths by one more exchange from this position, whose own document is at distance `base`.
            c, a, level = 0.0, 0.0, base - idle
            if row < stop:
                c, a = position_weights[row] - floor_c, discount[row] - floor_a
                level = most[p] if own < 0 else base + c * height[own] - a * worth[chain[own]] - price[own]
            last = min(row, stop - 1)
            for g in range(chains):
                middle, end, offset = after[last, g], start[g] + size[g], level + a * worth[g]
                for slot in range(middle - 1, start[g] - 1, -1):
                    if slot == own:
                        continue
                    if not done[slot]:
                        d = offset + price[slot] - c * height[slot]
                        held = _reach(slot, d, base, row, distance, by, heap, heap_index, seen, held)
                    if row_of[slot] != FREE:
                        break
                for slot in range(middle, end):
                    left_out = row_of[slot] == stop
                    if row == stop and left_out:
                        continue
                    if not done[slot]:
                        d = offset + (idle if left_out else price[slot]) - c * height[slot]
                        held = _reach(slot, d, base, row, distance, by, heap, heap_index, seen, held)
                    if row < stop and row_of[slot] != FREE:
                        break
            while True:
                own = take_nearest(heap, heap_index, distance, held)
                held -= 1
                if row_of[own] != stop or entry < 0:
                    break
            if row_of[own] == FREE:
                break
            base, row = distance[own], row_of[own]
            done[own] = True
            if row == stop:
                entry = own
        length = distance[own]
        if entry >= 0:
            idle += length - distance[entry]
        for slot in seen[1 : seen[0] + 1]:
            if done[slot] and slot != entry:
                price[slot] += length - distance[slot]
            distance[slot], heap_index[slot], done[slot] = np.inf, -1, False
        # The documents of the path move up by one.
        begin, end = p, p + 1
        while True:
            row = by[own]
            row_of[own] = row
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
        restore_order(holds, row_of, start, size, chain, after, names, at, begin, end, price, idle)
    for p in range(stop):
        label[p] = chain[holds[p]]


@inlined
def greedy_order(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, stop: int, ahead: int, order: Ints
) -> float:
    """Put at each position p < stop the best document in the direction of the step to a later position; the value.

    ahead: as in `greedy_labels`.
    """
    n = order.size
    for i in range(n):
        order[i] = i
    upto, total = 0, 0.0
    for p in range(stop):
        upto = max(upto, p + 1 if ahead == 0 else p + max((stop - p) // ahead, 1))
        while upto < stop and position_weights[upto] == position_weights[p] and discount[upto] == discount[p]:
            upto += 1
        dc, da = position_weights[p] - position_weights[upto], discount[p] - discount[upto]
        best, most = p, -np.inf
        for i in range(p, n):
            key = dc * scores[order[i]] - da * gain[order[i]]
            if key > most:
                best, most = i, key
        order[p], order[best] = order[best], order[p]
        total += (position_weights[p] - position_weights[stop]) * scores[order[p]] - (
            discount[p] - discount[stop]
        ) * gain[order[p]]
    return total


@inlined
def order_prices(s: Floats, b: Floats, a: Floats, c: Floats, stop: int, price: Floats) -> None:
    """Duals of documents in order: midway between neighbours, then raised until no earlier position prefers another.

    Weights count above those of position `stop`, after which documents are unplaced, with dual 0.
    """
    best_out = -np.inf
    for j in range(stop, s.size):
        price[j] = 0.0
        best_out = max(best_out, c[stop - 1] * s[j] - a[stop - 1] * b[j])
    level = 0.0
    for p in range(stop - 1, -1, -1):
        if p == stop - 1:
            level = (c[p] * s[p] - a[p] * b[p] - best_out) / 2.0 if stop < s.size else 0.0
        else:
            level += ((c[p] + c[p + 1]) * (s[p] - s[p + 1]) - (a[p] + a[p + 1]) * (b[p] - b[p + 1])) / 2.0
        level = max(level, 0.0)
        price[p] = level
    for p in range(stop - 1, 0, -1):
        base = price[p] - (c[p] * s[p] - a[p] * b[p])
        for j in range(p):
            price[j] = max(price[j], base + (c[p] * s[j] - a[p] * b[j]))


FREE_DENSE = -1

EPSILON = 2.0**-52


@inlined
def _nearest(distance: Floats, row_of: Ints) -> int:
    """The document at the least distance; among ties a free one."""
    n = distance.size
    least = np.empty(8)
    for k in range(8):
        least[k] = np.inf
    for i in range(0, n - n % 8, 8):
        for k in range(8):
            least[k] = distance[i + k] if distance[i + k] < least[k] else least[k]
    bound = np.inf
    for k in range(8):
        bound = min(bound, least[k])
    for j in range(n - n % 8, n):
        bound = min(bound, distance[j])
    nearest = -1
    for j in range(n):
        if distance[j] == bound:
            nearest = j
            if row_of[j] == FREE_DENSE:
                break
    return nearest


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, nb.int64, nb.boolean, INTS))
def assign(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, stop: int, anew: bool, order: Ints
) -> float:
    """Fill `order` with an optimal order, positions from `stop` on being equivalent; returns the rounding error.

    anew: start from an empty assignment with duals 0, which is faster if most exchanges are ties.
    """
    n = order.size
    other = np.empty(n, np.int64)
    if greedy_order(scores, gain, discount, position_weights, stop, 2, other) < greedy_order(
        scores, gain, discount, position_weights, stop, 0, order
    ):
        for i in range(n):
            other[i] = order[i]
    s, b, a, c, price = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    highest, dearest = 0.0, 0.0
    for i in range(n):
        s[i], b[i] = scores[other[i]], gain[other[i]]
        a[i], c[i] = discount[i] - discount[stop], position_weights[i] - position_weights[stop]
        highest, dearest = max(highest, abs(s[i])), max(dearest, abs(b[i]))
    order_prices(s, b, a, c, stop, price)
    noise = 4.0 * EPSILON * (highest * c[0] + dearest * a[0])
    row_of, holds, level = np.empty(n, np.int64), np.empty(stop, np.int64), np.empty(stop)
    for i in range(stop, n):
        row_of[i] = stop
    for p in range(stop):
        most = -np.inf
        for j in range(n):
            here = c[p] * s[j] - a[p] * b[j] - price[j]
            most = here if here > most else most
        level[p] = most
        suits = most + price[p] - (c[p] * s[p] - a[p] * b[p]) <= noise
        holds[p], row_of[p] = (p, p) if suits else (FREE_DENSE, FREE_DENSE)
    if anew:
        for j in range(n):
            price[j], row_of[j] = 0.0, FREE_DENSE
        for p in range(stop):
            holds[p], most = FREE_DENSE, -np.inf
            for j in range(n):
                here = c[p] * s[j] - a[p] * b[j]
                most = here if here > most else most
            level[p] = most
    idle = 0.0
    distance, by, found, length = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    cost = np.empty(n)  # dual, infinite once a document is reached
    for start in range(stop):
        if holds[start] != FREE_DENSE:
            continue
        for j in range(n):
            distance[j] = np.inf
            cost[j] = idle if row_of[j] == stop else price[j]
        row, base, offset, entry, reached = start, 0.0, level[start], -1, 0
        while True:
            u, w = 0.0, 0.0
            if row < stop:
                u, w = c[row], a[row]
            for j in range(n):
                d = offset + (cost[j] - (u * s[j] - w * b[j]))
                nearer = d < distance[j]
                distance[j] = d if nearer else distance[j]
                by[j] = row if nearer else by[j]
            j = _nearest(distance, row_of)
            base = max(base, distance[j])
            if row_of[j] == FREE_DENSE:
                break
            row = row_of[j]
            if row == stop:  # all unplaced documents are at this distance
                entry, offset = j, base - idle
                for other_ in range(n):
                    if row_of[other_] == stop:
                        cost[other_], distance[other_] = np.inf, np.inf
            else:
                offset = base - (price[j] - (c[row] * s[j] - a[row] * b[j]))
                cost[j], distance[j] = np.inf, np.inf
            found[reached], length[reached] = j, base
            reached += 1
        for i in range(reached):
            if found[i] == entry:
                idle += base - length[i]
            else:
                price[found[i]] += base - length[i]
        while True:
            row = by[j]
            row_of[j] = row
            if row == stop:
                price[entry], moved = idle, entry
            else:
                moved = holds[row]
                holds[row] = j
            if row == start:
                break
            j = moved
    for p in range(stop):
        order[p] = other[holds[p]]
    p = stop
    for j in range(n):
        if row_of[j] == stop or row_of[j] == FREE_DENSE:
            order[p] = other[j]
            p += 1
    return float(noise * stop)


def assign_queries(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    offsets: Ints,
    queries: Ints,
    order: Ints,
    value: Floats,
    bound: Floats,
    way: Bytes,
) -> None:
    """Fill order, value, bound and method of these queries."""
    for q in queries.tolist():
        rows = slice(int(offsets[q]), int(offsets[q + 1]))
        s, b, a, c = scores[rows], gain[rows], discount[rows], position_weights[rows]
        assigned, way[q], left = _assign_one(s, b, a, c)
        order[rows] = assigned
        up, down = c * s[assigned], a * b[assigned]
        value[q] = (up - down).sum()
        bound[q] = value[q] + EPSILON * (8.0 + 2.0 * s.size) * (np.abs(up).sum() + np.abs(down).sum()) + left


def _assign_one(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats) -> tuple[Ints, int, float]:
    """The best order, the method, and the rounding error."""
    from scipy.optimize import linear_sum_assignment

    by_gain = np.argsort(gain, kind="stable")
    differ = np.flatnonzero(
        (discount != discount[-1]) | (position_weights != position_weights[-1])
    )  # positions before a tail of equal ones
    if not differ.size or (scores == scores[0]).all():
        return by_gain, ONE_SORT if differ.size else ANY, 0.0
    k = int(differ[-1]) + 1
    a, c = discount[:k] - discount[-1], position_weights[:k] - position_weights[-1]
    candidates = candidates_of(scores, gain, k, 0)
    # Documents by positions: scipy solves this orientation in less than half the time of the other.
    profit = np.outer(scores[candidates], c) - np.outer(gain[candidates], a)
    assigned, position = linear_sum_assignment(profit, maximize=True)
    first, rest = np.empty(k, dtype=np.int64), np.ones(scores.size, dtype=bool)
    first[position] = candidates[assigned]
    rest[first] = False
    left = 4.0 * EPSILON * k * (np.abs(scores).max() * c[0] + np.abs(gain).max() * a[0])
    way = FEW if candidates.size < scores.size else ASSIGNMENT
    return np.concatenate([first, by_gain[rest[by_gain]]]), way, float(left)


def candidates_of(scores: Floats, gain: Floats, above: int, below: int) -> Ints:
    """The documents that an optimal order can rank: of each gain only the `above` best-scored at positions of larger
    weight than unplaced documents, and only the `below` worst-scored at positions of smaller weight.

    Sorted by gain and score, so that ties do not depend on the input order."""
    by_score = np.lexsort((-scores, gain))
    sorted_gain = gain[by_score]
    starts = np.flatnonzero(np.append(True, sorted_gain[1:] != sorted_gain[:-1]))
    sizes = np.diff(np.append(starts, gain.size))
    rank = np.arange(gain.size) - np.repeat(starts, sizes)
    needed = (rank < above) | (np.repeat(sizes, sizes) - rank <= below)
    return np.asarray(by_score[needed])
