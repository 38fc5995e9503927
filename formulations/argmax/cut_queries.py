"""The argmax of queries whose first places tell the rest: those are searched by counts, what follows is one sort."""

import numba as nb
import numpy as np

from formulations.argmax.chains import sort_chains
from formulations.argmax.cones import places_of
from formulations.argmax.first_places import best_first_places
from formulations.argmax.order_ideals import CHAINS
from formulations.argmax.query import BATCH, CUT, IDEALS, MERGE, fill_up, place, settle
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import compiled

__all__ = ["place_range"]

PLACED, SLOTS = 1 << 15, 1 << 15
"""Most states of a query, and vectors of counts at one position."""


@compiled(nb.int64(nb.int64, nb.int64))
def _states_of_places(room: int, n: int) -> int:
    """Most states of a query of n documents: as many as cost less than an assignment."""
    return min(room if room > 0 else min(n, 40) * n, PLACED)


@compiled(nb.void(*BATCH))
def place_range(
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
    """Fill order, value, bound and way of the queries begin <= q < end whose way is CUT; who has too many states keeps
    it."""
    n = 0
    for q in range(begin, end):
        if way[q] == CUT:
            n = max(n, offsets[q + 1] - offsets[q])
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    states = _states_of_places(room, n)
    slot = np.full(min(SLOTS, 16 * n * n), -1, np.int32)
    key, placed, tail = np.empty(states, np.int64), np.empty(states), np.empty(states)
    lowest, where = np.empty(states, np.int32), np.empty(states, np.int32)
    origin, chain = np.empty(states, np.int32), np.empty(states, np.int8)
    for q in range(begin, end):
        if way[q] != CUT:
            continue
        top, bottom = offsets[q], offsets[q + 1]
        n, last, first, chains = bottom - top, stop[q], first_chain[q], first_chain[q + 1] - first_chain[q]
        s, b, c, a = scores[top:bottom], gain[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result = by_gain[top:bottom], order[top:bottom]
        begins = chain_start[first : first + chains + 1]
        sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
        widest = best_first_places(
            height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
            places_of(low[top:bottom], high[top:bottom], last), slot[: 16 * n * n], key, placed, tail, lowest, where,
            origin[: _states_of_places(room, n)], chain, label,
        )  # fmt: skip
        if widest < 0:
            continue
        place(label, document, start, last, result)
        fill_up(members, last, done, result)
        way[q] = MERGE if chains == 2 else IDEALS
        settle(s, b, a, c, result, 0.0, q, value, bound)
