"""The loss-augmented argmax by sorting and splitting, for a flat batch of queries.

For positions p < q and documents x, y, x at p and y at q is no worse than the reverse when
(c_p - c_q)(s_x - s_y) >= (a_p - a_q)(b_x - b_y). All steps (c_p - c_q, a_p - a_q) of a part lie in the cone spanned by
its two extreme neighbouring steps, so a document no worse in both extreme directions goes first in some optimal order.
Where the first t documents of both sorts are one set, the part splits; smaller parts have narrower cones.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.argmax.order_ideals import best_order
from formulations.argmax.stable_sort import sort_falling
from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["WAYS", "argmax_batch"]

WAYS = ("any order", "one sort", "two sorts", "merge", "order ideals", "unsolved")
ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, UNSOLVED = range(6)


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, FLOATS))
def _cone(discount: Floats, decay: Floats, low: int, high: int, cone: Floats) -> int:
    """The extreme steps (dc, da, dc, da) between neighbours in positions low .. high - 1, and how many differ: 0 to 2.

    Of equal angles either will do; products decide the order of angles, so equal weights compare exactly.
    """
    found = 0
    for p in range(low, high - 1):
        dc, da = decay[p] - decay[p + 1], discount[p] - discount[p + 1]
        if dc == 0.0 and da == 0.0:
            continue
        if found == 0:
            cone[0], cone[1], cone[2], cone[3] = dc, da, dc, da
            found = 1
        elif cone[0] * da - cone[1] * dc < 0.0:
            cone[0], cone[1] = dc, da
            found = 2
        elif cone[2] * da - cone[3] * dc > 0.0:
            cone[2], cone[3] = dc, da
            found = 2
    return found


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64))
def _tail_start(discount: Floats, decay: Floats, low: int, high: int) -> int:
    """The least position t such that all steps among positions t .. high - 1 have one direction."""
    dc, da = 0.0, 0.0
    for p in range(high - 2, low - 1, -1):
        step_c, step_a = decay[p] - decay[p + 1], discount[p] - discount[p + 1]
        if step_c == 0.0 and step_a == 0.0:
            continue
        if dc == 0.0 and da == 0.0:
            dc, da = step_c, step_a
        elif dc * step_a - da * step_c != 0.0:
            return p + 1
    return low


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, INTS, INTS, INTS, INTS, FLOATS, INTS))
def _argmax(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    order: Ints,
    table: Ints,
    state_key: Ints,
    state_slot: Ints,
    state_value: Floats,
    state_from: Ints,
) -> int:
    """Fill `order` with an optimal order of one query; the way taken."""
    n = scores.size
    for i in range(n):
        order[i] = i
    way = ANY
    cone = np.zeros(4)
    key, other = np.empty(n), np.empty(n)
    first, second = np.empty(n, np.int64), np.empty(n, np.int64)
    ones, twos, spare = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    inside = np.zeros(n, np.bool_)
    waiting = np.empty((n + 1, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, n
    parts = 1
    while parts:
        parts -= 1
        low, high = waiting[parts, 0], waiting[parts, 1]
        directions = _cone(discount, decay, low, high, cone)
        if directions == 0:
            continue
        one, two = ones[low:high], twos[low:high]
        if high - low == n:
            one[:] = order
        else:  # the documents of the part by index, so that what ties in both keys stands in one common order
            for x in order[low:high]:
                inside[x] = True
            place = 0
            for x in range(n):
                if inside[x]:
                    one[place] = x
                    inside[x] = False
                    place += 1
        for x in one:
            key[x] = cone[0] * scores[x] - cone[1] * gain[x]
            other[x] = cone[2] * scores[x] - cone[3] * gain[x]
        if directions == 1:
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
            first[one[i]], second[two[i]] = i, i
        order[low:high] = one
        way = max(way, TWO_SORTS)
        begin, deepest, split = 0, 0, False
        for i in range(high - low):
            deepest = max(deepest, second[one[i]])
            if deepest == i:
                split = split or i + 1 < high - low
                if split and i > begin:
                    waiting[parts, 0], waiting[parts, 1] = low + begin, low + i + 1
                    parts += 1
                begin = i + 1
        if split:
            continue
        stop = _tail_start(discount, decay, low, high)
        _cone(discount, decay, stop, high, cone)
        for x in one:
            key[x] = cone[0] * scores[x] - cone[1] * gain[x]
        tail = two
        tail[:] = one
        sort_falling(tail, key, spare)
        chains = best_order(
            scores, gain, discount, decay, order[low:high], first, second, tail, low, stop,
            table, state_key, state_slot, state_value, state_from,
        )  # fmt: skip
        if chains < 0:
            return UNSOLVED
        way = max(way, MERGE if chains <= 2 else IDEALS)
    return way


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, INTS, nb.int8[::1]))
def argmax_batch(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    room: int,
    order: Ints,
    ways: NDArray[np.int8],
) -> None:
    """Fill `order` (the document, counted within its query, at each position) and `ways` for all queries.

    A query that needs more than `room` states of the dynamic program is left with the way UNSOLVED.
    """
    slots = 2
    while slots < 2 * room:
        slots *= 2
    table = np.zeros(slots, np.int64)
    state_key, state_slot = np.empty(room, np.int64), np.empty(room, np.int64)
    state_value, state_from = np.empty(room), np.empty(room, np.int64)
    for q in range(offsets.size - 1):
        low, high = offsets[q], offsets[q + 1]
        ways[q] = _argmax(
            scores[low:high], gain[low:high], discount[low:high], decay[low:high], order[low:high],
            table, state_key, state_slot, state_value, state_from,
        )  # fmt: skip
