"""Measures that are inner products: value(order) = Σ_j a[π(j)] b(y)_j - constant.

The discount a weighs positions and is non-increasing. The gain b weighs documents and is non-decreasing in the grade.
Sorting by grade is therefore optimal, and the regret best - value is non-negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.errors import MeasureError
from rankopt.measures.measure import Measure
from rankopt.measures.segments import descending, position_in_query, query_of_row, totals
from rankopt.measures.tied_ranking import Ranking

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class PositionalMeasure(Measure):
    """A measure defined by `discount`, `gain` and an optional `constant`."""

    trainable: ClassVar[bool] = True
    has_gain_table: ClassVar[bool] = True
    sweep_kind: ClassVar[str] = "places"

    def discount(self, n: int) -> Floats:
        """Position weights a (n,): non-increasing, 0 beyond the cutoff."""
        raise NotImplementedError(f"{type(self).__name__} has no `discount`; write it.")

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        """Document weights b (N,) of all queries; all 0 in queries on which the measure is undefined."""
        raise NotImplementedError(f"{type(self).__name__} has no `gain`; write it.")

    def constant(self, relevance: Floats, offsets: Ints) -> Floats:
        """The constant (m,) subtracted from the inner product of each query."""
        return np.zeros(len(offsets) - 1)

    def discounts(self, offsets: Ints) -> Floats:
        """The discount (N,) of every position of every query."""
        lengths, which = np.unique(np.diff(offsets), return_inverse=True)
        if len(lengths) == 0:
            return np.zeros(0)
        table = np.concatenate([self.discount(int(n)) for n in lengths])
        starts = np.cumsum(lengths) - lengths
        return np.asarray(table[starts[which][query_of_row(offsets)] + position_in_query(offsets)])

    def inner_product(self, relevance: Floats, offsets: Ints) -> bool:
        return True

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        return self.gain(relevance, offsets), self.discounts(offsets)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import Discounted

        return Discounted(self.discount, self.gain(relevance, offsets)).gain_table(relevance, offsets)

    def best(self, relevance: Floats, offsets: Ints) -> Floats:
        """The value (m,) of the best order of each query."""
        gain = self.gain(relevance, offsets)
        return best_sum(self.discounts(offsets), gain, offsets) - self.constant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        """Linear in a, so the mean over the orders of a tie group is that of its mean discount."""
        gain = self.gain(ranking.relevance, ranking.offsets)
        products = ranking.averaged(self.discounts(ranking.offsets)) * gain * ranking.retrieved
        return totals(products, ranking.offsets) - self.constant(ranking.relevance, ranking.offsets)


def best_sum(discounts: Floats, gain: Floats, offsets: Ints) -> Floats:
    """max over orders of Σ_j a[π(j)] b_j of each query (m,): largest gains first."""
    return totals(discounts * descending(gain, offsets), offsets)


def per_best(gain: Floats, discounts: Floats, offsets: Ints) -> Floats:
    """The gains divided by the best sum of their query; 0 where that is 0."""
    best = best_sum(discounts, gain, offsets)
    if not np.all(np.isfinite(best)):
        raise MeasureError(
            f"The gains of query {int(np.argmin(np.isfinite(best)))} (from 0) are too large to add up; "
            "use gain='linear' or smaller grades."
        )
    scale = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
    return np.asarray(gain * scale[query_of_row(offsets)])
