"""The pairwise hinge of RankSVM: the number of pairs in the wrong order or within the margin, weighted by the
violation.

Violations of a margin of one are counted by a sweep with a Fenwick tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import INTS, READ_FLOATS, READ_INTS, compiled, inlined
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, sort_falling
from rankopt.losses.loss import LossValue
from rankopt.losses.segment_ops import query_of_row, sorted_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairwiseHinge:
    """loss_q(s) = mean over the pairs i, j of query q with y_i > y_j of max(0, 1 - (s_i - s_j)).

    relevance: (N,) grades, of any number of levels. offsets: (m + 1,). Each query must have at least one pair. Costs
    O(n log n) a query instead of O(n²): a sweep by score counts the violating partners.
    """

    relevance: Floats
    offsets: Ints
    convex = True

    @cached_property
    def level(self) -> Ints:
        """(N,) the grade of each document as 0, 1, 2, ... within its query."""
        query = query_of_row(self.offsets)
        rows = sorted_rows(query, -self.relevance)
        grade = self.relevance[rows]
        rises = np.append(0, np.cumsum((grade[1:] != grade[:-1]) | (query[1:] != query[:-1])))
        level = np.empty(rows.size, dtype=np.int64)
        level[rows] = rises - rises[self.offsets[:-1]][query]
        return level

    @cached_property
    def pairs(self) -> Floats:
        """(m,) the number of pairs to order."""
        sizes = np.diff(self.offsets)
        query = query_of_row(self.offsets)
        rows = sorted_rows(query, -self.relevance)
        starts = np.flatnonzero((np.diff(self.level[rows], prepend=-1) != 0) | (np.diff(query, prepend=-1) != 0))
        runs = np.diff(np.append(starts, rows.size)).astype(np.float64)
        same = np.bincount(query[starts], runs * (runs - 1) / 2, sizes.size)
        return np.asarray(sizes * (sizes - 1) / 2 - same)

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes at `scores`, (N,); the hinge is evaluated, not bounded, so value and bound are one."""

        began = perf_counter()
        arguments, lengths = (scores, self.level, self.offsets), np.diff(self.offsets)
        if count_violations.pays(20_000 * lengths.size + 5 * int(lengths @ lengths)):
            above, below = np.empty(scores.size, dtype=np.int64), np.empty(scores.size, dtype=np.int64)
            share_ranges(
                self.offsets, QUERY_ROWS, lambda first, last: count_violations(*arguments, first, last, above, below)
            )
        else:
            above, below = count_violations_in_numpy(*arguments)
        share = 1.0 / self.pairs
        height = np.add.reduceat(below.astype(np.float64), self.offsets[:-1]) * share
        slope = np.repeat(share, np.diff(self.offsets)) * (above - below)
        value = height + np.add.reduceat(slope * scores, self.offsets[:-1])
        return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)

    def majorant(self, scores: Floats) -> PairwiseHinge:
        return self

    def only(self, first: int, last: int) -> PairwiseHinge:
        low, high = self.offsets[first], self.offsets[last]
        return PairwiseHinge(self.relevance[low:high], self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)


@inlined
def _insert(tree: Ints, level: int) -> None:
    """Count one more document of this level (from 0)."""
    i = level + 1
    while i < tree.size:
        tree[i] += 1
        i += i & -i


@inlined
def _below(tree: Ints, level: int) -> int:
    """How many counted documents have a lower level."""
    total = 0
    i = level
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@compiled(nb.void(READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, INTS, INTS))
def count_violations(
    scores: Floats, level: Ints, offsets: Ints, first: int, last: int, above: Ints, below: Ints
) -> None:
    """For document j of the queries first <= q < last, above[j] counts the documents i of its query with
    level_i > level_j and s_i - s_j < 1, and below[j] those with level_i < level_j and s_j - s_i < 1."""
    for q in range(first, last):
        low, count = offsets[q], offsets[q + 1] - offsets[q]
        own, grade = scores[low : low + count], level[low : low + count]
        rising = np.arange(count)
        sort_falling(rising, -own, np.empty(count, np.int64))
        levels = 1
        for j in range(count):
            levels = max(levels, grade[j] + 1)
        near, far, total = (
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
            np.zeros(levels + 1, np.int64),
        )
        for j in range(count):
            _insert(total, grade[j])
        reached, passed = 0, 0
        for position in range(count):
            j = rising[position]
            while reached < count and own[rising[reached]] - own[j] < 1.0:
                _insert(near, grade[rising[reached]])
                reached += 1
            while passed < count and own[j] - own[rising[passed]] >= 1.0:
                _insert(far, grade[rising[passed]])
                passed += 1
            above[low + j] = reached - _below(near, grade[j] + 1)
            below[low + j] = _below(total, grade[j]) - _below(far, grade[j])


def count_violations_in_numpy(scores: Floats, level: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """`above` and `below` of `count_violations` for all queries, pair by pair."""
    above, below = np.empty(scores.size, np.int64), np.empty(scores.size, np.int64)
    for low, high in pairwise(offsets.tolist()):
        own, grade = scores[low:high], level[low:high]
        near = (own[:, None] - own < 1.0) & (grade[:, None] > grade)
        above[low:high], below[low:high] = near.sum(axis=0), near.sum(axis=1)
    return above, below
