"""Feature map of rankings: r(π) = c[π], the weight of the position of each document [ORM, eq. 15].

Measures that are not inner products (AP, RR with several relevant documents, ERR) use the same map [paper 4, φ_dorm].
There the gain of a document depends on the grades above it: the argmax is a longest path in a lattice.

References are the mean of the optimal rankings and the highest-scoring ones. Optimal rankings maximize the inner
product of gain and discount.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from formulations import ranking, relevance_ranking, solve_batch
from formulations.arrays import Bools, Floats, Ints, Out, Shorts, check_type
from formulations.compiled import compiled, longest_query
from formulations.parallel import share_ranges
from formulations.problems.ranking import RankTwoBatch, laid_out
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.solver import Solver
from formulations.sorting import QUERY_ROWS, alike
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import DataError, OptionError
from rankopt.losses.oracle import EXACTLY, ArgmaxResult, Criterion, OrdersArgmax, fix_solver
from rankopt.losses.position_weights import PositionWeights
from rankopt.losses.segment_ops import mean_of_alike, mean_of_runs, share_query, shared, sorted_rows, table_size
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.notation import MeasureMix
from rankopt.measures.tied_ranking import query_of_row


class PositionalReferences:
    """References of maps with r(π) = c[π]. Documents of equal gain and score share the mean of their c."""

    @property
    def factors(self) -> tuple[Floats, Floats, Floats]:
        """Gain b by document, discount a and position weights c, (N,) each; optimal rankings maximize a[π]ᵀb."""
        raise NotImplementedError(f"{type(self).__name__} has no `factors`; write it.")

    @property
    def offsets(self) -> Ints:
        raise NotImplementedError(f"{type(self).__name__} has no `offsets`; write it.")

    def mean_of_best(self, which: str = "average") -> Floats:
        """The mean over all optimal rankings; "first": equal gains in input order, as in the papers, which makes that
        order a part of the problem."""
        if which not in ("average", "first"):
            raise OptionError(f"target_ranking must be 'average' or 'first'; got {which!r}")
        (gain, _, position_weights), query = self.factors, query_of_row(self.offsets)
        rows = sorted_rows(query, gain)
        weights = np.empty(rows.size)
        weights[rows] = position_weights if which == "first" else mean_of_runs(position_weights, query, gain[rows])
        return weights

    def best_then_score(self, scores: Floats) -> Floats:
        """Sorted by gain, then by score, then in each run of positions of equal discount by score again."""
        gain, discount, position_weights = self.factors
        query, weights = query_of_row(self.offsets), np.empty(scores.size)
        by_gain = sorted_rows(query, gain, scores)
        run = np.cumsum(np.append(True, (query[1:] != query[:-1]) | (discount[1:] != discount[:-1])))
        rows = by_gain[sorted_rows(run, scores[by_gain])]
        weights[rows] = mean_of_alike(position_weights, np.arange(rows.size), run, scores[rows])
        weights[by_gain] = mean_of_alike(weights[by_gain], np.arange(rows.size), query, gain[by_gain], scores[by_gain])
        return weights

    def top_scoring(self, scores: Floats) -> Floats:
        query, weights = query_of_row(self.offsets), np.empty(scores.size)
        rows = sorted_rows(query, scores)
        weights[rows] = mean_of_alike(self.factors[2], np.arange(rows.size), query, scores[rows])
        return weights


@dataclass(frozen=True, eq=False)
class PatternArgmax(OrdersArgmax, PositionalReferences):
    """gain(π) = a function of the relevance vector. position_weights: c."""

    position_weights: PositionWeights

    @classmethod
    def from_queries(
        cls, queries: Arrangement, measure: Measure, position_weights: PositionWeights, solver: Solver
    ) -> Self:
        criterion = Criterion.from_measure(measure, queries.graded, queries.offsets)
        return cls(criterion, fix_solver(solver, criterion), position_weights)

    @cached_property
    def problem(self) -> Any:
        grades, gains = self.criterion.gain_table()
        return relevance_ranking(
            np.zeros(grades.size), grades, gains, position_weights=self._weights, offsets=self.offsets
        )

    @cached_property
    def factors(self) -> tuple[Floats, Floats, Floats]:
        return (*self.criterion.optimal_rankings, laid_out(self._weights, self.offsets))

    def _weights(self, n: int) -> Floats:
        return self.position_weights.weights(n, self.criterion.measure)


def with_distinct_grades(queries: Arrangement, measure: Measure) -> Arrangement:
    """The queries that have something to order."""
    return queries.learnable(orderable(queries.graded, queries.offsets, measure), f"{measure} distinguishes")


def orderable(relevance: Floats, offsets: Ints, measure: Measure) -> Bools:
    """(m,) which queries have something to order: their best order is worth more than their worst."""
    if isinstance(measure, MeasureMix):
        return np.asarray(np.any([orderable(relevance, offsets, part.measure) for part in measure.parts], axis=0))
    if not (isinstance(measure, PositionalMeasure) and measure.is_inner_product(relevance, offsets)):
        criterion = Criterion.from_measure(measure, relevance, offsets)
        return np.asarray(criterion.best > criterion.worst)
    gain, discount = measure.gain(relevance, offsets), measure.discounts(offsets)
    query = query_of_row(offsets)
    best, worst = gain[sorted_rows(query, gain)], gain[sorted_rows(query, -gain)]
    return np.asarray(np.add.reduceat(discount * (best - worst), offsets[:-1]) > 0)


@dataclass(frozen=True, eq=False)
class PositionalOracle(PositionalReferences):
    """gain(π) = a[π]ᵀb. problem: gain b, discount a, position weights c and offsets; its scores are unused. known_kind:
    `kind`, if already computed for a superset of the queries."""

    problem: RankTwoBatch
    solver: Solver
    known_kind: Shorts | None = None

    reference: ClassVar[str] = "average"
    references: ClassVar[tuple[str, ...]] = ("average", "first")

    @classmethod
    def supports(cls, measure: Measure) -> bool:
        check_type("measure", measure, Measure, error=OptionError, cure="rankopt.measures.parse(text) makes it.")
        return measure.has_gain_table

    @classmethod
    def from_queries(
        cls, queries: Arrangement, measure: Measure, position_weights: PositionWeights, solver: Solver
    ) -> PositionalOracle | PatternArgmax:
        """Of a measure and position weights, for these queries; a `PatternArgmax` for what is no inner product."""
        check_type("queries", queries, Arrangement, error=DataError, cure="rankopt.data.canonical_order makes it.")
        check_type("position_weights", position_weights, PositionWeights, error=OptionError)
        check_type("measure", measure, Measure, error=OptionError)
        if not (isinstance(measure, PositionalMeasure) and measure.is_inner_product(queries.graded, queries.offsets)):
            return PatternArgmax.from_queries(queries, measure, position_weights, solver)
        gain = measure.gain(queries.graded, queries.offsets)
        solver = solver.for_batch(queries.offsets) if isinstance(solver, ExactArgmax) else solver
        problem = ranking(
            np.zeros(gain.size), gain, discount=measure.discount, offsets=queries.offsets,
            position_weights=lambda n: position_weights.weights(n, measure),
        )  # fmt: skip
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
        parts = (problem.scores, problem.gain, problem.discount, problem.position_weights)
        arguments = (*parts, self.kind, self.offsets, answer.order)
        if _scatter.pays(200 * scores.size):
            share_ranges(self.offsets, QUERY_ROWS, lambda first, last: _scatter(*arguments, first, last, slope, earned))
        else:
            query = query_of_row(self.offsets)
            assigned = self.offsets[query] + answer.order
            earned[:] = np.bincount(query, problem.discount * problem.gain[assigned], earned.size)
            slope[assigned] = problem.position_weights
            slope = shared(slope, problem.scores, self.kind, self.offsets)
        return ArgmaxResult(slope, earned, answer.value, answer.bound, answer.seconds)

    @property
    def factors(self) -> tuple[Floats, Floats, Floats]:
        return self.problem.gain, self.problem.discount, self.problem.position_weights

    def select_queries(self, first: int, last: int) -> PositionalOracle:
        all_, (low, high) = self.problem, self.offsets[[first, last]]
        rows = slice(int(low), int(high))
        offsets = self.offsets[first : last + 1] - low
        problem = RankTwoBatch(
            all_.scores[rows], all_.gain[rows], all_.discount[rows], all_.position_weights[rows], offsets
        )
        return replace(self, problem=problem, known_kind=self.kind[rows])


@compiled()
def _scatter(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, kind: Shorts, offsets: Ints, order: Ints,
    first: int, last: int, slope: Out[Floats], earned: Out[Floats],
) -> None:  # fmt: skip
    """For the queries first <= q < last, with document order[low + i] (index within the query) at position i: slope is
    the weight of the position of each document, shared by documents of equal score and kind; earned = a[π]ᵀb. In an
    optimal ranking the documents of a kind have decreasing scores. If strictly, no two are equal."""
    most = longest_query(offsets, first, last)
    lowest, buffers, sums = np.empty(most), np.empty((3, most), np.int64), np.empty(most)
    table, bits = np.empty(table_size(most), np.int64), scores.view(np.int64)
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        lowest[: high - low] = np.inf
        total, falls = 0.0, True
        for i in range(low, high):
            document = low + order[i]
            slope[document] = position_weights[i]
            total += discount[i] * gain[document]
            s, k = scores[document], kind[document]
            falls &= s < lowest[k]
            if position_weights[i] != 0.0 or position_weights[high - 1] < 0.0:
                lowest[k] = s
        earned[q] = total
        if not falls:
            share_query(bits, kind, low, high, buffers, table, sums, slope)
