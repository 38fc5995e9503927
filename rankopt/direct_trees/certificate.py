"""What is proved of the weights of trees: no single one of them can be changed to much avail.

The measure as a function of the scores of all training documents, along tree columns too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.data.canonical_order import Arrangement
from rankopt.direct_trees.tree import Tree
from rankopt.measures.measure import Measure
from rankopt.measures.segments import query_of_row
from rankopt.sweeps.step_function import StepEvents, best_interval
from rankopt.sweeps.sweep import LineSweep

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


class TreeStop(StrEnum):
    """Why a run ended."""

    GROWN = "all trees were grown"
    SETTLED = "no weight alone raises the measure any more"
    PASSES = "all passes were taken"
    CHOSEN = "what came before was better on eval_set"
    NO_SPLIT = "no document could be told from another any more"
    TIME = "time_limit passed"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


@dataclass(frozen=True)
class TreeCertificate(CompactReprMixin):
    """kind "direction-wise": for each tree column h of `directions` and every t that is no jumping point,
    M(s + t h) <= bound, s the scores of the training queries and M(s) = value.

    It speaks of one tree at a time and of no new ones: it is no bound of what all weights together could reach.
    """

    value: float
    bound: float
    directions: int
    stop: TreeStop
    kind: str = "direction-wise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", TreeStop(self.stop))
        numbers = isinstance(self.value, float) and isinstance(self.bound, float) and type(self.directions) is int
        if self.kind != "direction-wise" or not numbers or not np.isfinite(self.bound - self.value):
            raise ValueError(f"a certificate of M = {self.value!r} and the bound {self.bound!r}, kind {self.kind!r}")

    @property
    def gap(self) -> float:
        """What the best change of one weight would gain."""
        return max(self.bound - self.value, 0.0)

    def __str__(self) -> str:
        return (
            f"{self.kind}: M = {self.value:.8g}, at most {self.bound:.8g} by the weight of one of {self.directions} "
            f"trees, {self.stop.value}"
        )


def certified(problem: MeasureObjective, trees: Sequence[Tree], scores: Floats, stop: TreeStop) -> TreeCertificate:
    """Of these trees, each swept once from the scores (N,); of those that were swept before an interruption."""
    value = bound = problem.value(scores)
    for number, tree in enumerate(trees):
        try:
            (events,) = problem.events(scores, tree.column[None])
            bound = max(bound, best_interval(events)[2])
        except KeyboardInterrupt:
            return TreeCertificate(value, bound, number, TreeStop.INTERRUPTED)
    return TreeCertificate(value, bound, len(trees), stop)
