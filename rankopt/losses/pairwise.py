"""Hinge losses of pairs of different grades, computed by one sweep over the documents in the order of their scores.

`PairwiseHinge` is that of RankSVM; a Fenwick tree counts its violations. In `OrdinalHinge` a pair costs an amount that
depends on its grades [paper 5, Algorithm 2].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import numpy as np

from formulations.arrays import Floats, Ints, Out, Shorts
from formulations.compiled import compiled, inlined, longest_query
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, alike, count_pairs, sort_falling
from rankopt.errors import OptionError
from rankopt.losses.loss import ConvexLoss, LossValue
from rankopt.measures.tied_ranking import query_of_row


@dataclass(frozen=True, eq=False)
class PairwiseHinge(ConvexLoss):
    """loss_q(s) = mean over the pairs i, j of query q with y_i > y_j of max(0, 1 - (s_i - s_j)).

    relevance: (N,) grades, of any number of levels. offsets: (m + 1,). Each query must have at least one pair. Costs
    O(n log n) a query instead of O(n²): a sweep by score counts the violating partners.
    """

    @cached_property
    def level(self) -> Ints:
        """(N,) the grade of each document as 0, 1, 2, ... within its query."""
        return alike(self.offsets, self.relevance).astype(np.int64)

    @cached_property
    def pairs(self) -> Floats:
        """(m,) the number of pairs to order."""
        return count_pairs(alike(self.offsets, self.relevance), self.offsets)

    @property
    def unit(self) -> Floats:
        """(m,) the λ that is natural to it, in units of `natural_lam`: that of the positional map."""
        return np.ones(self.offsets.size - 1)

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


@compiled()
def count_violations(
    scores: Floats, level: Ints, offsets: Ints, first: int, last: int, above: Out[Ints], below: Out[Ints]
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


Cost = str | Callable[[Floats, Floats], Floats]

COSTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "difference": lambda low, high: high - low,
    "one": lambda low, high: np.ones(np.broadcast_shapes(low.shape, high.shape)),
}

LEVELS = 1024  # different grades that a table of costs may have
PYTHON = 20_000  # nanoseconds that a document costs without compiled code, about


@dataclass(frozen=True, eq=False)
class OrdinalHinge(ConvexLoss):
    """loss_q(s) = 1/M Σ C(y_i, y_j) max(0, 1 + s_i - s_j) over the M pairs i, j of query q with y_i < y_j
    [paper 5, eq. 13, majorized]; 0 if M = 0.

    relevance: (N,) grades, of at most 1,024 levels. offsets: (m + 1,). cost: C, "difference" of the grades, "one" (then
    it is `PairwiseHinge`), or a function of two arrays, the lower and the higher grades, to costs >= 0. A query of n
    documents and r grades costs O(n log n + n r). Raises OptionError for invalid costs.
    """

    cost: Cost = "difference"

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
        position, level = np.searchsorted(self.grades, self.relevance), alike(self.offsets, self.relevance)
        listed = np.zeros(level.size, dtype=np.int32)
        listed[np.repeat(self.offsets[:-1], np.diff(self.offsets)) + level] = position
        return level, listed

    @cached_property
    def share(self) -> Floats:
        """(m,) 1/M, 0 for queries without pairs."""
        pairs = count_pairs(self.kinds[0], self.offsets)
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


@compiled()
def count_costs(
    scores: Floats, level: Shorts, listed: Shorts, table: Floats, grades: int, offsets: Ints, first: int, last: int,
    above: Out[Floats], below: Out[Floats],
) -> None:  # fmt: skip
    """For document j of the queries first <= q < last, above[j] sums the costs of its pairs with documents i of
    level_i > level_j and s_i - s_j < 1, and below[j] those with level_i < level_j and s_j - s_i < 1.

    level: of each document in its query. listed: behind the offset of a query, the grade of each of its levels.
    table: grades × grades costs, the lower grade first. How many documents of each level have come near, and how many
    have fallen behind, is counted while the documents pass by rising score [paper 5, Algorithm 2].
    """
    most = longest_query(offsets, first, last)
    rising, spare, key = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    near, left = np.empty(most, np.int64), np.empty(most, np.int64)
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
