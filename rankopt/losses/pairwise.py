"""The pairwise hinge of RankSVM: every pair in the wrong order, or too close, costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from formulations.threads import share_ranges
from rankopt.losses.by_query import QUERY_ROWS, query_of_row, sorted_rows
from rankopt.losses.loss import LossAt

__all__ = ["PairwiseHinge"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairwiseHinge:
    """loss_q(s) = mean over the pairs i, j of query q with y_i > y_j of max(0, 1 - (s_i - s_j)).

    relevance: (N,) grades, of any number of levels. offsets: (m + 1,). Each query must have such a pair. Costs
    O(n log n) a query, not O(n²): violated partners are counted while sweeping the documents by score.
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

    def at(self, scores: Floats, prove: bool = False) -> LossAt:
        """Values and planes at `scores`, (N,); the hinge is evaluated, not bounded, so value and bound are one."""
        from rankopt.losses.pairwise_kernel import count_violations, count_violations_in_numpy

        began = perf_counter()
        given, lengths = (scores, self.level, self.offsets), np.diff(self.offsets)
        if count_violations.pays(20_000 * lengths.size + 5 * int(lengths @ lengths)):
            above, below = np.empty(scores.size, dtype=np.int64), np.empty(scores.size, dtype=np.int64)
            share_ranges(
                self.offsets, QUERY_ROWS, lambda first, last: count_violations(*given, first, last, above, below)
            )
        else:
            above, below = count_violations_in_numpy(*given)
        share = 1.0 / self.pairs
        height = np.add.reduceat(below.astype(np.float64), self.offsets[:-1]) * share
        slope = np.repeat(share, np.diff(self.offsets)) * (above - below)
        value = height + np.add.reduceat(slope * scores, self.offsets[:-1])
        return LossAt(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)

    def majorant(self, scores: Floats) -> PairwiseHinge:
        return self

    def only(self, first: int, last: int) -> PairwiseHinge:
        low, high = self.offsets[first], self.offsets[last]
        return PairwiseHinge(self.relevance[low:high], self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)
