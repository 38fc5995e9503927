"""The argmax of queries that sorting and merging leave open: split, priced, or solved as assignments."""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.argmax.beam_search import AUGMENTED, GIVEN_UP, LEFT, PROVED, priced_labels, searched_labels
from formulations.argmax.chains import sort_chains
from formulations.argmax.dense import assign
from formulations.argmax.order_ideals import CHAINS
from formulations.argmax.query import (
    ASSIGNMENT,
    BATCH,
    FEW,
    IDEALS,
    MERGE,
    ONE_SORT,
    OPEN,
    PRICES,
    TWO_SORTS,
    fill_up,
    place,
    settle,
    states_of,
)  # fmt: skip
from formulations.argmax.two_sorts import split
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import READ_FLOATS, compiled

__all__ = ["SHORT", "TINY", "assign_range", "price_range", "search_range", "split_range"]

COLUMNS = 1 << 14
"""Most states that one position may have times chains."""

TINY, SHORT = 40, 150
"""Documents up to which an assignment costs less than prices of a good order, than a wide search."""


@compiled(nb.boolean(READ_FLOATS, nb.int64, nb.int64))
def _tied(decay: Floats, stop: int, chains: int) -> bool:
    """Is the decay level so often, with so few gains, that most exchanges of documents change nothing?"""
    steps = 1
    for p in range(stop):
        steps += decay[p] > decay[p + 1]
    return steps * chains <= stop // 4


@compiled(nb.boolean(READ_FLOATS, nb.int64, nb.int64, nb.int64))
def _once(decay: Floats, n: int, stop: int, chains: int) -> bool:
    """Whether a query is worth one effort of pricing and not more."""
    return n <= SHORT or _tied(decay, stop, chains)


@compiled(nb.void(*BATCH))
def split_range(
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
    """Open queries of many gains, where `two_sorts` splits them."""
    for q in range(begin, end):
        if way[q] == OPEN and first_chain[q + 1] - first_chain[q] > CHAINS:
            rows = slice(offsets[q], offsets[q + 1])
            s, b, a, c = scores[rows], gain[rows], discount[rows], decay[rows]
            way[q] = split(s, b, a, c, order[rows], states_of(room, s.size))
            if way[q] != OPEN:
                settle(s, b, a, c, order[rows], 0.0, q, value, bound)


@compiled(nb.void(*BATCH))
def price_range(
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
    """Open queries of few gains and more than TINY documents, where the prices of a greedy order leave little to
    search; but not those that `search_range` takes."""
    n, rows = 0, 1
    for q in range(begin, end):
        if way[q] == OPEN:
            n = max(n, offsets[q + 1] - offsets[q])
            rows = max(rows, min(first_chain[q + 1] - first_chain[q], CHAINS))
    if n <= TINY:
        return
    largest = states_of(room, n)
    columns = min(COLUMNS, largest)
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    price, most, nothing, hull = np.empty(n), np.empty(n), np.zeros(n), np.empty(n, np.int64)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    next_key, next_value = np.empty((rows, columns + 1), np.int64), np.empty((rows, columns + 1))
    next_from = np.empty((rows, columns + 1), np.int32)
    key, states = np.empty(columns, np.int64), np.empty(columns)
    origin, chain = np.empty(largest, np.int32), np.empty(largest, np.int8)
    member, told = np.empty(n, np.int8), np.zeros(3)
    for q in range(begin, end):
        top, bottom = offsets[q], offsets[q + 1]
        n, last, chains = bottom - top, stop[q], first_chain[q + 1] - first_chain[q]
        if way[q] != OPEN or chains > CHAINS or n <= TINY or not _once(decay[top:bottom], n, last, chains):
            continue
        s, b, c, a = scores[top:bottom], gain[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result, first = by_gain[top:bottom], order[top:bottom], first_chain[q]
        begins = chain_start[first : first + chains + 1]
        sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
        widest = priced_labels(
            height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
            price, most, nothing, hull, next_key, next_value, next_from, key, states,
            origin[: states_of(room, n)], chain, label, member, told,
        )  # fmt: skip
        if widest == GIVEN_UP:
            continue
        place(label, document, start, last, result)
        fill_up(members, last, done, result)
        if widest == PROVED:
            way[q] = PRICES
        elif widest > 1:
            way[q] = MERGE if chains == 2 else IDEALS
        else:
            way[q] = ONE_SORT if low[top] == high[top] else TWO_SORTS
        settle(s, b, a, c, result, told[LEFT], q, value, bound)


@compiled(nb.void(*BATCH))
def search_range(
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
    """Open queries of few gains and more than SHORT documents: prices of ever better orders, then shortest paths."""
    n, rows = 0, 1
    for q in range(begin, end):
        if way[q] == OPEN:
            n = max(n, offsets[q + 1] - offsets[q])
            rows = max(rows, min(first_chain[q + 1] - first_chain[q], CHAINS))
    if n <= TINY:
        return
    largest = states_of(room, n)
    columns = min(COLUMNS, largest)
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    price, most, nothing, hull = np.empty(n), np.empty(n), np.zeros(n), np.empty(n, np.int64)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    next_key, next_value = np.empty((rows, columns + 1), np.int64), np.empty((rows, columns + 1))
    next_from = np.empty((rows, columns + 1), np.int32)
    key, states = np.empty(columns, np.int64), np.empty(columns)
    origin, chain = np.empty(largest, np.int32), np.empty(largest, np.int8)
    member, after, told = np.empty(n, np.int8), np.empty((n, rows), np.int32), np.zeros(3)
    for q in range(begin, end):
        top, bottom = offsets[q], offsets[q + 1]
        n, last, chains = bottom - top, stop[q], first_chain[q + 1] - first_chain[q]
        if way[q] != OPEN or chains > CHAINS or n <= TINY or _once(decay[top:bottom], n, last, chains):
            continue
        s, b, c, a = scores[top:bottom], gain[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result, first = by_gain[top:bottom], order[top:bottom], first_chain[q]
        begins = chain_start[first : first + chains + 1]
        sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
        widest = searched_labels(
            height, worth[first : first + chains], start, size, a, c, low[top:bottom], high[top:bottom], last,
            price, most, nothing, hull, next_key, next_value, next_from, key, states,
            origin[: states_of(room, n)], chain, label, member, after, told,
        )  # fmt: skip
        place(label, document, start, last, result)
        fill_up(members, last, done, result)
        if widest == PROVED:
            way[q] = PRICES
        elif widest == AUGMENTED:
            candidates = 0
            for g in range(chains):
                candidates += size[g]
            way[q] = FEW if candidates < n else ASSIGNMENT
        elif widest > 1:
            way[q] = MERGE if chains == 2 else IDEALS
        else:
            way[q] = ONE_SORT if low[top] == high[top] else TWO_SORTS
        settle(s, b, a, c, result, told[LEFT], q, value, bound)


@compiled(nb.void(*BATCH))
def assign_range(
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
    """What is open still, as an assignment: of few gains only the documents that can be needed take part."""
    n = 0
    for q in range(begin, end):
        n = max(n, offsets[q + 1] - offsets[q])
    height, other, own, worth_of = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    chosen, ranked, done = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    for q in range(begin, end):
        if way[q] != OPEN:
            continue
        top, bottom = offsets[q], offsets[q + 1]
        n, last, chains = bottom - top, stop[q], first_chain[q + 1] - first_chain[q]
        s, b, c, a = scores[top:bottom], gain[top:bottom], decay[top:bottom], discount[top:bottom]
        members, result = by_gain[top:bottom], order[top:bottom]
        if chains > CHAINS:
            left = assign(s, b, a, c, last, _tied(c, last, chains), result)
            way[q] = ASSIGNMENT
        else:
            held, begins = 0, chain_start[first_chain[q] : first_chain[q + 1] + 1]
            sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
            for g in range(chains):
                for i in range(start[g], start[g] + size[g]):
                    x = document[i]
                    chosen[held], own[held], worth_of[held] = x, s[x], b[x]
                    held += 1
            tied = n > TINY and _tied(c, last, chains)
            left = assign(own[:held], worth_of[:held], a, c, last, tied, ranked[:held])
            for p in range(last):
                result[p] = chosen[ranked[p]]
            fill_up(members, last, done, result)
            way[q] = FEW if held < n else ASSIGNMENT
        settle(s, b, a, c, result, left, q, value, bound)
