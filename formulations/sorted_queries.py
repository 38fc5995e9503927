"""Rows sorted inside their queries, for all queries at once."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, INTS, READ_INTS, SHORTS, compiled
from formulations.stable_sort import sort_falling
from formulations.threads import share_ranges

__all__ = ["falling_rows"]

LEVELS = 12
"""Different keys in a query, up to which it is sorted by counting: grades, ratings, what follows from these."""

QUERY_ROWS = 1 << 13
"""Rows of whole queries that one thread takes at a time."""


def falling_rows(offsets: Ints, *keys: NDArray[np.generic]) -> Ints:
    """(N,) the rows, query by query, inside each by the first key from the largest value down, equal ones by the next,
    then as they come."""
    if not sort_range.pays(100 * len(keys) * int(offsets[-1])):
        query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        return np.asarray(np.lexsort((*(-key for key in reversed(keys)), query)))
    rows = np.arange(offsets[-1])
    for key in reversed(keys):
        by = np.array(key, dtype=np.float64)
        share_ranges(offsets, QUERY_ROWS, lambda first, last, by=by: sort_range(offsets, by, first, last, rows))  # type: ignore[misc]
    return rows


@compiled(nb.boolean(INTS, FLOATS, FLOATS, INTS, SHORTS, INTS))
def _counted(rows: Ints, key: Floats, levels: Floats, begins: Ints, level_of: Shorts, spare: Ints) -> bool:
    """Sort the rows by counting, where they have no more different keys than there is room for levels."""
    held = 0
    for i in range(rows.size):
        own, one = key[rows[i]], 0
        while one < held and levels[one] != own:
            one += 1
        if one == held:
            if held == levels.size:
                return False
            levels[one], begins[one] = own, 0
            held += 1
        level_of[i] = one
        begins[one] += 1
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
    """Sort the rows of the queries first <= q < last in place by falling key[row], equal ones as they stand."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    spare, level_of = np.empty(longest, np.int64), np.empty(longest, np.int32)
    levels, begins = np.empty(LEVELS), np.empty(2 * LEVELS, np.int64)
    for q in range(first, last):
        own = rows[offsets[q] : offsets[q + 1]]
        if not _counted(own, key, levels, begins, level_of, spare):
            sort_falling(own, key, spare)
