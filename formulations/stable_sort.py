"""A stable sort of documents by a key, compiled once and shared by all kernels.

Blocks of eight are sorted by counting, then merged from both ends at once. How a comparison comes out says what is
copied, never what is done next, so the processor guesses no branch wrong: half the time of merging by branches.
"""

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, INTS, SHORTS, compiled

__all__ = ["sort_falling", "sort_few", "sort_pairs"]

BLOCK = 8
"""Documents that are sorted by counting, for each, how many come before it."""


@compiled(nb.void(FLOATS, SHORTS, FLOATS, SHORTS, nb.int64))
def _sort_blocks(height: Floats, document: Shorts, other: Floats, spare: Shorts, count: int) -> None:
    """Blocks of the first `count` heights, each by falling height, into other, their documents into spare."""
    whole = count // BLOCK * BLOCK
    for begin in range(0, whole, BLOCK):
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
    for i in range(whole, count):
        own, x = height[i], document[i]
        j = i
        while j > whole and other[j - 1] < own:
            other[j], spare[j] = other[j - 1], spare[j - 1]
            j -= 1
        other[j], spare[j] = own, x


@compiled(nb.void(FLOATS, SHORTS, FLOATS, SHORTS, nb.int64, nb.int64))
def _merge_runs(height: Floats, document: Shorts, other: Floats, spare: Shorts, count: int, width: int) -> None:
    """Runs of `width` of the first `count` heights, two at a time merged into other and spare."""
    for begin in range(0, count, 2 * width):
        middle, end = min(begin + width, count), min(begin + 2 * width, count)
        first, second, place = begin, middle, begin
        last_first, last_second, last = middle - 1, end - 1, end - 1
        # The shorter run has room for all of these steps, from both ends.
        for _ in range(min(middle - begin, end - middle)):
            a, b = height[first], height[second]
            x, y = document[first], document[second]
            earlier = a >= b
            other[place] = a if earlier else b
            spare[place] = x if earlier else y
            first += earlier
            second += not earlier
            place += 1
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
                other[place], spare[place] = height[first], document[first]
                first += 1
            else:
                other[place], spare[place] = height[second], document[second]
                second += 1
            place += 1


@compiled(nb.void(FLOATS, SHORTS, FLOATS, SHORTS))
def sort_pairs(height: Floats, document: Shorts, other: Floats, spare: Shorts) -> None:
    """Sort heights and their documents in place by falling height, equal ones as they come. other, spare: as much room
    again."""
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


@compiled(nb.void(INTS, FLOATS))
def sort_few(documents: Ints, key: Floats) -> None:
    """`sort_falling` by insertion: for few documents, or where compiling should cost little."""
    for i in range(1, documents.size):
        x = documents[i]
        j = i
        while j > 0 and key[documents[j - 1]] < key[x]:
            documents[j] = documents[j - 1]
            j -= 1
        documents[j] = x


def _in_numpy(documents: Ints, key: Floats, spare: Ints) -> None:
    documents[:] = documents[np.argsort(-key[documents], kind="stable")]


@compiled(nb.void(INTS, FLOATS, INTS), numpy=_in_numpy)
def sort_falling(documents: Ints, key: Floats, spare: Ints) -> None:
    """Sort `documents` in place by falling key[document], equal keys as they come. `spare` has room for them."""
    count = documents.size
    if count <= 2 * BLOCK:
        sort_few(documents, key)
        return
    height, other = np.empty(count), np.empty(count)
    place, room = np.empty(count, np.int32), np.empty(count, np.int32)
    for i in range(count):
        spare[i], place[i] = documents[i], i
        height[i] = key[documents[i]]
    sort_pairs(height, place, other, room)
    for i in range(count):
        documents[i] = spare[place[i]]
