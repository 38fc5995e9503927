"""A bound of the regret as a function of the scores alone, for any model: trees, networks, external scores.

>>> loss = ScoreLoss("nDCG@10").bind([2, 1, 1, 0, 1], qid=["a", "a", "b", "a", "b"])
>>> found = loss.at([0.2, 0.5, 0.0, 0.4, 0.1])
>>> found.value.round(4), found.slope.round(4)
(array([0.3838, 0.    ]), array([ 0.    , -0.2929,  0.    ,  0.2929,  0.    ]))
>>> loss.regret([0.2, 0.5, 0.0, 0.4, 0.1]).round(4)
array([0.3115, 0.    ])
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats, Ints
from formulations.solvers.exact import ExactArgmax
from rankopt.data.canonical_order import Arrangement
from rankopt.data.validation import as_offsets, codes_of_ids, column, grouped
from rankopt.errors import DataError
from rankopt.losses.loss import Loss, protocol_of
from rankopt.losses.margin import Bound
from rankopt.losses.oracle import JointFeatureMap
from rankopt.losses.oracle_positional import orderable
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import ranked


@dataclass(frozen=True)
class ScoreLoss:
    """loss_q(s) = max_π [r(π)ᵀs - gain(π)] + max_π gain(π) - r̄ᵀs: what `LargeMarginRanker` minimizes, without features
    [ORM, eq. 20 to 22].

    measure: a measure of `rankopt.measures`, or its notation. bound: which reference r̄ is subtracted, "convex",
    "tie-aware", "nonconvex", or one of your own. position_weights: the position weights c, r(π) = c[π], of the map
    "positional".
    feature_map: which slope r(π) an order has, "positional", "pairwise", "first-relevant" (see
    `rankopt.losses.FEATURE_MAPS`), or a map of your own.

    Raises OptionError and MeasureError for what cannot be trained.
    """

    measure: Any = "nDCG@10"
    bound: str | Bound = "nonconvex"
    position_weights: Any = "power(0.5)"
    feature_map: str | JointFeatureMap = "positional"

    def __post_init__(self) -> None:
        _ = self.regret  # raises for unknown options

    @property
    def regret(self) -> RegretBound:
        """Resolve the options."""
        return RegretBound.named(self.measure, self.feature_map, self.bound, self.position_weights)

    def bind(self, relevance: ArrayLike, *, qid: Any = None, offsets: ArrayLike | None = None) -> GradedLoss:
        """The loss of documents with the grades `relevance` (N,), finite and >= 0, or gains of any sign for a measure
        that takes them, as DCG(gain='linear').

        qid: (N,) hashables, the query of each row, rows in any order; queries count in the order in which they first
        appear. offsets: (m + 1,), rising from 0 to N: rows offsets[q] : offsets[q + 1] are query q, which may be empty.
        DataError unless it is one of them.
        """
        grades = column(relevance, np.size(relevance), "relevance", np.float64)
        wrong = ~(np.isfinite(grades) & ((grades >= 0) | getattr(self.regret.measure, "takes_gains", False)))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"relevance[{row}] is {grades[row]:g}; grades must be finite and >= 0. Remove the document."
            )
        if (qid is None) == (offsets is None):
            raise DataError(
                "pass either qid= (one id per row) or offsets= (the first row of each query), not both or neither."
            )
        if offsets is None and not grades.size:
            offsets = [0]
        if offsets is None:
            codes, ids = codes_of_ids(qid, grades.size)
            rows, bounds, _ = grouped(codes)
            return self._graded_loss(grades[rows], rows, bounds, ids)
        bounds = as_offsets(offsets, grades.size)
        return self._graded_loss(grades, np.arange(grades.size), bounds, tuple(range(bounds.size - 1)))

    def _graded_loss(self, grades: Floats, rows: Ints, offsets: Ints, ids: tuple[Hashable, ...]) -> GradedLoss:
        regret = self.regret
        filled = np.flatnonzero(np.diff(offsets))
        inner = np.append(offsets[:-1][filled], offsets[-1])
        counted = np.zeros(offsets.size - 1, dtype=bool)
        if filled.size:
            counted[filled] = orderable(grades, inner, regret.measure)
        if not counted.any():
            return GradedLoss(regret.measure, grades, rows, offsets, ids, counted, rows[:0], None)
        retained = np.flatnonzero(counted)
        every = Arrangement(
            np.empty((grades.size, 0)), rows, offsets, np.ones(offsets.size - 1), grades, ids, {}
        ).select(retained)
        _, loss = regret.bind(every, ExactArgmax())
        return GradedLoss(regret.measure, grades, rows, offsets, ids, counted, every.rows, loss)


@dataclass(frozen=True, eq=False)
class GradedLoss:
    """A `ScoreLoss` of documents with known grades; only `at(scores)` varies. relevance: (N,) query by query, split by
    `offsets` (m + 1,); document j is the caller's row rows[j]. query_ids: m. counted: (m,) queries with distinct
    grades. selected, loss: the caller's rows of their documents, and their loss; None if no query counts."""

    measure: Measure
    relevance: Floats
    rows: Ints
    offsets: Ints
    query_ids: tuple[Hashable, ...]
    counted: Bools
    selected: Ints
    loss: Loss | None

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def selected_offsets(self) -> Ints:
        """Offsets of the counted queries within the rows `selected`."""
        return np.append(0, np.cumsum(np.diff(self.offsets)[self.counted]))

    def at(self, scores: ArrayLike) -> AtScores:
        """Values and slopes at the scores (N,), which are finite and in the caller's order of rows; else DataError."""
        given = self._scores(scores)
        value, bound, slope = np.zeros(len(self)), np.zeros(len(self)), np.zeros(given.size)
        if self.loss is not None:
            loss: Any = self.loss
            own = given[self.selected]
            if protocol_of(loss) == "gradient":
                smooth = loss.gradient(own)
                found = smooth.value, smooth.value, smooth.slope
            else:
                plane = loss.at(own)
                found = plane.value, plane.bound, plane.assigned - plane.reference
            value[self.counted], bound[self.counted], slope[self.selected] = found
        return AtScores(value, bound, slope, self.counted)

    def regret(self, scores: ArrayLike) -> Floats:
        """(m,) how far the measure of the ranking by score is from the best that it can be, the mean over the orders of
        documents of equal score, as `evaluate` has it; the nonconvex bound is above the worst of these orders too."""
        given = self._scores(scores)[self.rows]
        reached = self.measure.values(ranked(self.relevance, given, self.offsets))
        return np.maximum(self._best - reached, 0.0)

    @cached_property
    def _best(self) -> Floats:
        return self.measure.values(ranked(self.relevance, self.relevance, self.offsets))

    def _scores(self, scores: ArrayLike) -> Floats:
        values = column(scores, self.rows.size, "scores", np.float64)
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(f"scores[{row}] is {values[row]}; scores must be finite. Check the model.")
        return values


@dataclass(frozen=True, eq=False)
class AtScores:
    """A loss at scores s.

    value: (m,) of each query; bound: (m,) what it cannot exceed, the argmax being proven to that. slope: (N,) in the
    caller's order of rows, a subgradient of Σ_q loss_q(s) (where the bound is not convex, of its convex majorant that
    touches it here); documents of one query with equal scores and grades share theirs, and Σ over a query is 0.
    counted: (m,) the queries that have something to order; in the others all is zero.
    """

    value: Floats
    bound: Floats
    slope: Floats
    counted: Bools

    @property
    def mean(self) -> float:
        """The mean value of the queries that count, the risk R of training; 0 where none does."""
        return float(self.value.sum() / max(np.count_nonzero(self.counted), 1))
