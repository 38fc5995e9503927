"""The loss-augmented argmax of many queries: order, value and proven bound, each by a suitable method.

Most queries are sorted or merged (`merge_range`). If the first positions determine the rest, queries of many gains go
to `truncated`; the others go to `local_search` if they are long and have few gains, else to `remaining_queries`. Each
method is compiled when a query first needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from formulations.argmax.assignment import assign_queries
from formulations.argmax.layout import (
    ANY,
    CUT,
    IDEALS,
    LOCAL,
    MERGE,
    NEW,
    ONE_SORT,
    OPEN,
    TWO_SORTS,
    Answers,
    Layout,
    fill_order,
    fill_up,
    prefix_length,
    query_rows,
    settle,
    states_of,
)
from formulations.argmax.order_ideals import CHAINS, best_labels, sort_chains
from formulations.arrays import Floats, Shorts, frozen
from formulations.compiled import Deferral, compiled, inlined, is_small
from formulations.parallel import share_ranges

if TYPE_CHECKING:
    from formulations.problems.ranking import RankTwoBatch

RANGE_ROWS = 1 << 13  # rows of the queries that a thread takes at a time
COLUMNS = 1 << 14  # most states that one position may have times chains

FEW_OPEN, EASY = 32, 1 << 21
"""Queries that may be left to SciPy, and the sum of their cubed lengths: a millisecond or two."""

FEW_STATES = 2  # states a position, on the mean, below which nothing is pruned
WIDTH = 64  # most states at one position

EASILY, NEARLY = 3, 128  # gains and documents up to which a merge costs no more than a search of the first positions

SHORT, DEEP = 40, 15  # documents up to which an assignment costs less than a search of so many positions


def argmax_of(batch: RankTwoBatch, layout: Layout, max_states: int, deferral: Deferral | None = None) -> Answers:
    """The document (counted within its query) at each position; value, bound and method (of `WAYS`) of each query.

    max_states: limit on the states of a query; beyond it shortest paths solve it (`assignment`). 0: an automatic limit,
    beyond which local search solves long queries of few gains. deferral: methods may depend on code on disk.
    """
    is_deferred = deferral is not None and is_small(batch.offsets)
    scores, found = frozen(batch.scores), Answers.empty(batch.offsets, NEW)
    ways = found.way

    def run(way: Callable[..., None]) -> None:
        share_ranges(batch.offsets, RANGE_ROWS, lambda begin, end: way(scores, layout, begin, end, max_states, found))

    run(merge_range)
    if (ways == CUT).any():
        from formulations.argmax.truncated import prefix_range

        if deferral is None or not is_deferred or deferral.ends(prefix_range):
            run(prefix_range)
        if (ways == CUT).any():
            run(merge_range)
    left = ways == OPEN
    if not left.any():
        return found
    chains, lengths = np.diff(layout.first_chain), np.diff(batch.offsets)
    if max_states == 0:
        from formulations.argmax.local_search import SEVERAL, SHORTEST, search_range

        long = left & (chains <= SEVERAL) & (lengths > SHORTEST[np.minimum(chains, SEVERAL)])
        if long.any() and (deferral is None or not is_deferred or deferral.ends(search_range)):
            ways[long] = LOCAL
            run(search_range)
            left = ways == OPEN
    if not left.any():
        return found
    from formulations.argmax.remaining_queries import assign_range, split_range

    many = left & (chains > CHAINS)
    needed = (split_range, assign_range) if many.any() else (assign_range,)
    few = is_deferred or (left.sum() <= FEW_OPEN and (lengths[left] ** 3).sum() <= EASY)
    if few and (deferral is None or not deferral.ends(*needed)):
        weights = (scores, batch.gain, layout.discount, layout.position_weights, batch.offsets)
        with deferral.counted() if deferral else nullcontext():
            assign_queries(*weights, np.flatnonzero(left), found)
        return found
    if many.any():
        run(split_range)
    if (ways == OPEN).any():
        run(assign_range)
    return found


@inlined
def _states_of_merge(max_states: int, n: int, last: int, few: bool) -> int:
    """Maximum number of states of a query that is merged here."""
    return min(states_of(max_states, n), (16 if few else FEW_STATES) * last + min(512, n * n // 8))


@inlined
def _is_cut(low: Shorts, high: Shorts, stop: int) -> bool:
    """Whether to search the first positions; not if an assignment of a short list costs less."""
    turn = prefix_length(low, high, stop)
    return turn > 0 and (low.size > SHORT or turn <= DEEP)


@compiled()
def merge_range(scores: Floats, layout: Layout, begin: int, end: int, max_states: int, found: Answers) -> None:
    """Fill order, value, bound and method of the queries begin <= q < end that sorting and merging solve. Only queries
    marked NEW, or CUT after a failed search, take part; the unsolved ones become CUT or OPEN."""
    offsets, first_chain, way = layout.offsets, layout.first_chain, found.way
    n, rows = 0, 1
    for q in range(begin, end):
        n = max(n, offsets[q + 1] - offsets[q])
        rows = max(rows, first_chain[q + 1] - first_chain[q])
    rows = min(rows, CHAINS)
    largest = _states_of_merge(max_states, n, n, True)
    columns = min(COLUMNS, largest)
    height, other = np.empty(n), np.empty(n)
    document, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    label, done = np.empty(n, np.int8), np.zeros(n, np.bool_)
    start, size = np.empty(CHAINS, np.int64), np.empty(CHAINS, np.int64)
    next_key, next_value = np.empty((rows, columns + 1), np.int64), np.empty((rows, columns + 1))
    next_from = np.empty((rows, columns + 1), np.int32)
    key, states = np.empty(columns, np.int64), np.empty(columns)
    origin, chain = np.empty(largest, np.int32), np.empty(largest, np.int8)
    for q in range(begin, end):
        if way[q] != NEW and way[q] != CUT:
            continue
        top, bottom, last = offsets[q], offsets[q + 1], layout.stop[q]
        n, first, chains = bottom - top, first_chain[q], first_chain[q + 1] - first_chain[q]
        s, b, a, c = query_rows(scores, layout, q)
        members, result = layout.by_gain[top:bottom], found.order[top:bottom]
        low, high = layout.low[top:bottom], layout.high[top:bottom]
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
            way[q] = OPEN
            continue
        else:
            two = chains == 2
            may_be_cut = way[q] == NEW and _is_cut(low, high, last)
            if may_be_cut and (chains > EASILY or n > NEARLY):
                way[q] = CUT
                continue
            begins = layout.chain_start[first : first + chains + 1]
            sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
            limit = _states_of_merge(max_states, n, last, chains <= EASILY)
            widest = best_labels(
                height, layout.worth[first : first + chains], start, size, a, c, low, high, last,
                next_key, next_value, next_from,
                key if two else key[: WIDTH * chains], states, origin[:limit], chain, label,
            )  # fmt: skip
            if widest < 0:
                way[q] = CUT if may_be_cut else OPEN
                continue
            fill_order(label, document, start, last, result)
            fill_up(members, last, done, result)
            if widest > 1:
                way[q] = MERGE if two else IDEALS
            else:
                way[q] = ONE_SORT if low[0] == high[0] else TWO_SORTS
        settle(s, b, a, c, result, 0.0, q, found)
