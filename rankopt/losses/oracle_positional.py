"""Feature map of rankings: r(π) = c[π], the decay at the position of each document [ORM, eq. 15].

Measures that are not inner products (AP, RR with several relevant documents, ERR) use the same map [paper 4, φ_dorm].
There the gain of a document depends on the grades above it: the loss-augmented argmax is a longest path in a lattice,
not a rank-two assignment.

References are the mean of the optimal rankings and the highest-scoring ones. Optimal rankings maximise the inner
product of gain and discount.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations import ranking, relevance_ranking, solve_batch
from formulations.arrays import Shorts
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.parallel import share_ranges
from formulations.problems.ranking import RankTwoBatch, laid_out
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.solver import Solver
from formulations.sorting import QUERY_ROWS, sort_falling
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import OptionError
from rankopt.losses.criterion import Criterion
from rankopt.losses.oracle import ArgmaxResult, OrdersArgmax, settled
from rankopt.losses.position_weights import Decay
from rankopt.losses.segment_ops import (
    alike,
    mean_of_alike,
    mean_of_runs,
    query_of_row,
    share_query,
    shared,
    sorted_rows,
    table_size,
)
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.notation import MeasureMix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def mean_of_best(which: str, gain: Floats, position_weights: Floats, offsets: Ints) -> Floats:
    """The mean of c over all orders that are best by gain, "average"; "first": equal gains in the order of the
    input, as in the papers, which makes that order a part of the problem. OptionError for another word."""
    if which not in ("average", "first"):
        raise OptionError(f"reference must be 'average' or 'first'; got {which!r}")
    query = query_of_row(offsets)
    rows = sorted_rows(query, gain)
    weights = np.empty(rows.size)
    weights[rows] = position_weights if which == "first" else mean_of_runs(position_weights, query, gain[rows])
    return weights


def liked_of_best(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints) -> Floats:
    """c of the highest-scoring optimal ranking: sorted by gain, then by score, then within each run of positions of
    equal discount (such as all beyond a cutoff) by score again. Documents of equal gain and score share their mean."""
    weights = np.empty(scores.size)
    arguments = (scores, gain, discount, position_weights, offsets)
    if not best_by_score.pays(200 * scores.size):
        return best_by_score_in_numpy(*arguments)
    share_ranges(offsets, QUERY_ROWS, lambda first, last: best_by_score(*arguments, first, last, weights))
    return weights


def liked(scores: Floats, position_weights: Floats, offsets: Ints) -> Floats:
    """The decay by rank of score, documents of equal score share theirs."""
    weights = np.empty(scores.size)
    arguments = (scores, position_weights, offsets)
    if not by_score.pays(100 * scores.size):
        return by_score_in_numpy(*arguments)
    share_ranges(offsets, QUERY_ROWS, lambda first, last: by_score(*arguments, first, last, weights))
    return weights


@compiled(nb.void(INTS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, FLOATS))
def _shared(order: Ints, scores: Floats, decay: Floats, first: int, last: int, weights: Floats) -> None:
    """Documents order[first:last] get the decay of their positions, those of equal score the mean of theirs."""
    start = first
    while start < last:
        end, total = start, 0.0
        while end < last and scores[order[end]] == scores[order[start]]:
            total += decay[end]
            end += 1
        for i in range(start, end):
            weights[order[i]] = total / (end - start)
        start = end


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS))
def by_score(scores: Floats, decay: Floats, offsets: Ints, first: int, last: int, weights: Floats) -> None:
    """weights = c̄ of the nonconvex bound for the queries first <= q < last: the decay by rank of score."""
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        order = np.arange(high - low)
        key = scores[low:high].copy()
        sort_falling(order, key, np.empty(high - low, np.int64))
        _shared(order, key, decay[low:high], 0, high - low, weights[low:high])


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS))
def best_by_score(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    first: int,
    last: int,
    weights: Floats,
) -> None:
    """weights = c̄ of the tie-aware bound for the queries first <= q < last.

    Sorted by gain, then score; within each run of positions of equal discount by score again. Finally documents of
    equal gain and score, possibly in several runs, share their mean.
    """
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        count = high - low
        order, spare = np.arange(count), np.empty(count, np.int64)
        key, worth, weight = scores[low:high].copy(), gain[low:high].copy(), weights[low:high]
        sort_falling(order, key, spare)
        sort_falling(order, worth, spare)
        by_gain = order.copy()
        start = 0
        while start < count:
            end = start
            while end < count and discount[low + end] == discount[low + start]:
                end += 1
            sort_falling(order[start:end], key, spare)
            _shared(order, key, decay[low:high], start, end, weight)
            start = end
        start = 0
        while start < count:
            end, total, x = start, 0.0, by_gain[start]
            while end < count and key[by_gain[end]] == key[x] and worth[by_gain[end]] == worth[x]:
                total += weight[by_gain[end]]
                end += 1
            for i in range(start, end):
                weight[by_gain[i]] = total / (end - start)
            start = end


def by_score_in_numpy(scores: Floats, position_weights: Floats, offsets: Ints) -> Floats:
    """`top_scoring` of all queries, the same bits."""
    query = query_of_row(offsets)
    rows, weights = sorted_rows(query, scores), np.empty(scores.size)
    weights[rows] = mean_of_alike(position_weights, np.arange(rows.size), query, scores[rows])
    return weights


def best_by_score_in_numpy(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints
) -> Floats:
    """`best_then_score` of all queries, the same bits."""
    query, weights = query_of_row(offsets), np.empty(scores.size)
    by_gain = sorted_rows(query, gain, scores)
    begins = np.append(True, (query[1:] != query[:-1]) | (discount[1:] != discount[:-1]))
    run = np.cumsum(begins)
    rows = by_gain[sorted_rows(run, scores[by_gain])]
    weights[rows] = mean_of_alike(position_weights, np.arange(rows.size), run, scores[rows])
    weights[by_gain] = mean_of_alike(weights[by_gain], np.arange(rows.size), query, gain[by_gain], scores[by_gain])
    return weights


@dataclass(frozen=True, eq=False)
class PatternArgmax(OrdersArgmax):
    """gain(π) = the measure of the pattern of grades. position_weights: c."""

    position_weights: Decay

    @cached_property
    def problem(self) -> Any:
        grades, gains = self.criterion.gain_table()
        return relevance_ranking(
            np.zeros(grades.size), grades, gains, position_weights=self._weights, offsets=self.offsets
        )

    def mean_of_best(self, which: str = "average") -> Floats:
        gain, _ = self.criterion.optimal_rankings
        return mean_of_best(which, gain, self.weights, self.offsets)

    def best_then_score(self, scores: Floats) -> Floats:
        gain, discount = self.criterion.optimal_rankings
        return liked_of_best(scores, gain, discount, self.weights, self.offsets)

    def top_scoring(self, scores: Floats) -> Floats:
        return liked(scores, self.weights, self.offsets)

    @cached_property
    def weights(self) -> Floats:
        """(N,) c of every position of every query."""
        return laid_out(self._weights, self.offsets)

    def _weights(self, n: int) -> Floats:
        return self.position_weights.weights(n, self.criterion.measure)


EXACTLY = 1
"""Queries of a shard whose proof is also checked in rational arithmetic, where dual variables prove bounds."""


def with_distinct_grades(queries: Arrangement, measure: Measure) -> Arrangement:
    """The queries that have something to order."""
    return queries.learnable(orderable(queries.graded, queries.offsets, measure), f"{measure} tells apart")


def orderable(relevance: Floats, offsets: Ints, measure: Measure) -> NDArray[np.bool_]:
    """(m,) which queries have something to order: their best order is worth more than their worst."""
    if isinstance(measure, MeasureMix):
        return np.asarray(np.any([orderable(relevance, offsets, part.measure) for part in measure.parts], axis=0))
    if not (isinstance(measure, PositionalMeasure) and measure.inner_product(relevance, offsets)):
        criterion = Criterion.from_measure(measure, relevance, offsets)
        return np.asarray(criterion.best > criterion.worst)
    gain, discount = measure.gain(relevance, offsets), measure.discounts(offsets)
    query = query_of_row(offsets)
    best, worst = gain[sorted_rows(query, gain)], gain[sorted_rows(query, -gain)]
    return np.asarray(np.add.reduceat(discount * (best - worst), offsets[:-1]) > 0)


@dataclass(frozen=True, eq=False)
class PositionalOracle:
    """gain(π) = a[π]ᵀb. problem: gain b, discount a, decay c and offsets; its scores are unused. known_kind: `kind`, if
    already computed for a superset of the queries."""

    problem: RankTwoBatch
    solver: Solver
    known_kind: Shorts | None = None

    reference: ClassVar[str] = "average"
    references: ClassVar[tuple[str, ...]] = ("average", "first")

    @classmethod
    def takes(cls, measure: Measure) -> bool:
        return measure.has_gain_table

    @classmethod
    def from_queries(
        cls, queries: Arrangement, measure: Measure, position_weights: Decay, solver: Solver
    ) -> PositionalOracle | PatternArgmax:
        """Of a measure and a decay, for these queries; of AP, ERR, and RR with several relevant documents a
        `PatternArgmax`."""
        if not (isinstance(measure, PositionalMeasure) and measure.inner_product(queries.graded, queries.offsets)):
            criterion = Criterion.from_measure(measure, queries.graded, queries.offsets)
            return PatternArgmax(criterion, settled(solver, criterion), position_weights)
        gain = measure.gain(queries.graded, queries.offsets)
        solver = solver.for_batch(queries.offsets) if isinstance(solver, ExactArgmax) else solver
        problem = ranking(
            np.zeros(gain.size),
            gain,
            discount=measure.discount,
            position_weights=lambda n: position_weights.weights(n, measure),
            offsets=queries.offsets,
        )
        return cls(problem, solver)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.problem.scores.shape

    @property
    def offsets(self) -> Ints:
        return self.problem.offsets

    @cached_property
    def best(self) -> Floats:
        rows = sorted_rows(query_of_row(self.offsets), self.problem.gain)
        return np.add.reduceat(self.problem.discount * self.problem.gain[rows], self.offsets[:-1])

    @cached_property
    def kind(self) -> Shorts:
        """(N,) documents of equal gain have equal ones in their query."""
        return alike(self.offsets, self.problem.gain) if self.known_kind is None else self.known_kind

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        answer = solve_batch(self.problem.with_scores(scores), self.solver, directed_rounding=False)
        answer = answer.proved(exactly=EXACTLY) if prove else answer
        problem, slope, earned = answer.problems, np.empty(scores.size), np.empty(len(answer))
        arguments = (
            problem.scores,
            problem.gain,
            problem.discount,
            problem.position_weights,
            self.kind,
            self.offsets,
            answer.order,
        )
        if _placed.pays(200 * scores.size):
            share_ranges(self.offsets, QUERY_ROWS, lambda first, last: _placed(*arguments, first, last, slope, earned))
        else:
            query = query_of_row(self.offsets)
            placed = self.offsets[query] + answer.order
            earned[:] = np.bincount(query, problem.discount * problem.gain[placed], earned.size)
            slope[placed] = problem.position_weights
            slope = shared(slope, problem.scores, self.kind, self.offsets)
        return ArgmaxResult(slope, earned, answer.value, answer.bound, answer.seconds)

    def mean_of_best(self, which: str = "average") -> Floats:
        """The mean over all orders that are best by gain; "first": equal gains in the order of the input, as in the
        papers, which makes that order a part of the problem."""
        return mean_of_best(which, self.problem.gain, self.problem.position_weights, self.offsets)

    def best_then_score(self, scores: Floats) -> Floats:
        """Sorted by gain, then by score, then within each run of positions of equal discount (such as all beyond a
        cutoff) by score again. Documents of equal gain and score share their mean."""
        problem = self.problem
        return liked_of_best(scores, problem.gain, problem.discount, problem.position_weights, self.offsets)

    def top_scoring(self, scores: Floats) -> Floats:
        """The decay by rank of score, documents of equal score share theirs."""
        return liked(scores, self.problem.position_weights, self.offsets)

    def only(self, first: int, last: int) -> PositionalOracle:
        all_, (low, high) = self.problem, self.offsets[[first, last]]
        rows = slice(int(low), int(high))
        offsets = self.offsets[first : last + 1] - low
        problem = RankTwoBatch(
            all_.scores[rows], all_.gain[rows], all_.discount[rows], all_.position_weights[rows], offsets
        )
        return replace(self, problem=problem, known_kind=self.kind[rows])


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_INTS, READ_INTS, nb.int64, nb.int64,
        FLOATS, FLOATS,
    )
)  # fmt: skip
def _placed(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    kind: Shorts,
    offsets: Ints,
    order: Ints,
    first: int,
    last: int,
    slope: Floats,
    earned: Floats,
) -> None:
    """For the queries first <= q < last, with document order[low + i] (index within the query) at position i: slope is
    the decay at the position of each document, shared by documents of equal score and kind; earned = a[π]ᵀb.

    In an optimal ranking the documents of a kind have decreasing scores. If strictly, no two are equal.
    """
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    lowest, buffers, sums = np.empty(longest), np.empty((3, longest), np.int64), np.empty(longest)
    table, bits = np.empty(table_size(longest), np.int64), scores.view(np.int64)
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        lowest[: high - low] = np.inf
        total, falls = 0.0, True
        for i in range(low, high):
            document = low + order[i]
            slope[document] = decay[i]
            total += discount[i] * gain[document]
            s, k = scores[document], kind[document]
            falls &= s < lowest[k]
            if decay[i] != 0.0 or decay[high - 1] < 0.0:
                lowest[k] = s
        earned[q] = total
        if not falls:
            share_query(bits, kind, low, high, buffers, table, sums, slope)
