"""A stable sort of documents by a key, compiled once and shared by all kernels."""

import numba as nb

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, compiled

__all__ = ["sort_falling"]

RUN = 16
"""Length of the runs that insertion sort makes before merging begins."""


@compiled(nb.void(INTS, FLOATS, INTS))
def sort_falling(documents: Ints, key: Floats, spare: Ints) -> None:
    """Sort `documents` in place by falling key[document], equal keys as they come. `spare` has room for them."""
    count = documents.size
    for start in range(0, count, RUN):
        for i in range(start + 1, min(start + RUN, count)):
            x = documents[i]
            j = i
            while j > start and key[documents[j - 1]] < key[x]:
                documents[j] = documents[j - 1]
                j -= 1
            documents[j] = x
    width = RUN
    while width < count:
        for start in range(0, count - width, 2 * width):
            middle, end = start + width, min(start + 2 * width, count)
            if key[documents[middle - 1]] >= key[documents[middle]]:
                continue
            left, right = 0, middle
            for i in range(start, middle):
                spare[i - start] = documents[i]
            place = start
            while left < width and right < end:
                if key[spare[left]] >= key[documents[right]]:
                    documents[place] = spare[left]
                    left += 1
                else:
                    documents[place] = documents[right]
                    right += 1
                place += 1
            while left < width:
                documents[place] = spare[left]
                left += 1
                place += 1
        width *= 2
