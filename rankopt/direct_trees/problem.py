"""The measure as a function of the scores of all training documents, along tree columns too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.data.arrangement import Arrangement
from rankopt.line.events import StepEvents
from rankopt.line.sweep import LineSweep
from rankopt.measures.measure import Measure
from rankopt.measures.segments import query_of_row

__all__ = ["MeasureObjective"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasureObjective:
    """M(s) = Σ_q v_q measure_q(s_q) over the queries on which the measure is defined, equal scores
    averaged.

    Trees are grown on all N documents; rows: those that M sees. sweep: M of these. grades: (N,). shares: (N,) the
    weight of each document in a regression, 1 in the mean.
    """

    sweep: LineSweep
    rows: Ints
    grades: Floats
    shares: Floats

    @classmethod
    def of(cls, measure: Measure, queries: Arrangement) -> MeasureObjective:
        """Of queries of positive weight; DataError where the measure is defined on none."""
        useful = measure.defined(queries.graded, queries.offsets)
        seen = queries.learnable(useful, f"give {measure} a value")
        sizes = np.diff(queries.offsets)
        shares = np.repeat(queries.weights, sizes)
        return cls(
            LineSweep.of(measure, seen.graded, seen.offsets, seen.weights),
            np.flatnonzero(np.repeat(useful, sizes)),
            queries.graded,
            shares / shares.mean(),
        )

    def value(self, scores: Floats) -> float:
        """M at scores (N,)."""
        return self.sweep.value(scores[self.rows])

    def events(self, scores: Floats, columns: Floats) -> list[StepEvents]:
        """The events of t -> M(s + t a) for each column a of (D, N)."""
        return self.sweep.events(scores[self.rows], columns[:, self.rows])

    def reach(self, scores: Floats, column: Floats, window: float) -> float:
        """The t by which the scores move by `window` of their deviation inside queries."""
        return window * (self._deviation(scores) or 1.0) / (self._deviation(column) or 1.0)

    def _deviation(self, values: Floats) -> float:
        """The root of Σ_q v_q times the variance inside query q."""
        own, offsets = values[self.rows], self.sweep.offsets
        sizes, query = np.diff(offsets), query_of_row(offsets)
        means = np.add.reduceat(own, offsets[:-1]) / sizes
        apart = own - means[query]
        return float(np.sqrt((self.sweep.weights / sizes)[query] @ (apart * apart)))
