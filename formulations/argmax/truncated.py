"""The argmax of queries with a truncated discount: a search over the first positions, then one sort of the rest.

After the cutoff of a discount only the position weights fall, so the rest is in order of score. More generally, if all
steps are parallel from position `turn` on (see `find_cones`), the rest is sorted by one key. Assume that the cone is
constant before `turn`. Then a document needs its dominators before it, and states (used counts of each gain) are the
ideals of one partial order: at most C(turn + G, G) for G gains, for a list of any length.

The value of the rest is a sum of table entries over the documents used before. The last of them in the sort dominates
none, so each state adds one entry to the sum of the state without it. The table: all documents are ranked by one key,
and `turn` of them are at the first positions. With t of these above it, a document at rank r would be at position
turn + r - t. Removing it costs its value there and moves the later documents up by one. These costs, each with its own
t, sum to the total cost of the removed documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.argmax.layout import (
    CUT,
    IDEALS,
    MERGE,
    Answers,
    Layout,
    fill_order,
    fill_up,
    prefix_length,
    query_rows,
    settle,
)
from formulations.argmax.order_ideals import CHAINS, sort_chains
from formulations.arrays import Bytes, Cube, Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined


class SortedChains(NamedTuple):
    """Chain g holds size[g] documents of gain worth[g], their scores falling in height[start[g] : start[g] + size[g]];
    and the weights of the positions."""

    height: Out[Floats]
    worth: Floats
    start: Out[Ints]
    size: Out[Ints]
    discount: Floats
    position_weights: Floats


@compiled(internal=True)
def sort_rest(
    query: SortedChains, step: int, used: Out[Ints], wanted: Ints, first: int, last: int, label: Out[Bytes]
) -> int:
    """label[p] = the chain of the document at first <= p < last, by the key of the step from position `step`; updates
    the `used` counts of chains. Returns the position after the last `wanted` document."""
    height, worth, start, size, discount, position_weights = query
    chains, left = worth.size, 0
    dc, da = position_weights[step] - position_weights[step + 1], discount[step] - discount[step + 1]
    key = np.full(chains, -np.inf)
    for g in range(chains):
        left += used[g] < wanted[g]
        if used[g] < size[g]:
            key[g] = dc * height[start[g] + used[g]] - da * worth[g]
    p = first
    while p < last and left:
        best, most = 0, key[0]
        for g in range(1, chains):
            if key[g] > most:
                best, most = g, key[g]
        label[p] = best
        p += 1
        used[best] += 1
        left -= used[best] == wanted[best]
        key[best] = -np.inf
        if used[best] < size[best]:
            key[best] = dc * height[start[best] + used[best]] - da * worth[best]
    return p


@compiled(internal=True)
def tail_costs(
    query: SortedChains, step: int, turn: int, stop: int, most: Ints, rank: Out[Table[Ints]], cost: Out[Cube[Floats]]
) -> None:
    """rank[g, i] in the sort of all by the key of `step`, cost[g, i, turn - 1 - t] of removing that document
    if t before it are removed; up to a constant common to all choices of `turn` documents."""
    height, worth, start, size, discount, position_weights = query
    chains, total = worth.size, 0
    for g in range(chains):
        total += size[g]
    listed, ranked = np.zeros(chains, np.int64), np.empty(total, np.int8)
    # Documents after the last removable one move up equally for any choice.
    end = sort_rest(query, step, listed, most, 0, total, ranked)
    weight, share, base = discount, 0.0, 1.0
    if position_weights[step] > position_weights[step + 1]:
        weight, share = position_weights, 1.0
        base = (discount[step] - discount[step + 1]) / (position_weights[step] - position_weights[step + 1])
    above = np.zeros(end + turn + 1)
    for p in range(min(stop, above.size)):
        above[p] = weight[p] - weight[stop]
    raised = np.zeros(turn)
    for r in range(end - 1, -1, -1):
        g = ranked[r]
        listed[g] -= 1
        i = listed[g]
        worthy = share * height[start[g] + i] - base * worth[g]
        if i < most[g]:
            rank[g, i] = r
            for below in range(turn):
                cost[g, i, below] = above[r + below + 1] * worthy - raised[below]
        for below in range(turn):
            raised[below] += (above[r + below] - above[r + below + 1]) * worthy


@compiled(internal=True)
def _dominators(
    query: SortedChains, low: int, high: int, turn: int, field: int, most: Out[Ints], need: Out[Table[Ints]]
) -> None:
    """need[g, i]: how many of each chain dominate document i of chain g, `field` bits a chain; most[g]: how many of
    chain g can be before `turn`; the others have too many dominators."""
    height, worth, start, size, discount, position_weights = query
    chains = worth.size
    dc, da = position_weights[low] - position_weights[low + 1], discount[low] - discount[low + 1]
    ec, ea = position_weights[high] - position_weights[high + 1], discount[high] - discount[high + 1]
    one, two = np.empty((chains, turn)), np.empty((chains, turn))
    for g in range(chains):
        for i in range(min(size[g], turn)):
            s = height[start[g] + i]
            one[g, i], two[g, i] = dc * s - da * worth[g], ec * s - ea * worth[g]
    over = np.empty(chains, np.int64)
    for g in range(chains):
        over[:] = 0
        i = 0
        while i < min(size[g], turn):
            x, y, packed, before = one[g, i], two[g, i], 0, i
            for h in range(chains):
                if h == g:
                    continue
                j, reach = over[h], min(size[h], turn)
                if h < g:
                    while j < reach and one[h, j] >= x and two[h, j] >= y:
                        j += 1
                else:
                    while j < reach and one[h, j] >= x and two[h, j] >= y and (one[h, j] > x or two[h, j] > y):
                        j += 1
                over[h] = j
                packed += j << (field * h)
                before += j
            if before >= turn:
                break
            need[g, i] = packed
            i += 1
        most[g] = i
        for blocked in range(i, turn + 1):
            need[g, blocked] = (turn + 1) << (field * g)


@compiled(internal=True)
def best_first_prefixes(
    query: SortedChains, low: Shorts, high: Shorts, stop: int, turn: int, slot: Out[Shorts], key: Out[Ints],
    value: Out[Floats], tail: Out[Floats], last: Out[Shorts], where: Out[Shorts], origin: Out[Shorts],
    chain: Out[Bytes], label: Out[Bytes],
) -> int:  # fmt: skip
    """As `best_labels` for the `turn` > 0 of `prefix_length`, without pruning.

    Buffers: slot, -1 for each vector of counts of all gains but one, reset at the end; the others per state.
    """
    height, worth, start, size, discount, position_weights = query
    chains, max_states = worth.size, origin.size
    field = 2
    while turn + 1 >= 1 << (field - 1):
        field += 1
    if field * chains > 62:
        return -1
    most, need = np.zeros(chains, np.int64), np.empty((chains, turn + 1), np.int64)
    _dominators(query, low[0], high[0], turn, field, most, need)
    radix, cells, longest, guards = np.zeros(chains, np.int64), 1, 0, 0
    for g in range(chains):
        guards += 1 << (field * g + field - 1)
        if most[g] > most[longest]:
            longest = g
    for g in range(chains):
        if g != longest:  # the position determines its count
            radix[g] = cells
            cells *= most[g] + 1
    if cells > slot.size:
        return -1
    rank, cost = np.zeros((chains, turn), np.int64), np.empty((chains, turn, turn))
    tailed = turn < stop
    if tailed:
        tail_costs(query, low[turn], turn, stop, most, rank, cost)
    floor_c, floor_a = position_weights[stop], discount[stop]
    mask = (1 << (field - 1)) - 1
    key[0], value[0], tail[0], last[0], where[0], origin[0] = 0, 0.0, 0.0, -1, 0, -1
    begin, end, widest = 0, 1, 1
    for p in range(turn):
        c, a, below, new = position_weights[p] - floor_c, discount[p] - floor_a, turn - 1 - p, end
        for state in range(begin, end):
            here = key[state]
            for g in range(chains):
                i = (here >> (field * g)) & mask
                if ((here | guards) - need[g, i]) & guards != guards:
                    continue
                reached, at = value[state] + (c * height[start[g] + i] - a * worth[g]), where[state] + radix[g]
                there = slot[at]
                if there < 0:
                    if new == max_states:
                        for t in range(end, new):
                            slot[where[t]] = -1
                        return -1
                    there = new
                    slot[at], where[new], key[new] = new, at, here + (1 << (field * g))
                    value[new], tail[new], last[new] = -np.inf, np.nan if tailed else 0.0, max(last[state], rank[g, i])
                    new += 1
                if reached > value[there]:
                    value[there], origin[there], chain[there] = reached, state, g
                if tailed and rank[g, i] > last[state]:
                    tail[there] = tail[state] + cost[g, i, below]
        for t in range(end, new):
            slot[where[t]] = -1
        begin, end = end, new
        widest = max(widest, end - begin)
    best = begin
    for state in range(begin, end):
        if tail[state] != tail[state]:  # rounding made two different keys equal
            return -1
        if value[state] - tail[state] > value[best] - tail[best]:
            best = state
    used = np.empty(chains, np.int64)
    for g in range(chains):
        used[g] = (key[best] >> (field * g)) & mask
    for p in range(turn - 1, -1, -1):
        label[p] = chain[best]
        best = origin[best]
    if tailed:
        sort_rest(query, low[turn], used, size, turn, stop, label)
    return widest


MAX_STATES, SLOTS = 1 << 15, 1 << 15  # most states of a query, and vectors of counts at one position


@inlined
def _states_of_prefixes(max_states: int, n: int) -> int:
    """The maximum number of states of a query of n documents, cheaper than an assignment."""
    return min(max_states if max_states > 0 else min(n, 40) * n, MAX_STATES)


@compiled()
def prefix_range(scores: Floats, layout: Layout, begin: int, end: int, max_states: int, found: Answers) -> None:
    """Solve the queries begin <= q < end marked CUT; those with too many states stay CUT."""
    offsets, first_chain, way = layout.offsets, layout.first_chain, found.way
    n = 0
    for q in range(begin, end):
        if way[q] == CUT:
            n = max(n, offsets[q + 1] - offsets[q])
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    states = _states_of_prefixes(max_states, n)
    slot = np.full(min(SLOTS, 16 * n * n), -1, np.int32)
    key, used, tail = np.empty(states, np.int64), np.empty(states), np.empty(states)
    lowest, where = np.empty(states, np.int32), np.empty(states, np.int32)
    origin, chain = np.empty(states, np.int32), np.empty(states, np.int8)
    for q in range(begin, end):
        if way[q] != CUT:
            continue
        top, bottom, last = offsets[q], offsets[q + 1], layout.stop[q]
        n, first, chains = bottom - top, first_chain[q], first_chain[q + 1] - first_chain[q]
        s, b, a, c = query_rows(scores, layout, q)
        members, result = layout.by_gain[top:bottom], found.order[top:bottom]
        low, high = layout.low[top:bottom], layout.high[top:bottom]
        begins = layout.chain_start[first : first + chains + 1]
        sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
        widest = best_first_prefixes(
            SortedChains(height, layout.worth[first : first + chains], start, size, a, c), low, high, last,
            prefix_length(low, high, last), slot[: 16 * n * n], key, used, tail, lowest, where,
            origin[: _states_of_prefixes(max_states, n)], chain, label,
        )  # fmt: skip
        if widest < 0:
            continue
        fill_order(label, document, start, last, result)
        fill_up(members, last, done, result)
        way[q] = MERGE if chains == 2 else IDEALS
        settle(s, b, a, c, result, 0.0, q, found)
