"""Pairs of documents of different kinds that stand in the wrong order, counted for all queries at once."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Shorts
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, SHORTS, compiled
from formulations.stable_sort import sort_pairs

__all__ = ["inversions", "inverted_by_score", "inverted_of_best", "pairs"]

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


@compiled(nb.void(READ_FLOATS, SHORTS, READ_SHORTS, FLOATS, FLOATS, FLOATS, FLOATS))
def _invert_run(
    height: Floats, document: Shorts, kind: Shorts, left: Floats, seen: Floats, tied: Floats, difference: Floats
) -> None:
    """`inversions` of a run of documents by falling height, tied where that is equal. left, seen, tied: a number for
    each kind, 0 before and after."""
    count = document.size
    kinds = left.size
    for i in range(count):
        left[kind[document[i]]] += 1.0
    start = 0
    while start < count:
        end = start
        while end < count and height[end] == height[start]:
            tied[kind[document[end]]] += 1.0
            end += 1
        for i in range(start, end):
            own = kind[document[i]]
            behind = 0.0
            for k in range(own):
                behind -= seen[k] + 0.5 * tied[k]
            for k in range(own + 1, kinds):
                behind += left[k] - 0.5 * tied[k]
            difference[document[i]] = behind
        for i in range(start, end):
            own = kind[document[i]]
            seen[own], left[own], tied[own] = seen[own] + tied[own], left[own] - tied[own], 0.0
        start = end
    for i in range(count):
        left[kind[document[i]]], seen[kind[document[i]]] = 0.0, 0.0


@compiled(nb.void(READ_FLOATS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, FLOATS))
def inverted_by_score(scores: Floats, kind: Shorts, offsets: Ints, first: int, last: int, difference: Floats) -> None:
    """`inversions` of the orders by score, for the queries first <= q < last: (N,) by document."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    height, other, counts = np.empty(longest), np.empty(longest), np.zeros((3, longest))
    document, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
    for q in range(first, last):
        low, high, kinds = offsets[q], offsets[q + 1], 1
        count = high - low
        for i in range(count):
            height[i], document[i] = scores[low + i], i
            kinds = max(kinds, kind[low + i] + 1)
        sort_pairs(height[:count], document[:count], other[:count], spare[:count])
        left, seen, tied = counts[0, :kinds], counts[1, :kinds], counts[2, :kinds]
        _invert_run(height[:count], document[:count], kind[low:high], left, seen, tied, difference[low:high])


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, FLOATS))
def inverted_of_best(
    scores: Floats,
    discount: Floats,
    share: Floats,
    kind: Shorts,
    offsets: Ints,
    first: int,
    last: int,
    slope: Floats,
) -> None:
    """share times `inversions` of the best orders that the scores like most, for the queries first <= q < last: by
    kind, inside kinds by score, and by score again inside each run of places of one discount. Documents alike in kind
    and score have the mean of theirs."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    height, other, counts = np.empty(longest), np.empty(longest), np.zeros((3, longest))
    document, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
    by_kind, begins = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    for q in range(first, last):
        low, high, kinds = offsets[q], offsets[q + 1], 1
        count = high - low
        s, own, a, r = scores[low:high], kind[low:high], discount[low:high], slope[low:high]
        for i in range(count):
            height[i], document[i] = s[i], i
            kinds = max(kinds, own[i] + 1)
        sort_pairs(height[:count], document[:count], other[:count], spare[:count])
        begins[: kinds + 1] = 0
        for i in range(count):  # the highest kind first
            begins[kinds - own[i]] += 1
        for k in range(kinds):
            begins[k + 1] += begins[k]
        for i in range(count):
            x = document[i]
            by_kind[begins[kinds - 1 - own[x]]] = x
            begins[kinds - 1 - own[x]] += 1
        left, seen, tied = counts[0, :kinds], counts[1, :kinds], counts[2, :kinds]
        start = 0
        while start < count:
            end = start
            while end < count and a[end] == a[start]:
                document[end], height[end] = by_kind[end], s[by_kind[end]]
                end += 1
            run = slice(start, end)
            sort_pairs(height[run], document[run], other[run], spare[run])
            _invert_run(height[run], document[run], own, left, seen, tied, r)
            start = end
        for i in range(count):
            r[i] *= share[low + i]
        start = 0
        while start < count:
            end, total, x = start, 0.0, by_kind[start]
            while end < count and own[by_kind[end]] == own[x] and s[by_kind[end]] == s[x]:
                total += r[by_kind[end]]
                end += 1
            for i in range(start, end):
                r[by_kind[i]] = total / (end - start)
            start = end
