"""The loss-augmented argmax of a range of queries: order, value and proven bound, by the way that suits each."""

import numba as nb
import numpy as np

from formulations.argmax.beam_search import AUGMENTED, GIVEN_UP, PROVED, proved_labels
from formulations.argmax.chains import sort_chain
from formulations.argmax.dense import assign
from formulations.argmax.order_ideals import CHAINS, NO_BEAM, best_labels
from formulations.argmax.two_sorts import split
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled

__all__ = ["WAYS", "argmax_range"]

WAYS = ("any order", "one sort", "two sorts", "merge", "order ideals", "prices", "few candidates", "assignment")
ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, PRICES, FEW, ASSIGNMENT, UNSOLVED = range(9)

COLUMNS = 1 << 14
"""Most states that one position may have times chains."""

EPSILON = 2.0**-52

FEW_STATES = 2
"""States a position, on the mean, below which nothing is pruned."""

WIDTH = 64
"""Most of them at one position."""

TINY, SHORT = 40, 150
"""Documents up to which an assignment costs less than prices of a good order, than a wide search."""


@compiled(nb.int64(nb.int64, nb.int64))
def _states(room: int, n: int) -> int:
    """How many states a query of n documents may have: `room`, or if that is 0 what a narrow search takes."""
    return room if room > 0 else 80 * n + 2048


@compiled(nb.boolean(READ_FLOATS, nb.int64, nb.int64))
def _tied(decay: Floats, stop: int, chains: int) -> bool:
    """Is the decay level so often, with so few gains, that most exchanges of documents change nothing?"""
    steps = 1
    for p in range(stop):
        steps += decay[p] > decay[p + 1]
    return steps * chains <= stop // 4


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

    room: most states of a query, 0 for as many as pay. Who needs more is solved by shortest paths (see
    `augmenting_paths`, and `dense` for short lists and more than CHAINS gains).
    """
    n, rows = 0, 1
    for q in range(begin, end):
        n = max(n, offsets[q + 1] - offsets[q])
        rows = max(rows, first_chain[q + 1] - first_chain[q])
    rows = min(rows, CHAINS)
    largest = _states(room, n)
    columns = min(COLUMNS, largest)
    height, other = np.empty(n), np.empty(n)
    chosen, ranked = np.empty(n, np.int64), np.empty(n, np.int64)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    price, most, nothing, hull = np.empty(n), np.empty(n), np.zeros(n), np.empty(n, np.int64)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    next_key, next_value = np.empty((rows, columns + 1), np.int64), np.empty((rows, columns + 1))
    next_from = np.empty((rows, columns + 1), np.int32)
    key, states = np.empty(columns, np.int64), np.empty(columns)
    origin, chain = np.empty(largest, np.int32), np.empty(largest, np.int8)
    member, after, left = np.empty(n, np.int8), np.empty((n, rows), np.int32), np.zeros(1)
    for q in range(begin, end):
        top, bottom = offsets[q], offsets[q + 1]
        n, last, chains = bottom - top, stop[q], first_chain[q + 1] - first_chain[q]
        s, c, a = scores[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result = by_gain[top:bottom], order[top:bottom]
        level, left[0] = True, 0.0
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
            if way[q] == UNSOLVED:
                tied = _tied(c, last, chains)
                left[0], way[q] = assign(s, gain[top:bottom], a, c, last, tied, result), ASSIGNMENT
        else:
            first = first_chain[q]
            for g in range(chains):
                from_, to = chain_start[first + g] - top, chain_start[first + g + 1] - top
                start[g], size[g] = from_, min(to - from_, last + 1)
                part = slice(from_, to)
                sort_chain(s, members[part], last + 1, height[part], document[part], other[part], spare[part])
            many = chains == 2
            limit = min(_states(room, n), (16 if many else FEW_STATES) * last + min(512, n * n // 8))
            widest = best_labels(
                height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
                nothing, nothing, np.inf, NO_BEAM, next_key, next_value, next_from,
                key if many else key[: WIDTH * chains], states,
                origin[:limit], chain, label,
            )  # fmt: skip
            pruned, tied = widest < 0, False
            if pruned and n <= TINY:
                widest = GIVEN_UP
            elif pruned:
                tied = _tied(c, last, chains)
                widest = proved_labels(
                    height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
                    price, most, nothing, hull, next_key, next_value, next_from, key, states,
                    origin[: _states(room, n)], chain, label, member, after, left,
                    1 if n <= SHORT or tied else 0,
                )  # fmt: skip
            candidates = size[:chains].sum()
            if pruned and widest == GIVEN_UP:
                held = 0
                for g in range(chains):
                    for i in range(start[g], start[g] + size[g]):
                        chosen[held] = document[i]
                        held += 1
                some = chosen[:held]
                left[0] = assign(s[some], gain[top:bottom][some], a, c, last, tied, ranked[:held])
                for p in range(last):
                    result[p] = some[ranked[p]]
            else:
                for p in range(last):
                    g = label[p]
                    result[p] = document[start[g]]
                    start[g] += 1
            done[result[:last]] = True
            p = last
            for x in members:
                if done[x]:
                    done[x] = False
                else:
                    result[p] = x
                    p += 1
            if pruned and widest == PROVED:
                way[q] = PRICES
            elif pruned and widest in (AUGMENTED, GIVEN_UP):
                way[q] = FEW if candidates < n else ASSIGNMENT
            elif widest > 1:
                way[q] = MERGE if chains == 2 else IDEALS
            else:
                way[q] = ONE_SORT if low[top] == high[top] else TWO_SORTS
        earned, magnitude = 0.0, 0.0
        for i in range(n):
            x = top + result[i]
            up, down = c[i] * scores[x], a[i] * gain[x]
            earned += up - down
            magnitude += abs(up) + abs(down)
        value[q] = earned
        bound[q] = earned + EPSILON * (8.0 + 2.0 * n) * magnitude + left[0]
