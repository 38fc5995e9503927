"""Pairs: r(π) counts the pairs that stand in the wrong order [paper 4, φ_po].

    φ(π)·w = κ Σ (s_j - s_i)    over the pairs of a better document i that stands behind a worse one j
    r_i = κ (better documents behind i - worse ones before i)          κ = 1 / number of pairs

Documents are better or worse as the measure has them, by gain: relevant or not, or by grade. The paper has the factor 2
for κ; without it the bound of AUC's regret is exactly the pairwise hinge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations import pairwise_ranking
from formulations.solvers.solver import Solver
from formulations.threads import share_ranges
from rankopt.data.arrangement import Arrangement
from rankopt.errors import OptionError
from rankopt.losses.argmax_orders import OrdersArgmax, settled
from rankopt.losses.by_query import QUERY_ROWS, mean_of_alike, mean_of_runs, sorted_rows
from rankopt.losses.criterion import Criterion
from rankopt.losses.decay import Decay
from rankopt.losses.inversions import inversions, inverted_by_score, inverted_of_best, pairs
from rankopt.losses.pattern_losses import has_pattern, pattern_loss_of
from rankopt.measures.measure import Measure

__all__ = ["PairwiseArgmax"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairwiseArgmax(OrdersArgmax):
    """gain(π) = the measure. `best_reference`: "ideal" (the default), all better documents first, which is 0;
    "average", the mean over all orders that are best."""

    reference: ClassVar[str] = "ideal"
    references: ClassVar[tuple[str, ...]] = ("ideal", "average")

    @classmethod
    def takes(cls, measure: Measure) -> bool:
        return has_pattern(measure)

    @classmethod
    def of(cls, queries: Arrangement, measure: Measure, decay: Decay, solver: Solver) -> PairwiseArgmax:
        criterion = Criterion.of(measure, queries.graded, queries.offsets)
        return cls(criterion, settled(solver, criterion))

    @cached_property
    def problem(self) -> Any:
        grades, loss = pattern_loss_of(self.criterion)
        return pairwise_ranking(np.zeros(grades.size), grades, loss, offsets=self.offsets)

    def best_reference(self, which: str = "ideal") -> Floats:
        if which not in ("ideal", "average"):
            raise OptionError(f"reference {which!r} is neither 'ideal' nor 'average'")
        if which != "average":
            return np.zeros(self.shape)
        gain, _ = self.criterion.best_orders
        rows = sorted_rows(self.criterion.query, gain)
        runs, slope = self._runs(), np.empty(self.shape)
        apart = self._of_places(rows, runs, runs)[rows]  # all of a run are tied: every order of it
        slope[rows] = mean_of_runs(apart, self.criterion.query, gain[rows])
        return slope

    def best_by_score(self, scores: Floats) -> Floats:
        """Sorted by gain, inside equal gains by score; inside each run of places where the order does not matter to the
        measure by score again. Documents alike in gain and score share."""
        (gain, discount), query = self.criterion.best_orders, self.criterion.query
        if self._apart_by_runs:
            return np.zeros(self.shape)
        if inverted_of_best.pays(500 * scores.size):
            given = (np.ascontiguousarray(scores), discount, self.share, self.criterion.kind, self.offsets)
            slope = np.empty(self.shape)
            share_ranges(self.offsets, QUERY_ROWS, lambda first, last: inverted_of_best(*given, first, last, slope))
            return slope
        runs = self._runs()
        by_gain = sorted_rows(query, gain, scores)
        rows = by_gain[sorted_rows(np.cumsum(runs), scores[by_gain])]
        slope = self._of_places(rows, runs, self._apart(scores[rows]))
        kept = slope[by_gain]
        slope[by_gain] = mean_of_alike(kept, np.arange(kept.size), query, gain[by_gain], scores[by_gain])
        return slope

    def by_score(self, scores: Floats) -> Floats:
        """The order by score, pairs of equal score half."""
        slope, offsets, kind = np.empty(self.shape), self.offsets, self.criterion.kind
        if not inverted_by_score.pays(250 * scores.size):
            rows = sorted_rows(self.criterion.query, scores)
            return self._of_places(rows, self._begins(), self._apart(scores[rows]))
        given = (np.ascontiguousarray(scores), kind, offsets)
        share_ranges(offsets, QUERY_ROWS, lambda first, last: inverted_by_score(*given, first, last, slope))
        return slope * self.share

    @cached_property
    def share(self) -> Floats:
        """(N,) κ of the query of each document."""
        criterion = self.criterion
        return np.asarray((1.0 / np.maximum(pairs(criterion.kind, self.offsets), 1.0))[criterion.query])

    @cached_property
    def _apart_by_runs(self) -> bool:
        """Whether no run of places holds documents of two kinds in the best orders: these then have no inversion."""
        gain, _ = self.criterion.best_orders
        kind = self.criterion.kind[sorted_rows(self.criterion.query, gain)]
        return not (~self._runs()[1:] & (kind[1:] != kind[:-1])).any()

    def _of_places(self, rows: Ints, runs: NDArray[np.bool_], ties: NDArray[np.bool_]) -> Floats:
        slope = np.empty(rows.size)
        slope[rows] = inversions(self.criterion.kind[rows], runs, ties) * self.share
        return slope

    def _begins(self) -> NDArray[np.bool_]:
        """(N,) where a query begins."""
        begins = np.zeros(self.shape, dtype=bool)
        begins[self.offsets[:-1]] = True
        return begins

    def _runs(self) -> NDArray[np.bool_]:
        """(N,) where a run of places begins in which any order is as good."""
        _, discount = self.criterion.best_orders
        return self._begins() | self._apart(discount)

    def _apart(self, values: Floats) -> NDArray[np.bool_]:
        """(N,) which values are others than the one before."""
        return np.append(True, values[1:] != values[:-1])
