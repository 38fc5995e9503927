"""Stable sorts of documents by a key, for one list or inside each query; selection of the nth number.

Blocks of eight are sorted by counting, then merged from both ends at once, without data-dependent branches.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Out, Shorts
from formulations.compiled import compiled, longest_query
from formulations.parallel import share_ranges

BLOCK = 8  # documents that are sorted by counting, for each, how many come before it


@compiled(internal=True)
def _sort_blocks(height: Floats, document: Shorts, other: Out[Floats], spare: Out[Shorts], count: int) -> None:
    """Blocks of the first `count` heights, each by falling height, into other, their documents into spare."""
    full = count // BLOCK * BLOCK
    for begin in range(0, full, BLOCK):
        block = height[begin : begin + BLOCK]
        for i in range(BLOCK):
            own = block[i]
            higher, as_high = 0, 0
            for j in range(BLOCK):
                higher += block[j] > own
                as_high += block[j] >= own
            if as_high - higher > 1:
                for j in range(i):
                    higher += block[j] == own
            other[begin + higher], spare[begin + higher] = own, document[begin + i]
    for i in range(full, count):
        own, x = height[i], document[i]
        j = i
        while j > full and other[j - 1] < own:
            other[j], spare[j] = other[j - 1], spare[j - 1]
            j -= 1
        other[j], spare[j] = own, x


@compiled(internal=True)
def _merge_runs(
    height: Floats, document: Shorts, other: Out[Floats], spare: Out[Shorts], count: int, width: int
) -> None:
    """Runs of `width` of the first `count` heights, two at a time merged into other and spare."""
    for begin in range(0, count, 2 * width):
        middle, end = min(begin + width, count), min(begin + 2 * width, count)
        first, second, position = begin, middle, begin
        last_first, last_second, last = middle - 1, end - 1, end - 1
        # The shorter run is long enough for all of these steps, from both ends.
        for _ in range(min(middle - begin, end - middle)):
            a, b = height[first], height[second]
            x, y = document[first], document[second]
            earlier = a >= b
            other[position] = a if earlier else b
            spare[position] = x if earlier else y
            first += earlier
            second += not earlier
            position += 1
            a, b = height[last_first], height[last_second]
            x, y = document[last_first], document[last_second]
            later = a >= b
            other[last] = b if later else a
            spare[last] = y if later else x
            last_second -= later
            last_first -= not later
            last -= 1
        while first <= last_first or second <= last_second:
            if second > last_second or (first <= last_first and height[first] >= height[second]):
                other[position], spare[position] = height[first], document[first]
                first += 1
            else:
                other[position], spare[position] = height[second], document[second]
                second += 1
            position += 1


@compiled(internal=True)
def sort_pairs(height: Out[Floats], document: Out[Shorts], other: Out[Floats], spare: Out[Shorts]) -> None:
    """Sort heights and their documents in place by falling height, stably. other, spare: buffers."""
    count = height.size
    _sort_blocks(height, document, other, spare, count)
    width, there = BLOCK, False
    while width < count:
        if there:
            _merge_runs(height, document, other, spare, count, width)
        else:
            _merge_runs(other, spare, height, document, count, width)
        there = not there
        width *= 2
    if not there:
        for i in range(count):
            height[i], document[i] = other[i], spare[i]


@compiled(internal=True)
def sort_few(documents: Out[Ints], key: Floats) -> None:
    """`sort_falling` by insertion: for few documents, or to reduce compile time."""
    for i in range(1, documents.size):
        x = documents[i]
        j = i
        while j > 0 and key[documents[j - 1]] < key[x]:
            documents[j] = documents[j - 1]
            j -= 1
        documents[j] = x


def _in_numpy(documents: Ints, key: Floats, spare: Ints) -> None:
    documents[:] = documents[np.argsort(-key[documents], kind="stable")]


@compiled(numpy=_in_numpy, internal=True)
def sort_falling(documents: Out[Ints], key: Floats, spare: Out[Ints]) -> None:
    """Sort `documents` in place by falling key[document], stably. `spare`: a buffer of the same size."""
    count = documents.size
    if count <= 2 * BLOCK:
        sort_few(documents, key)
        return
    height, other = np.empty(count), np.empty(count)
    position, buffer = np.empty(count, np.int32), np.empty(count, np.int32)
    for i in range(count):
        spare[i], position[i] = documents[i], i
        height[i] = key[documents[i]]
    sort_pairs(height, position, other, buffer)
    for i in range(count):
        documents[i] = spare[position[i]]


LEVELS = 12  # different keys in a query, up to which it is sorted by counting: grades, ratings, what follows from these

SLOTS, SHIFT = 64, nb.uint64(58)
"""Slots of the table that finds a key's level, and which bits of a product tell the slot."""

LARGE = nb.uint64(0x9E3779B97F4A7C15)

QUERY_ROWS = 1 << 13  # rows of entire queries that one thread takes at a time


def falling_rows(offsets: Ints, *keys: NDArray[np.generic]) -> Ints:
    """(N,) the rows, query by query, inside each by the first key from the largest number down, NaN last, ties by
    the next, then in input order. Keys are compared as numbers in double precision."""
    numbers = [np.array(key, dtype=np.float64) for key in keys]
    if any(np.isnan(key).any() for key in numbers) or not sort_range.pays(100 * len(keys) * int(offsets[-1])):
        query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        return np.asarray(np.lexsort((*(-key for key in reversed(numbers)), query)))
    rows = np.arange(offsets[-1])
    for key in reversed(numbers):
        share_ranges(offsets, QUERY_ROWS, lambda first, last, key=key: sort_range(offsets, key, first, last, rows))  # type: ignore[misc]
    return rows


def alike(offsets: Ints, *traits: NDArray[Any]) -> Shorts:
    """The kind of each document, counted from 0 within its query: the same exactly where all traits (N,) are equal."""
    order = falling_rows(offsets, *(-np.asarray(trait, dtype=np.float64) for trait in reversed(traits)))
    differs = np.zeros(order.size, dtype=bool)
    for trait in traits:
        differs[1:] |= trait[order[1:]] != trait[order[:-1]]
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    differs[starts] = False
    count = np.cumsum(differs)
    kind = np.empty(order.size, dtype=np.int32)
    kind[order] = count - np.repeat(count[starts], sizes[sizes > 0])
    return kind


def count_pairs(kind: Shorts | Ints, offsets: Ints) -> Floats:
    """(m,) the number of pairs of documents of different kinds; kinds count from 0 in every query."""
    sizes, query = np.diff(offsets), np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    counts = np.bincount(offsets[:-1][query] + kind, minlength=kind.size).astype(np.float64)
    return np.asarray((sizes.astype(np.float64) ** 2 - np.bincount(query, counts**2, sizes.size)) / 2)


@compiled(internal=True)
def _counting_sort(
    rows: Out[Ints],
    key: Floats,
    levels: Out[Floats],
    begins: Out[Ints],
    table: Out[Ints],
    level_of: Out[Ints],
    spare: Out[Ints],
) -> bool:
    """Sort the rows by counting, if their distinct keys fit into the levels. table: a hash table of levels, its size
    a power of 2."""
    held, bits = 0, key.view(np.int64)
    table[:] = -1
    for i in range(rows.size):
        own = key[rows[i]]
        slot = nb.int64(nb.uint64(bits[rows[i]]) * LARGE >> SHIFT)
        while table[slot] >= 0 and levels[table[slot]] != own:
            slot = (slot + 1) & (SLOTS - 1)
        if table[slot] < 0:
            one = 0
            while one < held and levels[one] != own:  # minus zero is zero, in another slot
                one += 1
            if one == held:
                if held == levels.size:
                    return False
                levels[held], begins[held] = own, 0
                held += 1
            table[slot] = one
        level_of[i] = table[slot]
        begins[level_of[i]] += 1
        spare[i] = rows[i]
    for one in range(held):  # from how many there are to where each begins: behind all of higher levels
        before = 0
        for other in range(held):
            if levels[other] > levels[one]:
                before += begins[other]
        begins[held + one] = before
    for i in range(rows.size):
        position = held + level_of[i]
        rows[begins[position]] = spare[i]
        begins[position] += 1
    return True


@compiled()
def sort_range(offsets: Ints, key: Floats, first: int, last: int, rows: Out[Ints]) -> None:
    """Sort the rows of the queries first <= q < last in place by falling key[row], stably; no NaN."""
    longest = longest_query(offsets, first, last)
    spare, level_of, table = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(SLOTS, np.int64)
    levels, begins = np.empty(LEVELS), np.empty(2 * LEVELS, np.int64)
    for q in range(first, last):
        own = rows[offsets[q] : offsets[q + 1]]
        if not _counting_sort(own, key, levels, begins, table, level_of, spare):
            sort_falling(own, key, spare)
