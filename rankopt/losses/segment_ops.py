"""Sorting and averaging within queries, for all queries at once.

Equal documents share a slope, so that slopes do not depend on the input order. A maximum over rankings may be attained
by several; each gives a subgradient, and so does their mean. Exchanging documents of equal score, gain and attributes
gives another maximizer: the mean over all exchanges assigns each their mean slope, which for others is no subgradient.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined, longest_query
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, falling_rows
from rankopt.measures.tied_ranking import query_of_row


def sorted_rows(query: Ints, *keys: NDArray[np.generic]) -> Ints:
    """Row indices sorted by query (non-decreasing), then by each key in decreasing order, then by row."""
    begins = np.flatnonzero(query[1:] != query[:-1]) + 1
    return falling_rows(np.concatenate([[0], begins, [query.size]]), *keys)


def mean_of_alike(values: Floats, order: Ints, *traits: NDArray[np.generic]) -> Floats:
    """For each entry, the mean of `values` over all entries with equal traits; `order` makes these adjacent. Values are
    added in order, as in the kernel."""
    differs = np.zeros(order.size, dtype=bool)
    for trait in traits:
        differs[1:] |= trait[order[1:]] != trait[order[:-1]]
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(differs)
    return np.asarray((np.bincount(group, values) / np.bincount(group))[group])


def mean_of_runs(values: Floats, *keys: NDArray[np.generic]) -> Floats:
    """Each run of neighbors with all keys equal gets the mean of `values` over the run."""
    starts = np.zeros(values.size, dtype=bool)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, values.size))
    return np.repeat(np.add.reduceat(values, first) / lengths, lengths)


FEW = 16  # documents that are compared in pairs
NONE, ONE, RISES, FALLS = 0, 1, 2, 3
"""What is known of the documents of a kind: none seen, one, or how their scores go on."""

LARGE = nb.uint64(0x9E3779B97F4A7C15)
OTHER = nb.uint64(0xC2B2AE3D27D4EB4F)
HALF = nb.uint64(32)
MINUS_ZERO = -(1 << 63)


def shared(slope: Floats, scores: Floats, kind: Shorts, offsets: Ints, order: Ints | None = None) -> Floats:
    """`slope` (N,) averaged over documents of one query with equal score and kind; changed in place. order: (N,)
    rankings of the documents (indices within the query) in which each kind is sorted by score, if available: equal
    documents are then adjacent in their kind."""
    arguments = (np.ascontiguousarray(scores), kind, offsets)
    kernel = share_range if order is None else share_ordered
    if not kernel.pays(150 * slope.size):
        query = query_of_row(offsets)
        slope[:] = mean_of_alike(slope, np.lexsort((scores, kind, query)), query, kind, scores)
        return slope
    if order is None:
        share_ranges(offsets, QUERY_ROWS, lambda first, last: share_range(*arguments, first, last, slope))
    else:
        share_ranges(offsets, QUERY_ROWS, lambda first, last: share_ordered(order, *arguments, first, last, slope))
    return slope


@inlined
def _bits(scores: Ints, i: int) -> Any:
    """The bits of a score; minus zero is zero."""
    return 0 if scores[i] == MINUS_ZERO else scores[i]


@inlined
def _slot(table: Ints, bits: Ints, kind: Shorts, i: int, size: int) -> Any:
    """The hash table slot of document i, or a free one (-1), in a table of `size` slots, a power of 2. The leading bits
    of the product are used: scores like 1 and 2 differ in their leading bits only."""
    mixed = nb.uint64(_bits(bits, i)) * LARGE + nb.uint64(kind[i]) * OTHER
    slot = nb.int64((mixed >> HALF) * nb.uint64(size) >> HALF)
    while table[slot] >= 0 and (_bits(bits, table[slot]) != _bits(bits, i) or kind[table[slot]] != kind[i]):
        slot = (slot + 1) & (size - 1)
    return slot


@compiled(internal=True)
def share_query(
    bits: Ints, kind: Shorts, low: int, high: int, buffers: Out[Table[Ints]], table: Out[Ints], total: Out[Floats],
    slope: Out[Floats],
) -> None:  # fmt: skip
    """`shared` for the query of rows low <= i < high; scores as bits. Documents with a nonzero slope are inserted into
    a hash table; the others are looked up. Memory: three integer rows and one row of sums, one entry a document; table:
    a power of 2, twice the documents."""
    heavy, leader, count = buffers[0], buffers[1], buffers[2]
    held = 0
    for i in range(low, high):
        if slope[i] != 0.0:
            heavy[held] = i
            held += 1
    size = 4
    while size < 2 * held:
        size *= 2
    table[:size] = -1
    for h in range(held):
        i = heavy[h]
        slot = _slot(table, bits, kind, i, size)
        if table[slot] < 0:
            table[slot] = i
            count[i - low], total[i - low] = 0, 0.0
        one = table[slot]
        leader[i - low] = one
        count[one - low] += 1
        total[one - low] += slope[i]
    if held < high - low:
        for i in range(low, high):
            if slope[i] == 0.0:
                one = table[_slot(table, bits, kind, i, size)]
                leader[i - low] = one
                if one >= 0:
                    count[one - low] += 1
    for i in range(low, high):
        one = leader[i - low]
        if one >= 0 and count[one - low] > 1:
            slope[i] = total[one - low] / count[one - low]


@compiled(internal=True)
def table_size(documents: int) -> int:
    """The slots of a table for so many documents: a power of 2, twice as many at least."""
    size = 4
    while size < 2 * documents:
        size *= 2
    return size


@compiled()
def share_range(scores: Floats, kind: Shorts, offsets: Ints, first: int, last: int, slope: Out[Floats]) -> None:
    """`shared` of the queries first <= q < last, in time linear in their documents. Of a list that ends at position 10
    ten documents have a slope. In a best order these have the highest scores of their kind; where no other has so high
    a score, and no two of them are equal, a glance at each is all."""
    most = longest_query(offsets, first, last)
    buffers, total, lowest = np.empty((3, most), np.int64), np.empty(most), np.empty(most)
    table, bits, heavy = np.empty(table_size(most), np.int64), scores.view(np.int64), np.empty(FEW, np.int64)
    for q in range(first, last):
        low, high, held, tied = offsets[q], offsets[q + 1], 0, False
        lowest[: high - low] = np.inf
        for i in range(low, high):
            if slope[i] != 0.0:
                if held == FEW:
                    tied = True
                    break
                for h in range(held):
                    tied |= scores[heavy[h]] == scores[i]
                heavy[held] = i
                held += 1
                lowest[kind[i]] = min(lowest[kind[i]], scores[i])
        if not tied:
            for i in range(low, high):
                tied |= slope[i] == 0.0 and scores[i] >= lowest[kind[i]]
        if tied:
            share_query(bits, kind, low, high, buffers, table, total, slope)


@compiled()
def share_ordered(
    order: Ints, scores: Floats, kind: Shorts, offsets: Ints, first: int, last: int, slope: Out[Floats]
) -> None:
    """`share_range` with rankings (N,) of the documents. If the scores of every kind are strictly monotone along the
    ranking, none are equal; other queries use the hash table, whatever their ranking."""
    most = longest_query(offsets, first, last)
    buffers, total, before = np.empty((3, most), np.int64), np.empty(most), np.empty(most)
    table, bits, turn = np.empty(table_size(most), np.int64), scores.view(np.int64), np.empty(most, np.int8)
    for q in range(first, last):
        low, high, tied = offsets[q], offsets[q + 1], False
        turn[: high - low] = NONE
        for position in range(low, high):
            i = low + order[position]
            own, score = kind[i], scores[i]
            if turn[own] == NONE:
                turn[own] = ONE
            elif turn[own] == ONE:
                turn[own] = RISES if score > before[own] else FALLS
                tied |= score == before[own]
            else:
                tied |= not (score > before[own] if turn[own] == RISES else score < before[own])
            before[own] = score
        if tied:
            share_query(bits, kind, low, high, buffers, table, total, slope)
