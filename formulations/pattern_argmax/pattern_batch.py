"""The argmax of many pattern problems: orders by the way that suits each query, then what they are worth.

Every way is compiled when a query first needs it. Small batches are solved by whole arrays, which compile nothing.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.errors import Unsupported
from formulations.forms.earnings import RANK, TABLE
from formulations.forms.feature_map import FIRST, PAIRWISE, POSITIONAL
from formulations.forms.pattern_ranking import PatternBatch
from formulations.forms.pattern_values import OrderValues
from formulations.pattern_argmax.pattern_lattice import search_lattices
from formulations.pattern_argmax.pattern_layout import PatternLayout
from formulations.pattern_argmax.pattern_order import merge_range, sort_range
from formulations.pattern_argmax.pattern_ways import EACH, GRID, LATTICE, ONE_PASS, TAIL, TRIANGLE
from formulations.threads import share_ranges

__all__ = ["argmax_of_patterns", "judge"]

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
    from formulations.pattern_argmax.pattern_judge import judge_range

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
            from formulations.pattern_argmax.pattern_counts import MOST_COUNTS

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
            from formulations.pattern_argmax.one_pass import first_good_range, first_relevant_range

            one_pass = first_good_range if self.kind == 0 else first_relevant_range
            one_pass(*given, weight, offsets, layout.bads, self.taken[ONE_PASS], begin, end, self.above)
        if EACH in self.taken:
            from formulations.pattern_argmax.each_for_itself import each_range

            each, last = self.taken[EACH], (begin, end, self.above)
            each_range(*given, layout.moment, weight, offsets, layout.bads, each, *last)
        if TRIANGLE in self.taken:
            from formulations.pattern_argmax.triangle import triangle_range

            cut, last = self.taken[TRIANGLE], (begin, end, self.above)
            triangle_range(*given, weight, self.kind == 1, offsets, layout.bads, layout.stop, cut, *last)
        if GRID in self.taken:
            from formulations.pattern_argmax.pattern_grid import grid_range

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
        from formulations.pattern_argmax.pattern_counts import counts_range
        from formulations.pattern_argmax.pattern_judge import judge_range

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
