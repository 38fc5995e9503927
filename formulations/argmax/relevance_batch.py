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
from formulations.argmax.relevance_many_grades import MOST_COUNTS, counts_range
from formulations.argmax.relevance_numpy import search_lattices
from formulations.argmax.relevance_two_grades import (
    each_range,
    first_good_range,
    first_relevant_range,
    grid_range,
    merge_range,
    sort_range,
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
    `ways` (m,). Raises `UnsupportedProblemError` for a lattice with too many states."""
    rows, queries, has_table = batch.scores.size, len(batch), batch.earnings.kind == TABLE
    height, document, above = np.empty(rows), np.empty(rows, np.int32), np.zeros(rows, np.int64)
    order, slope, earned, value = np.empty(rows, np.int64), np.empty(rows), np.empty(queries), np.empty(queries)
    graded = ((ways == LATTICE) | (ways == TAIL)).astype(np.int8)
    merged, stop = 1 - graded, np.where(ways == TAIL, layout.stop, batch.sizes)
    known, used = _searches(batch), np.unique(ways).tolist()
    searches = [(known[way], np.where(ways == way, ways, 0)) for way in used if way in known]
    if GRID in used:
        cells = (layout.irrelevant + 1.0) * (batch.sizes - layout.irrelevant + 1.0)
        _affordable(batch, cells, ways == GRID, MOST_CELLS)
    if graded.any() and not has_table:
        _affordable(batch, layout.states(stop), graded > 0, MOST_COUNTS)

    def solve(begin: int, end: int) -> None:
        """All steps for one range of queries, for cache locality."""
        sort_range(batch.scores, layout, begin, end, height, document)
        for search, taken in searches:
            search(height, layout, taken, begin, end, above)
        merge_range(height, document, layout, merged, above, begin, end, order, slope, earned, value)
        if graded[begin:end].any() and not has_table:
            counts_range(height, document, layout, stop, graded, begin, end, order)
            _judge(batch, graded, order, begin, end, slope, earned, value)

    share_ranges(batch.offsets, RANGE_ROWS, solve)
    if has_table:
        search_lattices(batch, np.flatnonzero(graded), order)
        return order, batch.judged(order)
    return order, OrderValues(slope, earned, value, batch.left)


def _searches(batch: RelevanceBatch) -> dict[int, Kernel[Any, None]]:
    """The kernel of each method that finds the number of irrelevant documents above each relevant one."""
    one_pass = first_good_range if batch.map.kind == PAIRWISE else first_relevant_range
    return {ONE_PASS: one_pass, EACH: each_range, TRIANGLE: grid_range, GRID: grid_range}


def kernels_for(batch: RelevanceBatch, ways: Bytes) -> list[Kernel[Any, None]]:
    """The kernels that solve a batch by these methods (m,)."""
    searches = _searches(batch)
    found: list[Kernel[Any, None]] = [sort_range, merge_range]
    found += [searches[way] for way in np.unique(ways).tolist() if way in searches]
    if batch.earnings.kind != TABLE and ((ways == LATTICE) | (ways == TAIL)).any():
        found += [counts_range, judge_range]
    return found


def judge(batch: RelevanceBatch, order: Ints) -> OrderValues:
    """As `RelevanceBatch.judged`, compiled and in one pass, except for tables."""
    if batch.earnings.kind == TABLE:
        return batch.judged(order)
    taken, slope = np.ones(len(batch), np.int8), np.empty(order.size)
    earned, value = np.empty(len(batch)), np.empty(len(batch))
    share_ranges(
        batch.offsets, RANGE_ROWS, lambda begin, end: _judge(batch, taken, order, begin, end, slope, earned, value)
    )
    return OrderValues(slope, earned, value, batch.left)


def _judge(batch: RelevanceBatch, taken: Bytes, order: Ints, begin: int, end: int, *found: Floats) -> None:
    """Fill slope, earned and value of the queries that are taken."""
    kind, earnings = KINDS.index(batch.map.kind), batch.earnings
    judge_range(
        batch.scores, batch.grade, batch.level, batch.map.weight, kind, earnings.discount, earnings.share,
        earnings.passing, earnings.constant, earnings.kind == RANK, batch.offsets, taken, order, begin, end, *found,
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
    """The value of the best order, rounded up; infinite if the lattice is explicit, which proves more, or too large."""
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
