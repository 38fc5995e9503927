"""Rows sorted inside their queries, for all queries at once."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_INTS, compiled
from formulations.stable_sort import sort_falling
from formulations.threads import share_ranges

__all__ = ["QUERY_ROWS", "falling_rows"]

LEVELS = 12
"""Different keys in a query, up to which it is sorted by counting: grades, ratings, what follows from these."""

SLOTS, SHIFT = 64, nb.uint64(58)
"""Slots of the table that finds a key's level, and which bits of a product tell the slot."""

LARGE = nb.uint64(0x9E3779B97F4A7C15)

QUERY_ROWS = 1 << 13
"""Rows of whole queries that one thread takes at a time."""


def falling_rows(offsets: Ints, *keys: NDArray[np.generic]) -> Ints:
    """(N,) the rows, query by query, inside each by the first key from the largest number down, NaN last, equal ones by
    the next, then as they come. Keys are compared as numbers in double precision."""
    numbers = [np.array(key, dtype=np.float64) for key in keys]
    if any(np.isnan(key).any() for key in numbers) or not sort_range.pays(100 * len(keys) * int(offsets[-1])):
        query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        return np.asarray(np.lexsort((*(-key for key in reversed(numbers)), query)))
    rows = np.arange(offsets[-1])
    for key in reversed(numbers):
        share_ranges(offsets, QUERY_ROWS, lambda first, last, key=key: sort_range(offsets, key, first, last, rows))  # type: ignore[misc]
    return rows


@compiled(nb.boolean(INTS, FLOATS, FLOATS, INTS, INTS, INTS, INTS))
def _counted(rows: Ints, key: Floats, levels: Floats, begins: Ints, table: Ints, level_of: Ints, spare: Ints) -> bool:
    """Sort the rows by counting, where they have no more different keys than there is room for levels. table: of a
    power of 2 of slots, which level stands there."""
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
        place = held + level_of[i]
        rows[begins[place]] = spare[i]
        begins[place] += 1
    return True


@compiled(nb.void(READ_INTS, FLOATS, nb.int64, nb.int64, INTS))
def sort_range(offsets: Ints, key: Floats, first: int, last: int, rows: Ints) -> None:
    """Sort the rows of the queries first <= q < last in place by falling key[row], no NaN, equal ones as they stand."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    spare, level_of, table = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(SLOTS, np.int64)
    levels, begins = np.empty(LEVELS), np.empty(2 * LEVELS, np.int64)
    for q in range(first, last):
        own = rows[offsets[q] : offsets[q + 1]]
        if not _counted(own, key, levels, begins, table, level_of, spare):
            sort_falling(own, key, spare)
