"""The loss-augmented argmax of a query with many different gains, by sorting and splitting.

A document no worse than another in both extreme directions of a part's cone (see `cones`) goes first in some optimal
order. Where the first t documents of both extreme sorts are one set, the part splits; smaller parts have narrower
cones. What does not split is merged by `order_ideals`, if it has few gains.
"""

import numba as nb
import numpy as np

from formulations.argmax.cones import find_cones
from formulations.argmax.order_ideals import CHAINS, NO_BEAM, best_labels
from formulations.arrays import Floats, Ints
from formulations.compiled import INTS, READ_FLOATS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["split"]

ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, PRICES, FEW, ASSIGNMENT, UNSOLVED = range(9)

COLUMNS = 1 << 12
"""Most states that one position of a part may have times chains."""


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, INTS, nb.int64))
def _merged(scores: Floats, gain: Floats, discount: Floats, decay: Floats, documents: Ints, room: int) -> int:
    """Put `documents` into their best order for these weights, one a document; the way, UNSOLVED (and the documents
    untouched) where they have too many gains or need more than `room` states."""
    count = documents.size
    worth, height = np.empty(gain.size), np.empty(gain.size)
    for x in documents:
        worth[x], height[x] = -gain[x], scores[x]
    chained, spare = documents.copy(), np.empty(count, np.int64)
    sort_falling(chained, height, spare)
    sort_falling(chained, worth, spare)
    start, size, level = np.zeros(CHAINS, np.int64), np.zeros(CHAINS, np.int64), np.empty(CHAINS)
    chains = 0
    for i in range(count):
        if i == 0 or gain[chained[i]] != gain[chained[i - 1]]:
            if chains == CHAINS:
                return UNSOLVED
            start[chains], level[chains] = i, gain[chained[i]]
            chains += 1
        size[chains - 1] += 1
    low, high = np.zeros(count, np.int32), np.zeros(count, np.int32)
    stop = find_cones(discount, decay, low, high)
    columns = min(COLUMNS, room)
    ordered = np.empty(count)
    for i in range(count):
        ordered[i] = scores[chained[i]]
    label = np.empty(count, np.int8)
    widest = best_labels(
        ordered, level[:chains], start, size, discount, decay, low, high, stop,
        np.zeros(count), np.zeros(count), np.inf, NO_BEAM,
        np.empty((CHAINS, columns + 1), np.int64), np.empty((CHAINS, columns + 1)),
        np.empty((CHAINS, columns + 1), np.int32), np.empty(columns, np.int64), np.empty(columns),
        np.empty(room, np.int32), np.empty(room, np.int8), label,
    )  # fmt: skip
    if widest < 0:
        return UNSOLVED
    placed = start[:chains].copy()
    for p in range(stop):
        g = label[p]
        documents[p] = chained[placed[g]]
        placed[g] += 1
    p = stop
    for g in range(chains):
        for i in range(placed[g], start[g] + size[g]):
            documents[p] = chained[i]
            p += 1
    return TWO_SORTS if widest == 1 else MERGE if chains == 2 else IDEALS


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, INTS, nb.int64))
def split(scores: Floats, gain: Floats, discount: Floats, decay: Floats, order: Ints, room: int) -> int:
    """Fill `order` with an optimal order of one query; the way taken, UNSOLVED if a part is beyond us."""
    n = scores.size
    for i in range(n):
        order[i] = i
    way = ANY
    key, other = np.empty(n), np.empty(n)
    second, inside = np.empty(n, np.int64), np.zeros(n, np.bool_)
    ones, twos, spare = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    low_step, high_step = np.empty(n, np.int32), np.empty(n, np.int32)
    waiting = np.empty((n + 1, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, n
    parts = 1
    while parts:
        parts -= 1
        low, high = waiting[parts, 0], waiting[parts, 1]
        a, c = discount[low:high], decay[low:high]
        if find_cones(a, c, low_step[low:high], high_step[low:high]) == 0:
            continue
        lower, upper = low_step[low], high_step[low]
        dc, da = c[lower] - c[lower + 1], a[lower] - a[lower + 1]
        ec, ea = c[upper] - c[upper + 1], a[upper] - a[upper + 1]
        one, two = ones[low:high], twos[low:high]
        for x in order[low:high]:  # the documents of the part by index: what ties in both keys has one common order
            inside[x] = True
        place = 0
        for x in range(n):
            if inside[x]:
                one[place] = x
                inside[x] = False
                place += 1
        for x in one:
            key[x] = dc * scores[x] - da * gain[x]
            other[x] = ec * scores[x] - ea * gain[x]
        if lower == upper:
            sort_falling(one, key, spare)
            order[low:high] = one
            way = max(way, ONE_SORT)
            continue
        two[:] = one
        sort_falling(one, other, spare)
        sort_falling(one, key, spare)
        sort_falling(two, key, spare)
        sort_falling(two, other, spare)
        for i in range(high - low):
            second[two[i]] = i
        order[low:high] = one
        way = max(way, TWO_SORTS)
        begin, deepest, splits = 0, 0, False
        for i in range(high - low):
            deepest = max(deepest, second[one[i]])
            if deepest == i:
                splits = splits or i + 1 < high - low
                if splits and i > begin:
                    waiting[parts, 0], waiting[parts, 1] = low + begin, low + i + 1
                    parts += 1
                begin = i + 1
        if not splits:
            merged = _merged(scores, gain, a, c, order[low:high], room)
            if merged == UNSOLVED:
                return UNSOLVED
            way = max(way, merged)
    return way
