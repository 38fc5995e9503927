"""The argmax of many pattern problems: orders by the way that suits each query, then what they are worth.

Every way is compiled when a query first needs it. Small batches are solved by whole arrays, which compile nothing.

What orders of pattern problems are worth, compiled: the same as `forms.pattern_values`, in one pass each.

What no order of a pattern problem exceeds where its lattice is too large to be written out: the argmax itself.

Its way is exact by proof (`pattern_layout`), so its value and what double precision may have hidden from it are a
bound, whoever found the order that is judged. It is worked out from the problem's data alone.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.argmax.relevance_layout import EACH, GRID, LATTICE, ONE_PASS, TAIL, TRIANGLE, PatternLayout, layout_of
from formulations.argmax.relevance_numpy import search_lattices
from formulations.argmax.relevance_two_grades import merge_range, sort_range
from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.errors import Unsupported
from formulations.parallel import share_ranges
from formulations.problems.lattice_path import MOST_STATES
from formulations.problems.relevance_ranking import PatternBatch, PatternRanking
from formulations.problems.relevance_values import FIRST, PAIRWISE, POSITIONAL, RANK, TABLE, OrderValues

RANGE_ROWS = 1 << 13
"""Rows of the queries that a thread takes at a time."""

MOST_CELLS = 1 << 30
"""Most cells of a grid that is searched, a byte each."""

KINDS = (PAIRWISE, POSITIONAL, FIRST)


def argmax_of_patterns(batch: PatternBatch, layout: PatternLayout, ways: Bytes) -> tuple[Ints, OrderValues]:
    """(N,) the document, counted within its query, at each position, and what that is worth; each query by its way of
    `ways` (m,)."""
    work = _Work(batch, layout, ways)
    if batch.earnings.kind == TABLE:
        share_ranges(batch.offsets, RANGE_ROWS, work.sort_and_search)
        search_lattices(batch, np.flatnonzero(work.open), work.order)
        return work.order, batch.judged(work.order)
    work.check()
    share_ranges(batch.offsets, RANGE_ROWS, work.all)
    return work.order, OrderValues(work.slope, work.earned, work.value, batch.left)


def judge(batch: PatternBatch, order: Ints) -> OrderValues:
    """As `PatternBatch.judged`, in one pass by compiled code, but for tables."""
    if batch.earnings.kind == TABLE:
        return batch.judged(order)

    slope, earned, value = np.empty(order.size), np.empty(len(batch)), np.empty(len(batch))
    taken, kind, earnings = np.ones(len(batch), np.int8), KINDS.index(batch.map.kind), batch.earnings
    given = (batch.scores, batch.grade, batch.level, batch.map.weight, kind, earnings.discount, earnings.share)
    rest = (earnings.passing, earnings.constant, earnings.kind == RANK, batch.offsets, taken, order)
    told = (slope, earned, value)
    share_ranges(batch.offsets, RANGE_ROWS, lambda begin, end: judge_range(*given, *rest, begin, end, *told))
    return OrderValues(slope, earned, value, batch.left)


class _Work:
    """Arrays that the ways fill, a range of queries at a time: what a range needs stays near the processor."""

    def __init__(self, batch: PatternBatch, layout: PatternLayout, ways: Bytes) -> None:
        rows, queries = batch.scores.size, len(batch)
        self.batch, self.layout, self.kind = batch, layout, KINDS.index(batch.map.kind)
        self.height, self.document = np.empty(rows), np.empty(rows, np.int32)
        self.above, self.order, self.slope = np.zeros(rows, np.int64), np.empty(rows, np.int64), np.empty(rows)
        self.earned, self.value = np.empty(queries), np.empty(queries)
        self.rising = (layout.chain_grade > 0) & (batch.map.kind == FIRST)
        self.open = ((ways == LATTICE) | (ways == TAIL)).astype(np.int8)
        self.merged = 1 - self.open
        self.taken = {way: (ways == way).astype(np.int8) for way in np.unique(ways).tolist()}
        self.stop = np.where(ways == TAIL, layout.stop, batch.sizes)
        if GRID in self.taken:
            cells = (layout.bads + 1.0) * (batch.sizes - layout.bads + 1.0)
            _affordable(batch, cells, self.taken[GRID], MOST_CELLS)

    def check(self) -> None:
        """Raises `Unsupported` for a lattice of counts with too many states."""
        if self.open.any():
            from formulations.argmax.relevance_many_grades import MOST_COUNTS

            _affordable(self.batch, self.layout.states(self.stop), self.open, MOST_COUNTS)

    def all(self, begin: int, end: int) -> None:
        self.sort_and_search(begin, end)
        self.settle(begin, end)

    def sort_and_search(self, begin: int, end: int) -> None:
        """The chains by score, and how many bads stand above each good; orders of queries with tables."""
        batch, layout, offsets = self.batch, self.layout, self.batch.offsets
        chains = (layout.members, layout.chain_start, layout.first_chain, self.rising)
        sort_range(batch.scores, offsets, *chains, begin, end, self.height, self.document)
        given, weight = (self.height, layout.share, batch.earnings.discount), batch.map.weight
        if ONE_PASS in self.taken:
            from formulations.argmax.relevance_two_grades import first_good_range, first_relevant_range

            one_pass = first_good_range if self.kind == 0 else first_relevant_range
            one_pass(*given, weight, offsets, layout.bads, self.taken[ONE_PASS], begin, end, self.above)
        if EACH in self.taken:
            from formulations.argmax.relevance_two_grades import each_range

            each, last = self.taken[EACH], (begin, end, self.above)
            each_range(*given, layout.moment, weight, offsets, layout.bads, each, *last)
        if TRIANGLE in self.taken:
            from formulations.argmax.relevance_two_grades import triangle_range

            cut, last = self.taken[TRIANGLE], (begin, end, self.above)
            triangle_range(*given, weight, self.kind == 1, offsets, layout.bads, layout.stop, cut, *last)
        if GRID in self.taken:
            from formulations.argmax.relevance_two_grades import grid_range

            whole, last = self.taken[GRID], (begin, end, self.above)
            table, starts = batch.earnings.table, batch.earnings.starts
            grid_range(*given, table, weight, starts, self.kind, offsets, layout.bads, whole, *last)
        if batch.earnings.kind == TABLE:
            self.settle(begin, end)

    def settle(self, begin: int, end: int) -> None:
        """Orders and what they are worth."""
        batch, layout, earnings, offsets = self.batch, self.layout, self.batch.earnings, self.batch.offsets
        told = (begin, end, self.order, self.slope, self.earned, self.value)
        merge_range(
            self.height, self.document, offsets, layout.bads, self.merged, self.above, batch.map.weight, self.kind,
            earnings.discount, layout.share, layout.constant, *told,
        )  # fmt: skip
        if earnings.kind == TABLE or not self.open[begin:end].any():
            return
        from formulations.argmax.relevance_many_grades import counts_range

        counts_range(
            self.height, self.document, earnings.discount, batch.map.weight, self.kind, layout.chain_start,
            layout.first_chain, layout.chain_grade, layout.chain_share, layout.chain_passing, offsets, self.stop,
            self.open, begin, end, self.order,
        )  # fmt: skip
        judge_range(
            batch.scores, batch.grade, batch.level, batch.map.weight, self.kind, earnings.discount, earnings.share,
            earnings.passing, earnings.constant, earnings.kind == RANK, offsets, self.open, *told[2:3], begin, end,
            *told[3:],
        )  # fmt: skip


def _affordable(batch: PatternBatch, states: Floats, taken: Bytes, most: int) -> None:
    wrong = np.flatnonzero((taken != 0) & (states > most))
    if wrong.size:
        query = int(wrong[0])
        raise Unsupported(
            f"query {query} of {batch.sizes[query]} documents has a lattice of {states[query]:.3g} states, and up to "
            f"{most} are searched; cut the loss at some position, merge grades, or take a loss of relevant and others"
        )


_PAIRWISE, _POSITIONAL = range(2)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, nb.int64, READ_FLOATS, READ_FLOATS, READ_FLOATS,
        READ_FLOATS, nb.boolean, READ_INTS, BYTES, INTS, nb.int64, nb.int64, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
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
    slope: Floats,
    earned: Floats,
    value: Floats,
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
        for place in range(low, high):
            x = low + order[place]
            good = grade[x] > 0.0
            if kind == _POSITIONAL:
                r = weight[place]
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
                    gained += share[low + rank] * discount[place]
                    rank += 1
            else:
                gained += share[x] * stay * discount[place]
                stay *= passing[x]
        earned[q] = gained - constant[q]
        value[q] = scored - earned[q]


def searched_bound(problem: PatternRanking) -> float:
    """The value of the best order, rounded up; infinite where potentials prove more, being written out, and where the
    argmax has too many states itself."""
    if problem.chains.states <= MOST_STATES:
        return float("inf")
    batch = problem.alone()
    layout = layout_of(batch)
    try:
        _, told = argmax_of_patterns(batch, layout, layout.way)
    except Unsupported:
        return float("inf")
    left = np.maximum(layout.hidden(batch, layout.way), 2.0 * batch.left)
    return float(np.nextafter(told.value[0] + left[0], np.inf))
