"""The argmax of queries that sorting and merging leave open: split, or solved as assignments.

Queries with many different gains are sorted and split. A document no worse than another in both extreme directions of a
part's cone (see `find_cones`) goes first in some optimal order. If the first t documents of both extreme sorts are the
same set, the part splits; smaller parts have narrower cones. Other parts of few gains are merged by `order_ideals`.
"""

from __future__ import annotations

import numpy as np

from formulations.argmax.assignment import assign
from formulations.argmax.layout import (
    ANY,
    ASSIGNMENT,
    FEW,
    IDEALS,
    MERGE,
    ONE_SORT,
    OPEN,
    TWO_SORTS,
    Answers,
    Layout,
    fill_up,
    find_cones,
    query_rows,
    settle,
    states_of,
)
from formulations.argmax.order_ideals import CHAINS, best_labels, sort_chains
from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined, longest_query
from formulations.sorting import sort_falling

UNSOLVED = OPEN

COLUMNS = 1 << 12  # most states that one position of a part may have times chains


@compiled(internal=True)
def _merged(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, documents: Out[Ints], max_states: int
) -> int:
    """Put `documents` into their best order for these weights, one per document; returns the method, or UNSOLVED (with
    unchanged documents) for too many gains or more than `max_states` states."""
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
    stop = find_cones(discount, position_weights, low, high)
    columns = min(COLUMNS, max_states)
    ordered = np.empty(count)
    for i in range(count):
        ordered[i] = scores[chained[i]]
    label = np.empty(count, np.int8)
    widest = best_labels(
        ordered, level[:chains], start, size, discount, position_weights, low, high, stop,
        np.empty((CHAINS, columns + 1), np.int64), np.empty((CHAINS, columns + 1)),
        np.empty((CHAINS, columns + 1), np.int32), np.empty(columns, np.int64), np.empty(columns),
        np.empty(max_states, np.int32), np.empty(max_states, np.int8), label,
    )  # fmt: skip
    if widest < 0:
        return UNSOLVED
    used = start[:chains].copy()
    for p in range(stop):
        g = label[p]
        documents[p] = chained[used[g]]
        used[g] += 1
    p = stop
    for g in range(chains):
        for i in range(used[g], start[g] + size[g]):
            documents[p] = chained[i]
            p += 1
    return TWO_SORTS if widest == 1 else MERGE if chains == 2 else IDEALS


@compiled(internal=True)
def split(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, order: Out[Ints], max_states: int
) -> int:
    """Fill `order` with an optimal order of one query; returns the method, UNSOLVED if a part is unsolved."""
    n = scores.size
    for i in range(n):
        order[i] = i
    way = ANY
    key, other = np.empty(n), np.empty(n)
    second, inside = np.empty(n, np.int64), np.zeros(n, np.bool_)
    twos, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    low_step, high_step = np.empty(n, np.int32), np.empty(n, np.int32)
    waiting = np.empty((n + 1, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, n
    parts = 1
    while parts:
        parts -= 1
        low, high = waiting[parts, 0], waiting[parts, 1]
        a, c = discount[low:high], position_weights[low:high]
        if find_cones(a, c, low_step[low:high], high_step[low:high]) == 0:
            continue
        lower, upper = low_step[low], high_step[low]
        dc, da = c[lower] - c[lower + 1], a[lower] - a[lower + 1]
        ec, ea = c[upper] - c[upper + 1], a[upper] - a[upper + 1]
        one, two = order[low:high], twos[low:high]
        for x in order[low:high]:  # the documents of the part by index: ties in both keys have one common order
            inside[x] = True
        index = 0
        for x in range(n):
            if inside[x]:
                one[index], two[index] = x, x
                inside[x] = False
                index += 1
        for x in one:
            key[x] = dc * scores[x] - da * gain[x]
            other[x] = ec * scores[x] - ea * gain[x]
        if lower == upper:
            sort_falling(one, key, spare)
            way = max(way, ONE_SORT)
            continue
        sort_falling(one, other, spare)
        sort_falling(one, key, spare)
        sort_falling(two, key, spare)
        sort_falling(two, other, spare)
        for i in range(high - low):
            second[two[i]] = i
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
            merged = _merged(scores, gain, a, c, order[low:high], max_states)
            if merged == UNSOLVED:
                return UNSOLVED
            way = max(way, merged)
    return way


TINY = 40  # documents up to which an assignment starts from a good order even if most exchanges are ties


@inlined
def _tied(position_weights: Floats, stop: int, chains: int) -> bool:
    """Whether most exchanges of documents are ties, because of equal position weights and few gains."""
    steps = 1
    for p in range(stop):
        steps += position_weights[p] > position_weights[p + 1]
    return steps * chains <= stop // 4


@compiled()
def split_range(scores: Floats, layout: Layout, begin: int, end: int, max_states: int, found: Answers) -> None:
    """Solve open queries of many gains by sorting and splitting."""
    offsets, first_chain, way = layout.offsets, layout.first_chain, found.way
    for q in range(begin, end):
        if way[q] == OPEN and first_chain[q + 1] - first_chain[q] > CHAINS:
            s, b, a, c = query_rows(scores, layout, q)
            result = found.order[offsets[q] : offsets[q + 1]]
            way[q] = split(s, b, a, c, result, states_of(max_states, s.size))
            if way[q] != OPEN:
                settle(s, b, a, c, result, 0.0, q, found)


@compiled()
def assign_range(scores: Floats, layout: Layout, begin: int, end: int, max_states: int, found: Answers) -> None:
    """Solve the remaining queries as assignments; for few gains with `candidates_of` only."""
    offsets, first_chain, way = layout.offsets, layout.first_chain, found.way
    n = longest_query(offsets, begin, end)
    height, other, own, worth_of = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    chosen, ranked, done = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    for q in range(begin, end):
        if way[q] != OPEN:
            continue
        top, bottom, last = offsets[q], offsets[q + 1], layout.stop[q]
        n, chains = bottom - top, first_chain[q + 1] - first_chain[q]
        s, b, a, c = query_rows(scores, layout, q)
        members, result = layout.by_gain[top:bottom], found.order[top:bottom]
        if chains > CHAINS:
            left = assign(s, b, a, c, last, _tied(c, last, chains), result)
            way[q] = ASSIGNMENT
        else:
            held, begins = 0, layout.chain_start[first_chain[q] : first_chain[q + 1] + 1]
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
        settle(s, b, a, c, result, left, q, found)
