"""Interface between margin losses and feature maps: the best y of every query, loss-augmented, by gain, or by score.

A feature map is linear in the scores s: φ(y)·w = r(y)ᵀs. Hence y is represented by its slope r(y) and its gain.
Rankings, also admissible ones, have r(y) = c[π] (`PositionalOracle`), matchings a 0/1 matrix of documents and slots.

`OrdersArgmax` is the base of feature maps of rankings under measures of the relevance vector. A `Criterion` is such a
measure on a batch of queries: the value of rankings, and the optimal rankings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from formulations import solve_batch
from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import STATES
from formulations.display import CompactReprMixin
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.solver import Solver
from formulations.sorting import alike
from rankopt.losses.segment_ops import shared, sorted_rows
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.tied_ranking import Ranking, query_of_row, ranked, totals

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable
    from rankopt.data.canonical_order import Arrangement
    from rankopt.losses.position_weights import PositionWeights


@dataclass(frozen=True, eq=False)
class ArgmaxResult(CompactReprMixin):
    """The loss-augmented best y of every query of a batch: argmax of r(y)ᵀs - gain(y).

    slope: (N,) or (N, slots), r(y), averaged over interchangeable documents. earned: (m,) gain(y).
    value, bound: (m,) r(y)ᵀs - gain(y) and a proven upper bound of its maximum. seconds: time in the solver.
    """

    slope: Floats
    earned: Floats
    value: Floats
    bound: Floats
    seconds: float


class MaxOracle(Protocol):
    """Loss-augmented argmax for a batch of queries; documents of query q are rows offsets[q] : offsets[q + 1].

    Slopes do not depend on the order of equal documents. Documents with equal score, gain and attributes get the mean
    of their slopes: a mean of maximizers, hence a subgradient. Ties between other documents are broken by content: the
    exact argmax uses score and gain alone; constraint sets and other solvers use the order of the documents, which in
    training is canonical (`data.canonical`).
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Of scores and slopes: (N,), or (N, slots)."""
        ...

    @property
    def offsets(self) -> Ints: ...

    @property
    def best(self) -> Floats:
        """(m,) max over y of gain(y)."""
        ...

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        """The loss-augmented best y; `prove` takes bounds from dual variables even where the solver is exact."""
        ...

    def mean_of_best(self, which: str = "average") -> Floats:
        """r of a y of greatest gain, or a mean of several, independent of the scores. `which`: "average", the mean of
        all, or another reference of this map; OptionError for an unknown one. The default suits the map."""
        ...

    def best_then_score(self, scores: Floats) -> Floats:
        """r of the highest-scoring y among those of greatest gain."""
        ...

    def top_scoring(self, scores: Floats) -> Floats:
        """r of the highest-scoring y: a subgradient of max_y r(y)ᵀs.

        If the ranking by score is not that y, `raised` is a map that differs from this one by a convex function of the
        scores, the same for all y, and whose highest-scoring y is the ranking by score (`FirstRelevantArgmax`).
        """
        ...

    def select_queries(self, first: int, last: int) -> MaxOracle:
        """The queries first <= q < last."""
        ...


class JointFeatureMap(Protocol):
    """A feature map, registered in `rankopt.losses.FEATURE_MAPS`: a class of `MaxOracle`.

    reference: default of `mean_of_best`. A class with `references` accepts these names only. A class whose slopes have
    another scale than those of other maps has `in_mixes`, a rescaled version of itself.
    """

    reference: str

    def supports(self, measure: Measure) -> bool:
        """Whether it can bound the regret of this measure."""
        ...

    def from_queries(
        self, queries: Arrangement, measure: Measure, position_weights: PositionWeights, solver: Solver
    ) -> MaxOracle:
        """The argmax of these queries, each with at least two distinct grades. position_weights: for maps that use
        them. solver: computes the loss-augmented y."""
        ...


@dataclass(frozen=True, eq=False)
class Criterion:
    """A measure of rankings of graded documents, relevance (N,), query q in rows offsets[q] : offsets[q + 1]. inner:
    whether it is an inner product a[π]ᵀb on these queries and all that they were cut from; it is then counted without
    its constant."""

    measure: Measure
    relevance: Floats
    offsets: Ints
    is_inner_product: bool

    @classmethod
    def from_measure(cls, measure: Measure, relevance: Floats, offsets: Ints) -> Criterion:
        return cls(measure, relevance, offsets, measure.is_inner_product(relevance, offsets))

    @cached_property
    def optimal_rankings(self) -> tuple[Floats, Floats]:
        """b (N,) by document and a (N,) by position: the optimal rankings maximize a[π]ᵀb."""
        return self.measure.optimal_rankings(self.relevance, self.offsets)

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """b (N,) and a (N,) of an inner product that equals the measure. `optimal_rankings` only determines which
        rankings are optimal: for RR, a relevant document first, whatever the weights of later positions."""
        if isinstance(self.measure, PositionalMeasure):
            return self.measure.gain(self.relevance, self.offsets), self.measure.discounts(self.offsets)
        return self.optimal_rankings

    @cached_property
    def kind(self) -> Shorts:
        """(N,) classes that the measure distinguishes: kinds count from 0 in each query, the least relevant first."""
        return alike(self.offsets, self.optimal_rankings[0])

    @cached_property
    def query(self) -> Ints:
        return query_of_row(self.offsets)

    @cached_property
    def levels(self) -> Ints:
        """(m,) how many kinds each query has."""
        return np.asarray(np.maximum.reduceat(self.kind, self.offsets[:-1]) + 1, dtype=np.int64)

    @cached_property
    def best(self) -> Floats:
        """(m,) what the best orders earn."""
        return self.earned(sorted_rows(self.query, self.optimal_rankings[0]))

    @cached_property
    def worst(self) -> Floats:
        """(m,) what the order by rising worth earns; no order earns less."""
        return self.earned(sorted_rows(self.query, -self.optimal_rankings[0]))

    @cached_property
    def constant(self) -> Floats:
        """(m,) what the measure subtracts, and is not counted here."""
        if self.is_inner_product and isinstance(self.measure, PositionalMeasure):
            return self.measure.constant(self.relevance, self.offsets)
        return np.zeros(self.offsets.size - 1)

    def earned(self, rows: Ints) -> Floats:
        """(m,) values of the rankings with document rows[i] at the position of row i."""
        if self.is_inner_product:
            gain, discount = self.factors
            return totals(discount * gain[rows], self.offsets)
        return self.measure.values(Ranking(self.relevance[rows], self.offsets, np.arange(rows.size + 1)))

    def worst_and_mean(self, scores: Floats) -> tuple[Floats, Floats]:
        """(m,) each, what the worst order earns that the scores allow, and the mean over all these orders."""
        if self.is_inner_product:
            gain, discount = self.factors
            ranking = ranked(gain, scores, self.offsets)
            worst = totals(discount * ranking.break_ties("worst").relevance, self.offsets)
            return worst, totals(ranking.averaged(discount) * ranking.relevance, self.offsets)
        ranking = ranked(self.relevance, scores, self.offsets)
        return self.measure.values(ranking.break_ties("worst")), self.measure.values(ranking)

    def gain_table(self) -> tuple[Floats, GainTable]:
        """The grades (N,) as the measure distinguishes them, and what documents earn by it."""
        classes = self.relevance if self.measure.graded else self.kind.astype(np.float64)
        return classes, self.measure.gain_table(classes, self.relevance, self.offsets)

    def select_queries(self, first: int, last: int) -> Criterion:
        """The queries first <= q < last."""
        low, high = self.offsets[[first, last]].tolist()
        return Criterion(
            self.measure, self.relevance[low:high], self.offsets[first : last + 1] - low, self.is_inner_product
        )


EXACTLY = 1  # queries of a shard whose proof is also checked in rational arithmetic, where dual variables prove bounds


def fix_solver(solver: Solver, criterion: Criterion) -> Solver:
    """The solver; an exact one with the decision to compile fixed for all these queries, so that shards do not differ.
    Many kinds of documents give many states for few documents."""
    if not isinstance(solver, ExactArgmax) or solver.compiled is not None:
        return solver
    starts = criterion.offsets[:-1][criterion.query]  # a query has no more kinds than documents
    states = np.multiply.reduceat(
        np.bincount(starts + criterion.kind, minlength=starts.size) + 1.0, criterion.offsets[:-1]
    )
    return solver.for_batch(criterion.offsets) if states.sum() <= STATES else replace(solver, compiled=True)


@dataclass(frozen=True, eq=False)
class OrdersArgmax:
    """A map of rankings; a subclass defines `problem`, the loss-augmented problem, and its references. criterion: the
    measure on the queries. solver: computes the rankings."""

    criterion: Criterion
    solver: Solver

    @classmethod
    def from_queries(
        cls, queries: Arrangement, measure: Measure, position_weights: PositionWeights, solver: Solver
    ) -> Self:
        criterion = Criterion.from_measure(measure, queries.graded, queries.offsets)
        return cls(criterion, fix_solver(solver, criterion))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.criterion.relevance.shape

    @property
    def offsets(self) -> Ints:
        return self.criterion.offsets

    @property
    def best(self) -> Floats:
        return self.criterion.best

    @cached_property
    def problem(self) -> Any:
        """The batch of max over orders of r(π)ᵀs - gain(π), a `RelevanceBatch`; its scores do not matter."""
        raise NotImplementedError(f"{type(self).__name__} has no `problem`; write it.")

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        answer = solve_batch(self.problem.with_scores(scores), self.solver, directed_rounding=False)
        answer = answer.proved(exactly=EXACTLY) if prove else answer
        slope = shared(answer.slope.copy(), answer.problems.scores, self.criterion.kind, self.offsets, answer.order)
        constant = self.criterion.constant
        return ArgmaxResult(
            slope, answer.earned + constant, answer.value - constant, answer.bound - constant, answer.seconds
        )

    def select_queries(self, first: int, last: int) -> Self:
        return replace(self, criterion=self.criterion.select_queries(first, last))
