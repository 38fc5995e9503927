"""The loss-augmented argmax of a range of queries: order, value and proven bound, by the way that suits each."""

import numba as nb
import numpy as np

from formulations.argmax.chains import sort_chain
from formulations.argmax.order_ideals import CHAINS, best_labels
from formulations.argmax.two_sorts import split
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled

__all__ = ["WAYS", "argmax_range"]

WAYS = ("any order", "one sort", "two sorts", "merge", "order ideals", "few candidates", "assignment")
ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, FEW, UNSOLVED = range(7)

COLUMNS = 1 << 14
"""Most states that one position may have times chains."""

EPSILON = 2.0**-52


@compiled(nb.int64(nb.int64, nb.int64))
def _states(room: int, n: int) -> int:
    """How many states a query of n documents may have: `room`, or if that is 0 as many as cost about an assignment."""
    return room if room > 0 else min(max(int(n**2.5 / 6.0), 1 << 12), 1 << 22)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, READ_INTS, READ_FLOATS, READ_INTS,
        READ_SHORTS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, nb.int64, INTS, FLOATS, FLOATS, BYTES,
    )
)  # fmt: skip
def argmax_range(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    by_gain: Shorts,
    chain_start: Ints,
    worth: Floats,
    first_chain: Ints,
    low: Shorts,
    high: Shorts,
    stop: Ints,
    begin: int,
    end: int,
    room: int,
    order: Ints,
    value: Floats,
    bound: Floats,
    way: Bytes,
) -> None:
    """Fill order (the document, counted within its query, at each position), value, bound and way of the queries
    begin <= q < end.

    room: most states of a query, 0 for as many as cost less than an assignment. Who needs more is left UNSOLVED.
    """
    n = 0
    for q in range(begin, end):
        n = max(n, offsets[q + 1] - offsets[q])
    most = _states(room, n)
    columns = min(COLUMNS, most)
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    next_key, next_value = np.empty((CHAINS, columns + 1), np.int64), np.empty((CHAINS, columns + 1))
    next_from = np.empty((CHAINS, columns + 1), np.int32)
    key, states = np.empty(columns, np.int64), np.empty(columns)
    origin, chain = np.empty(most, np.int32), np.empty(most, np.int8)
    for q in range(begin, end):
        top, bottom = offsets[q], offsets[q + 1]
        n, last, chains = bottom - top, stop[q], first_chain[q + 1] - first_chain[q]
        s, c, a = scores[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result = by_gain[top:bottom], order[top:bottom]
        level = True
        for x in range(1, n):
            if s[x] != s[0]:
                level = False
                break
        if last == 0 or level:
            for i in range(n):
                result[i] = members[i]
            way[q] = ANY if last == 0 else ONE_SORT
        elif chains > CHAINS:
            way[q] = split(s, gain[top:bottom], a, c, result, _states(room, n))
        else:
            first = first_chain[q]
            for g in range(chains):
                from_, to = chain_start[first + g] - top, chain_start[first + g + 1] - top
                start[g], size[g] = from_, min(to - from_, last)
                sort_chain(
                    s, members[from_:to], last, height[from_:to], document[from_:to], other[from_:to], spare[from_:to]
                )
            limit = _states(room, n)
            widest = best_labels(
                height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
                next_key, next_value, next_from, key, states, origin[:limit], chain, label,
            )  # fmt: skip
            if widest < 0:
                way[q] = UNSOLVED
                continue
            for p in range(last):
                g = label[p]
                result[p] = document[start[g]]
                done[result[p]] = True
                start[g] += 1
            p = last
            for x in members:
                if done[x]:
                    done[x] = False
                else:
                    result[p] = x
                    p += 1
            if widest > 1:
                way[q] = MERGE if chains == 2 else IDEALS
            else:
                way[q] = ONE_SORT if low[top] == high[top] else TWO_SORTS
        if way[q] == UNSOLVED:
            continue
        earned, size_ = 0.0, 0.0
        for i in range(n):
            x = top + result[i]
            up, down = c[i] * scores[x], a[i] * gain[x]
            earned += up - down
            size_ += abs(up) + abs(down)
        value[q] = earned
        bound[q] = earned + EPSILON * (8.0 + 2.0 * n) * size_
