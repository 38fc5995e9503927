"""The best order of chains with many states: duals of a good order prove it or prune the search.

The first order is greedy, the next ones come from wider and wider beams. If the duals prove the order, it is optimal.
If they leave few states, these are searched; else the order is improved by shortest paths, which need no states.

For any duals v >= 0 and u_q = max_j (profit[q, j] - v_j), an order has the value Σ u + Σ v less the slack
u_q + v_j - profit of each ranked document, less the dual of each unranked one. No order with a slack above the distance
of Σ u + Σ v from a known value beats that value. Profits count above those of the last position.
"""

import numba as nb
import numpy as np

from formulations.argmax.assignment import augment
from formulations.argmax.order_ideals import NO_BEAM, best_labels
from formulations.argmax.order_ideals import TABLE_PLACEMENT as AFTER
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_SHORTS, SHORTS, compiled, inlined


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
    used: Ints,
    label: Bytes,
) -> None:
    """label[p] = the chain whose head is best in the direction of the step from position p to a later, different one:
    at least 1 / ahead of the remaining positions away, or the next one if `ahead` is 0."""
    chains = worth.size
    used[:] = 0
    upto = 0
    for p in range(stop):
        upto = max(upto, p + 1 if ahead == 0 else p + max((stop - p) // ahead, 1))
        while upto < stop and decay[upto] == decay[p] and discount[upto] == discount[p]:
            upto += 1
        dc, da = decay[p] - decay[upto], discount[p] - discount[upto]
        best, most = -1, -np.inf
        for g in range(chains):
            if used[g] < size[g]:
                key = dc * height[start[g] + used[g]] - da * worth[g]
                if key > most:
                    best, most = g, key
        label[p] = best
        used[best] += 1


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
    used: Ints,
    price: Floats,
) -> float:
    """price[slot] >= 0: midway between the bounds that keep neighbours in order; returns the value of the order."""
    chains = worth.size
    floor_c, floor_a = decay[stop], discount[stop]
    used[:] = 0
    for p in range(stop):
        used[label[p]] += 1
    c, a = decay[stop - 1] - floor_c, discount[stop - 1] - floor_a
    best_out = -np.inf
    for g in range(chains):
        for slot in range(start[g] + used[g], start[g] + size[g]):
            price[slot] = 0.0
        if used[g] < size[g]:
            best_out = max(best_out, c * height[start[g] + used[g]] - a * worth[g])
    total, level, s_after, b_after, c_after, a_after = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(stop - 1, -1, -1):
        g = label[p]
        used[g] -= 1
        slot = start[g] + used[g]
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
    """most[p] = u_p = max over documents of profit less dual; returns Σ u + Σ v - `value`.

    In a chain, profit less dual is a line in the decay for each document; their upper envelope is traversed once.
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


@inlined
def loose_positions(
    height: Floats,
    worth: Floats,
    start: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    label: Bytes,
    used: Ints,
    price: Floats,
    most: Floats,
    noise: float,
) -> int:
    """The number of positions whose document has a profit less dual not within `noise` of the maximum."""
    floor_c, floor_a = decay[stop], discount[stop]
    used[:] = 0
    loose = 0
    for p in range(stop):
        g = label[p]
        slot = start[g] + used[g]
        used[g] += 1
        own = (decay[p] - floor_c) * height[slot] - (discount[p] - floor_a) * worth[g] - price[slot]
        loose += most[p] - own > noise
    return loose


@inlined
def raise_prices(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    label: Bytes,
    used: Ints,
    price: Floats,
) -> None:
    """One pass of Bellman-Ford up the positions, from the last: price[x] >= price[own] + profit[p, x] - profit[p, own]
    for the documents x before p, own the one at p.

    Only the last document of each chain before p is visited; it later raises those before it. Unplaced documents keep
    their duals. used: a buffer per chain.
    """
    chains = worth.size
    floor_c, floor_a = decay[stop], discount[stop]
    used[:] = 0
    for p in range(stop):
        used[label[p]] += 1
    for p in range(stop - 1, -1, -1):
        g = label[p]
        used[g] -= 1
        slot = start[g] + used[g]
        c, a = decay[p] - floor_c, discount[p] - floor_a
        level = price[slot] - c * height[slot] + a * worth[g]
        for h in range(chains):
            if used[h] > 0:
                other = start[h] + used[h] - 1
                price[other] = max(price[other], level + c * height[other] - a * worth[h])


TABLE = nb.types.Array(nb.int64, 2, "C")
NUMBERS = nb.types.Array(nb.float64, 2, "C")
INT_TABLE = nb.types.Array(nb.int32, 2, "C")

PROVED, AUGMENTED, GIVEN_UP = 0, -1, -2

LEFT, EARNED, NOISE = 0, 1, 2
"""Indices of `report`: the rounding error, the value of the best order so far, the rounding error per position."""

EPSILON = 2.0**-52

BEAMS = np.array([0, 0, 8, 16, 32, 64])
PRUNED = np.array([3, 3, 3, 6, 8, 40])
WIDTHS = np.array([64, 64, 64, 1 << 20, 1 << 20, 1 << 20])
"""Successive attempts, each with the duals of the one before: the beam width per position (0: a greedy order), then the
mean and maximum number of states per position of the pruned search."""

FEW_LOOSE = 2  # unsuitable positions that are repaired at once


@inlined
def _copy(source: Bytes, target: Bytes, count: int) -> None:
    for i in range(count):
        target[i] = source[i]


@compiled(
    nb.int64(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64,
        FLOATS, FLOATS, INTS, TABLE, NUMBERS, INT_TABLE, INTS, FLOATS, SHORTS, BYTES, BYTES, BYTES, INTS, BYTES, FLOATS,
    )
)  # fmt: skip
def _pruned(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    used: Ints,
    best: Bytes,
    report: Floats,
) -> int:
    """Search with the duals of the order `label`: PROVED if they suffice, else the number of states of the pruned
    search, GIVEN_UP if it exceeds the buffers. `best` is the best order so far, report[EARNED] its value."""
    value_of = price_between(height, worth, start, size, discount, decay, stop, label, used, price)
    if value_of > report[EARNED]:
        _copy(label, best, stop)
        report[EARNED] = value_of
    raise_prices(height, worth, start, size, discount, decay, stop, label, used, price)
    slack = open_slack(height, worth, start, size, discount, decay, stop, price, report[EARNED], spare, most)
    if slack <= report[LEFT]:
        _copy(best, label, stop)
        return PROVED
    widest = best_labels(
        height, worth, start, size, discount, decay, low, high, stop, price, most, slack + 4.0 * report[LEFT], NO_BEAM,
        next_key, next_value, next_from, key, value, origin, chain, member,
    )  # fmt: skip
    if widest < 0:
        return GIVEN_UP
    report[LEFT] = 0.0
    _copy(member, label, stop)
    return widest


@inlined
def _begin(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    report: Floats,
) -> None:
    largest = 0.0
    for g in range(worth.size):
        reach = max(abs(height[start[g]]), abs(height[start[g] + size[g] - 1]))
        largest = max(largest, reach * (decay[0] - decay[stop]) + abs(worth[g]) * (discount[0] - discount[stop]))
    report[NOISE], report[EARNED] = 4.0 * EPSILON * largest, -np.inf
    report[LEFT] = report[NOISE] * stop


SEARCH = (
    FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64,
    FLOATS, FLOATS, FLOATS, INTS, TABLE, NUMBERS, INT_TABLE, INTS, FLOATS, SHORTS, BYTES, BYTES, BYTES,
)  # fmt: skip


@compiled(nb.int64(*SEARCH, FLOATS))
def priced_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    nothing: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    report: Floats,
) -> int:
    """As `searched_labels` with one attempt only: GIVEN_UP if it does not suffice."""
    _begin(height, worth, start, size, discount, decay, stop, report)
    used, best = np.zeros(worth.size, np.int64), np.empty(stop, np.int8)
    max_states = PRUNED[0] * stop + min(512, stop * stop // 4)
    greedy_labels(height, worth, start, size, discount, decay, stop, 0, used, label)
    return _pruned(
        height, worth, start, size, discount, decay, low, high, stop, price, most, spare, next_key, next_value,
        next_from, key[: WIDTHS[0] * worth.size], value, origin[:max_states], chain, label, member, used, best, report,
    )  # fmt: skip


@compiled(nb.int64(*SEARCH, AFTER, FLOATS))
def searched_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    nothing: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    after: Shorts,
    report: Floats,
) -> int:
    """As `best_labels`, with buffers price, member and spare (per document), most (per position), zeros in nothing.

    Returns the maximum number of states, PROVED if duals suffice, AUGMENTED after shortest paths; report[LEFT]: the
    rounding error.
    """
    _begin(height, worth, start, size, discount, decay, stop, report)
    noise = report[NOISE]
    used, fewest = np.zeros(worth.size, np.int64), stop + 1
    best, saved_label, saved_price = np.empty(stop, np.int8), np.empty(stop, np.int8), np.empty(price.size)
    for effort in range(BEAMS.size):
        max_states = PRUNED[effort] * stop + min(512, stop * stop // 4)
        if effort == 0:
            greedy_labels(height, worth, start, size, discount, decay, stop, 0, used, label)
        elif BEAMS[effort] == 0:
            greedy_labels(height, worth, start, size, discount, decay, stop, 2, used, member)
            greedy_labels(height, worth, start, size, discount, decay, stop, 16, used, label)
            value_of = price_between(height, worth, start, size, discount, decay, stop, member, used, price)
            if value_of > price_between(height, worth, start, size, discount, decay, stop, label, used, price):
                _copy(member, label, stop)
        else:
            widest = best_labels(
                height, worth, start, size, discount, decay, low, high, stop, price, nothing, np.inf, BEAMS[effort],
                next_key, next_value, next_from, key, value, origin, chain, label,
            )  # fmt: skip
            if widest < 0:
                break
        widest = _pruned(
            height, worth, start, size, discount, decay, low, high, stop, price, most, spare, next_key, next_value,
            next_from, key[: WIDTHS[effort] * worth.size], value, origin[:max_states], chain, label, member, used, best,
            report,
        )  # fmt: skip
        if widest != GIVEN_UP:
            return widest
        loose = loose_positions(height, worth, start, discount, decay, stop, label, used, price, most, noise)
        if loose < fewest:
            fewest = loose
            _copy(label, saved_label, stop)
            for slot in range(price.size):
                saved_price[slot] = price[slot]
        if loose <= FEW_LOOSE:
            break
    _copy(saved_label, label, stop)
    for slot in range(price.size):
        price[slot] = saved_price[slot]
    open_slack(height, worth, start, size, discount, decay, stop, price, 0.0, spare, most)
    augment(height, worth, start, size, discount, decay, stop, price, most, noise, label, member, after)
    return AUGMENTED
