"""A measure on a batch of queries: the value of rankings, and the optimal rankings.

A criterion is a function of the relevance vector of a ranking; its gains are a `GainTable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Shorts
from rankopt.losses.segment_ops import alike, query_of_row, sorted_rows
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.tied_ranking import Ranking, ranked, totals

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Criterion:
    """A measure of rankings of graded documents, relevance (N,), query q in rows offsets[q] : offsets[q + 1].

    inner: whether it is an inner product a[π]ᵀb on these queries and all that they were cut from; it is then counted
    without its constant.
    """

    measure: Measure
    relevance: Floats
    offsets: Ints
    inner_product: bool

    @classmethod
    def from_measure(cls, measure: Measure, relevance: Floats, offsets: Ints) -> Criterion:
        return cls(measure, relevance, offsets, measure.inner_product(relevance, offsets))

    @cached_property
    def optimal_rankings(self) -> tuple[Floats, Floats]:
        """b (N,) by document and a (N,) by position: the optimal rankings maximise a[π]ᵀb."""
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
        if self.inner_product and isinstance(self.measure, PositionalMeasure):
            return self.measure.constant(self.relevance, self.offsets)
        return np.zeros(self.offsets.size - 1)

    def earned(self, rows: Ints) -> Floats:
        """(m,) values of the rankings with document rows[i] at the position of row i."""
        if self.inner_product:
            gain, discount = self.factors
            return totals(discount * gain[rows], self.offsets)
        return self.measure.values(Ranking(self.relevance[rows], self.offsets, np.arange(rows.size + 1)))

    def worst_and_mean(self, scores: Floats) -> tuple[Floats, Floats]:
        """(m,) each, what the worst order earns that the scores allow, and the mean over all these orders."""
        if self.inner_product:
            gain, discount = self.factors
            ranking = ranked(gain, scores, self.offsets)
            worst = totals(discount * ranking.broken("worst").relevance, self.offsets)
            return worst, totals(ranking.averaged(discount) * ranking.relevance, self.offsets)
        ranking = ranked(self.relevance, scores, self.offsets)
        return self.measure.values(ranking.broken("worst")), self.measure.values(ranking)

    def gain_table(self) -> tuple[Floats, GainTable]:
        """The grades (N,) as the measure distinguishes them, and what documents earn by it."""
        classes = self.relevance if self.measure.graded else self.kind.astype(np.float64)
        return classes, self.measure.gain_table(classes, self.relevance, self.offsets)

    def only(self, first: int, last: int) -> Criterion:
        """The queries first <= q < last."""
        low, high = self.offsets[[first, last]].tolist()
        return Criterion(
            self.measure, self.relevance[low:high], self.offsets[first : last + 1] - low, self.inner_product
        )
