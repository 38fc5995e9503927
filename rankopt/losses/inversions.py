"""Pairs of documents of different kinds that stand in the wrong order, counted for all queries at once."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Shorts
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.stable_sort import sort_pairs

__all__ = ["inversions", "inverted_by_score", "pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def inversions(kind: Shorts, runs: NDArray[np.bool_], ties: NDArray[np.bool_]) -> Floats:
    """How many documents of higher kind stand behind each one, less those of lower kind that stand before it: (N,).

    kind: (N,) of the documents in the order in which they stand. runs: (N,) where a run begins; pairs count inside runs
    alone. ties: (N,) where documents begin that are not tied with the one before; a run begins none less. Pairs of
    tied documents count half.
    """
    n = kind.size
    run, tie = _bounds(runs), _bounds(ties | runs)
    difference = np.zeros(n)
    for own in np.unique(kind):
        rows = np.flatnonzero(kind == own)
        lower = np.concatenate([[0], np.cumsum(kind < own)])
        higher = np.concatenate([[0], np.cumsum(kind > own)])
        (begin, end), (first, last) = (ends[:, rows] for ends in (run, tie))
        before = (lower[first] + lower[last]) / 2 - lower[begin]
        behind = higher[end] - (higher[first] + higher[last]) / 2
        difference[rows] = behind - before
    return difference


def _bounds(begins: NDArray[np.bool_]) -> Ints:
    """(2, N) where the stretch that each place belongs to begins and ends."""
    first = np.flatnonzero(np.append(True, begins[1:]))
    last = np.append(first[1:], begins.size)
    return np.repeat(np.array([first, last]), last - first, axis=1)


def pairs(kind: Shorts, offsets: Ints) -> Floats:
    """(m,) the pairs of documents of different kinds; kinds count from 0 in every query."""
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(sizes.size), sizes)
    starts = offsets[:-1][query]  # a query has no more kinds than documents
    counts = np.bincount(starts + kind, minlength=int(offsets[-1])).astype(np.float64)
    same = np.add.reduceat(counts * counts, offsets[:-1])
    return np.asarray((sizes.astype(np.float64) ** 2 - same) / 2)


@compiled(nb.void(READ_FLOATS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, FLOATS))
def inverted_by_score(scores: Floats, kind: Shorts, offsets: Ints, first: int, last: int, difference: Floats) -> None:
    """`inversions` of the orders by score, for the queries first <= q < last: (N,) by document."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    height, other = np.empty(longest), np.empty(longest)
    document, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
    for q in range(first, last):
        low, count, kinds = offsets[q], offsets[q + 1] - offsets[q], 1
        for i in range(count):
            height[i], document[i] = scores[low + i], i
            kinds = max(kinds, kind[low + i] + 1)
        sort_pairs(height[:count], document[:count], other[:count], spare[:count])
        left, seen, tied = np.zeros(kinds), np.zeros(kinds), np.zeros(kinds)
        for i in range(count):
            left[kind[low + i]] += 1.0
        start = 0
        while start < count:
            end = start
            while end < count and height[end] == height[start]:
                tied[kind[low + document[end]]] += 1.0
                end += 1
            for i in range(start, end):
                own = kind[low + document[i]]
                behind = 0.0
                for k in range(own):
                    behind -= seen[k] + 0.5 * tied[k]
                for k in range(own + 1, kinds):
                    behind += left[k] - 0.5 * tied[k]
                difference[low + document[i]] = behind
            for i in range(start, end):
                own = kind[low + document[i]]
                seen[own], left[own], tied[own] = seen[own] + tied[own], left[own] - tied[own], 0.0
            start = end
