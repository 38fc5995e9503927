"""The ordinal hinge: a pair that violates its margin costs an amount that depends on its grades [paper 5, Algorithm 2].

The cost of all violated pairs is computed by one sweep over the documents in the order of their scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, sort_falling
from rankopt.errors import OptionError
from rankopt.losses.loss import LossValue
from rankopt.losses.segment_ops import query_of_row, sorted_rows

Cost = str | Callable[[Floats, Floats], Floats]

COSTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "difference": lambda low, high: high - low,
    "one": lambda low, high: np.ones(np.broadcast_shapes(low.shape, high.shape)),
}

LEVELS = 1024
"""Different grades that a table of costs may have."""

PYTHON = 20_000
"""Nanoseconds that a document costs without compiled code, about."""


@dataclass(frozen=True, eq=False)
class OrdinalHinge:
    """loss_q(s) = 1/M Σ C(y_i, y_j) max(0, 1 + s_i - s_j) over the M pairs i, j of query q with y_i < y_j
    [paper 5, eq. 13, majorised]; 0 if M = 0.

    relevance: (N,) grades, of at most 1,024 levels. offsets: (m + 1,). cost: C, "difference" of the grades, "one" (then
    it is `PairwiseHinge`), or a function of two arrays, the lower and the higher grades, to costs >= 0. A query of n
    documents and r grades costs O(n log n + n r). Raises OptionError for invalid costs.
    """

    relevance: Floats
    offsets: Ints
    cost: Cost = "difference"
    convex = True

    @cached_property
    def table(self) -> Floats:
        """(r²,) C of all pairs of different grades, row by row, the lower grade first; 0 elsewhere."""
        cost = COSTS.get(self.cost) if isinstance(self.cost, str) else self.cost
        if cost is None or not callable(cost):
            known = ", ".join(map(repr, COSTS))
            raise OptionError(f"cost = {self.cost!r} is unknown; take {known}, or a function (lower, higher) to costs")
        grades = self.grades
        if grades.size > LEVELS:
            raise OptionError(
                f"loss 'ordinal' stores a cost for each pair of grades, and {grades.size} grades are too many; use "
                "loss 'preferences', whose costs are differences of gains, or fewer grades"
            )
        low, high = (part.ravel() for part in np.meshgrid(grades, grades, indexing="ij"))
        table, rises = np.zeros(low.size), low < high
        table[rises] = cost(low[rises], high[rises])
        if not (np.isfinite(table).all() and (table >= 0).all()):
            at = int(np.flatnonzero(~(np.isfinite(table) & (table >= 0)))[0])
            raise OptionError(f"the cost of grades {low[at]:g} and {high[at]:g} is {table[at]:g}; it must be 0 or more")
        return table

    @cached_property
    def grades(self) -> Floats:
        """(r,) the different grades of all queries, rising."""
        return np.unique(self.relevance)

    @cached_property
    def kinds(self) -> tuple[Shorts, Shorts]:
        """(N,) the grade index of each document within its query, 0, 1, 2, ..., and, from the offset of each query on,
        its distinct grades in increasing order, as indices into `grades`."""
        query, position = query_of_row(self.offsets), np.searchsorted(self.grades, self.relevance)
        rows = sorted_rows(query, -self.relevance)
        rises = np.append(True, (position[rows][1:] != position[rows][:-1]) | (query[1:] != query[:-1]))[: rows.size]
        count = np.cumsum(rises) - 1
        first = count[np.minimum(self.offsets[:-1], rows.size - 1)]
        level = np.empty(rows.size, dtype=np.int32)
        level[rows] = count - first[query]
        listed = np.zeros(rows.size, dtype=np.int32)
        listed[self.offsets[:-1][query] + level] = position
        return level, listed

    @cached_property
    def share(self) -> Floats:
        """(m,) 1/M, 0 for queries without pairs."""
        level, _ = self.kinds
        sizes, query = np.diff(self.offsets), query_of_row(self.offsets)
        of_level = np.bincount(self.offsets[:-1][query] + level, minlength=level.size).astype(np.float64)
        pairs = (sizes.astype(np.float64) ** 2 - np.bincount(query, of_level**2, sizes.size)) / 2
        return np.divide(1.0, pairs, out=np.zeros(pairs.size), where=pairs > 0)

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes at `scores`, (N,); the hinge is evaluated, not bounded, so value and bound are one."""

        began, query = perf_counter(), query_of_row(self.offsets)
        above, below = np.zeros(scores.size), np.zeros(scores.size)
        arguments = (np.ascontiguousarray(scores, dtype=np.float64), *self.kinds, self.table, self.grades.size)
        count = count_costs if count_costs.pays(PYTHON * scores.size) else count_costs.in_python
        share_ranges(
            self.offsets, QUERY_ROWS, lambda first, last: count(*arguments, self.offsets, first, last, above, below)
        )
        height = np.bincount(query, below, self.share.size) * self.share
        slope = self.share[query] * (above - below)
        value = height + np.bincount(query, slope * scores, self.share.size)
        return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)

    def majorant(self, scores: Floats) -> OrdinalHinge:
        return self

    def only(self, first: int, last: int) -> OrdinalHinge:
        low, high = self.offsets[first], self.offsets[last]
        return replace(self, relevance=self.relevance[low:high], offsets=self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)


@compiled(
    nb.void(
        READ_FLOATS, READ_SHORTS, READ_SHORTS, READ_FLOATS, nb.int64, READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS
    )
)  # fmt: skip
def count_costs(
    scores: Floats,
    level: Shorts,
    listed: Shorts,
    table: Floats,
    grades: int,
    offsets: Ints,
    first: int,
    last: int,
    above: Floats,
    below: Floats,
) -> None:
    """For document j of the queries first <= q < last, above[j] sums the costs of its pairs with documents i of
    level_i > level_j and s_i - s_j < 1, and below[j] those with level_i < level_j and s_j - s_i < 1.

    level: of each document in its query. listed: behind the offset of a query, the grade of each of its levels.
    table: grades × grades costs, the lower grade first. How many documents of each level have come near, and how many
    have fallen behind, is counted while the documents pass by rising score [paper 5, Algorithm 2].
    """
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    rising, spare, key = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
    near, left = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for q in range(first, last):
        low, count = offsets[q], offsets[q + 1] - offsets[q]
        levels = 0
        for j in range(count):
            rising[j], key[j] = j, -scores[low + j]
            near[j], left[j] = 0, 0
        for j in range(count):
            left[level[low + j]] += 1
            levels = max(levels, level[low + j] + 1)
        sort_falling(rising[:count], key[:count], spare[:count])
        reached, passed = 0, 0
        for position in range(count):
            j = low + rising[position]
            own, kind = scores[j], level[j]
            while reached < count and scores[low + rising[reached]] - own < 1.0:
                near[level[low + rising[reached]]] += 1
                reached += 1
            while passed < count and own - scores[low + rising[passed]] >= 1.0:
                left[level[low + rising[passed]]] -= 1
                passed += 1
            grade, total = listed[low + kind], 0.0
            for other in range(kind + 1, levels):
                total += table[grade * grades + listed[low + other]] * near[other]
            above[j] = total
            total = 0.0
            for other in range(kind):
                total += table[listed[low + other] * grades + grade] * left[other]
            below[j] = total
