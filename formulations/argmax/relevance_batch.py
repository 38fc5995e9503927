"""The argmax of a batch of relevance rankings: orders by a suitable method per query, and their values.

Every method is compiled when a query first needs it. Small batches are solved in NumPy, without compiling. Values are
those of `relevance_values`, computed in one pass per query. The value of the exact argmax plus its rounding error is
the bound for problems whose lattice is too large to be explicit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.argmax.relevance_layout import (
    EACH,
    GRID,
    KINDS,
    LATTICE,
    ONE_PASS,
    TAIL,
    TRIANGLE,
    RelevanceLayout,
    layout_of,
)
from formulations.argmax.relevance_numpy import search_lattices
from formulations.argmax.relevance_two_grades import (
    each_range,
    first_good_range,
    first_relevant_range,
    grid_range,
    merge_range,
    sort_range,
    triangle_range,
)
from formulations.arrays import Bools, Bytes, Floats, Ints, Out
from formulations.compiled import Kernel, compiled
from formulations.errors import UnsupportedProblemError
from formulations.parallel import share_ranges
from formulations.problems.lattice_path import MOST_STATES
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.problems.relevance_values import PAIRWISE, RANK, TABLE, OrderValues

RANGE_ROWS = 1 << 13  # rows of the queries that a thread takes at a time
MOST_CELLS = 1 << 30  # most cells of a grid that is searched, a byte each


def argmax_of_patterns(batch: RelevanceBatch, layout: RelevanceLayout, ways: Bytes) -> tuple[Ints, OrderValues]:
    """(N,) the document, counted within its query, at each position, and the values; each query by its method of
    `ways` (m,)."""
    work = _Work(batch, layout, ways)
    if batch.earnings.kind == TABLE:
        share_ranges(batch.offsets, RANGE_ROWS, work.sort_and_search)
        search_lattices(batch, np.flatnonzero(work.open), work.order)
        return work.order, batch.judged(work.order)
    work.check()
    share_ranges(batch.offsets, RANGE_ROWS, work.all)
    return work.order, OrderValues(work.slope, work.earned, work.value, batch.left)


def _searches(batch: RelevanceBatch) -> dict[int, Kernel[Any, None]]:
    """The kernel of each method that finds the number of irrelevant documents above each relevant one."""
    one_pass = first_good_range if batch.map.kind == PAIRWISE else first_relevant_range
    return {ONE_PASS: one_pass, EACH: each_range, TRIANGLE: triangle_range, GRID: grid_range}


def kernels_for(batch: RelevanceBatch, ways: Bytes) -> list[Kernel[Any, None]]:
    """The kernels that solve a batch by these methods (m,)."""
    searches = _searches(batch)
    found: list[Kernel[Any, None]] = [sort_range, merge_range]
    found += [searches[way] for way in np.unique(ways).tolist() if way in searches]
    if batch.earnings.kind != TABLE and ((ways == LATTICE) | (ways == TAIL)).any():
        from formulations.argmax.relevance_many_grades import counts_range

        found += [counts_range, judge_range]
    return found


def judge(batch: RelevanceBatch, order: Ints) -> OrderValues:
    """As `RelevanceBatch.judged`, compiled and in one pass, except for tables."""
    if batch.earnings.kind == TABLE:
        return batch.judged(order)

    slope, earned, value = np.empty(order.size), np.empty(len(batch)), np.empty(len(batch))
    taken, kind, earnings = np.ones(len(batch), np.int8), KINDS.index(batch.map.kind), batch.earnings
    inputs = (batch.scores, batch.grade, batch.level, batch.map.weight, kind, earnings.discount, earnings.share)
    rest = (earnings.passing, earnings.constant, earnings.kind == RANK, batch.offsets, taken, order)
    outputs = (slope, earned, value)
    share_ranges(batch.offsets, RANGE_ROWS, lambda begin, end: judge_range(*inputs, *rest, begin, end, *outputs))
    return OrderValues(slope, earned, value, batch.left)


class _Work:
    """Arrays that the methods fill, one range of queries at a time, for cache locality."""

    def __init__(self, batch: RelevanceBatch, layout: RelevanceLayout, ways: Bytes) -> None:
        rows, queries = batch.scores.size, len(batch)
        self.batch, self.layout = batch, layout
        self.height, self.document = np.empty(rows), np.empty(rows, np.int32)
        self.above, self.order, self.slope = np.zeros(rows, np.int64), np.empty(rows, np.int64), np.empty(rows)
        self.earned, self.value = np.empty(queries), np.empty(queries)
        self.open = ((ways == LATTICE) | (ways == TAIL)).astype(np.int8)
        self.merged = 1 - self.open
        self.stop = np.where(ways == TAIL, layout.stop, batch.sizes)
        searches, used = _searches(batch), np.unique(ways).tolist()
        self.searches = [(searches[way], (ways == way).astype(np.int8)) for way in used if way in searches]
        if GRID in used:
            cells = (layout.irrelevant + 1.0) * (batch.sizes - layout.irrelevant + 1.0)
            _affordable(batch, cells, ways == GRID, MOST_CELLS)

    def check(self) -> None:
        """Raises `UnsupportedProblemError` for a lattice of counts with too many states."""
        if self.open.any():
            from formulations.argmax.relevance_many_grades import MOST_COUNTS

            _affordable(self.batch, self.layout.states(self.stop), self.open > 0, MOST_COUNTS)

    def all(self, begin: int, end: int) -> None:
        self.sort_and_search(begin, end)
        self.settle(begin, end)

    def sort_and_search(self, begin: int, end: int) -> None:
        """The chains by score, and the number of irrelevant documents above each relevant one; orders of queries with
        tables."""
        sort_range(self.batch.scores, self.layout, begin, end, self.height, self.document)
        for search, taken in self.searches:
            search(self.height, self.layout, taken, begin, end, self.above)
        if self.batch.earnings.kind == TABLE:
            self.settle(begin, end)

    def settle(self, begin: int, end: int) -> None:
        """Orders and their values."""
        batch, layout, earnings = self.batch, self.layout, self.batch.earnings
        outputs = (begin, end, self.order, self.slope, self.earned, self.value)
        merge_range(self.height, self.document, layout, self.merged, self.above, *outputs)
        if earnings.kind == TABLE or not self.open[begin:end].any():
            return
        from formulations.argmax.relevance_many_grades import counts_range

        counts_range(self.height, self.document, layout, self.stop, self.open, begin, end, self.order)
        judge_range(
            batch.scores, batch.grade, batch.level, batch.map.weight, layout.kind, earnings.discount, earnings.share,
            earnings.passing, earnings.constant, earnings.kind == RANK, layout.offsets, self.open, self.order,
            begin, end, *outputs[3:],
        )  # fmt: skip


def _affordable(batch: RelevanceBatch, states: Floats, taken: Bools, most: int) -> None:
    wrong = np.flatnonzero(taken & (states > most))
    if wrong.size:
        query = int(wrong[0])
        raise UnsupportedProblemError(
            f"the lattice of query {query} ({batch.sizes[query]} documents) has {states[query]:.3g} states; "
            f"the limit is {most}. Use a loss with a cutoff, merge grades, or use a loss of binary relevance."
        )


_PAIRWISE, _POSITIONAL = range(2)


@compiled()
def judge_range(
    scores: Floats,
    grade: Floats,
    level: Ints,
    weight: Floats,
    kind: int,
    discount: Floats,
    share: Floats,
    passing: Floats,
    constant: Floats,
    by_rank: bool,
    offsets: Ints,
    taken: Bytes,
    order: Ints,
    begin: int,
    end: int,
    slope: Out[Floats],
    earned: Out[Floats],
    value: Out[Floats],
) -> None:
    """slope (N,), earned and value (m,) of the queries that are taken; level: the rank of each document's grade."""
    levels = 1
    for q in range(begin, end):
        if not taken[q]:
            continue
        for row in range(offsets[q], offsets[q + 1]):
            levels = max(levels, level[row] + 1)
    held, seen = np.empty(levels, np.int64), np.empty(levels, np.int64)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high = offsets[q], offsets[q + 1]
        above, rank, stay, first = 0, 0, 1.0, True
        gained, scored = 0.0, 0.0
        pairs = kind == _PAIRWISE
        if pairs:
            held[:] = 0
            seen[:] = 0
            for row in range(low, high):
                held[level[row]] += 1
        for position in range(low, high):
            x = low + order[position]
            good = grade[x] > 0.0
            if kind == _POSITIONAL:
                r = weight[position]
            elif pairs:
                count, own = 0, level[x]
                for other in range(own):
                    count -= seen[other]
                for other in range(own + 1, levels):
                    count += held[other] - seen[other]
                seen[own] += 1
                r = weight[q] * count
            elif not first:
                r = 0.0
            elif good:
                r, first = -weight[q] * above, False
            else:
                r = weight[q]
                above += 1
            slope[x] = r
            scored += r * scores[x]
            if by_rank:
                if good:
                    gained += share[low + rank] * discount[position]
                    rank += 1
            else:
                gained += share[x] * stay * discount[position]
                stay *= passing[x]
        earned[q] = gained - constant[q]
        value[q] = scored - earned[q]


def searched_bound(problem: RelevanceRanking) -> float:
    """The value of the best order, rounded up; infinite if the lattice is explicit, whose potentials prove more, or if
    the argmax has too many states."""
    if problem.chains.states <= MOST_STATES:
        return float("inf")
    batch = problem.alone()
    layout = layout_of(batch)
    try:
        _, outputs = argmax_of_patterns(batch, layout, layout.algorithm)
    except UnsupportedProblemError:
        return float("inf")
    left = np.maximum(layout.hidden(batch, layout.algorithm), 2.0 * batch.left)
    return float(np.nextafter(outputs.value[0] + left[0], np.inf))
