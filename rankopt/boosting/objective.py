"""Objectives and metrics for LightGBM and XGBoost: a bound of a measure's regret, and the measures themselves.

An objective returns a gradient and a Hessian in each round. A metric averages ties under a named convention. Both
libraries pass scores, grades, weights and queries in different forms; `BoostingData` reads them into one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.data.validation import column
from rankopt.errors import DataError
from rankopt.evaluation.evaluation import evaluate
from rankopt.losses.margin import Bound
from rankopt.losses.oracle import JointFeatureMap
from rankopt.losses.score_loss import GradedLoss, ScoreLoss
from rankopt.measures.dcg import DiscountedGain
from rankopt.measures.measure import Convention, Measure, convention_named
from rankopt.measures.notation import parse
from rankopt.options import NOT_NEGATIVE, POSITIVE, SEED, Interval, check

FORGOTTEN = (
    "{what} cannot rank because the data have no queries; give the data set group= (sizes of consecutive queries)"
)


@dataclass(frozen=True, eq=False)
class BoostingData:
    """scores, relevance: (N,), documents query by query, cut by offsets (m + 1,). weights: (N,), or None: 1 each."""

    scores: Floats
    relevance: Floats
    offsets: Ints
    weights: Floats | None

    @classmethod
    def from_arrays(cls, relevance: Any, scores: Any, weight: Any, group: Any, what: str) -> BoostingData:
        """Grades, scores, weights and the sizes of queries, as LightGBM's ranker passes them to functions of one's own;
        or scores and a `lightgbm.Dataset`, as its `train` does.

        what: the caller's name, for the DataError if there are no queries.
        """
        if hasattr(scores, "get_label"):
            scores, data = relevance, scores
            relevance, weight, group = data.get_label(), data.get_weight(), data.get_group()
        if group is None or np.size(group) == 0:
            raise DataError(FORGOTTEN.format(what=what))
        return cls._check(relevance, scores, weight, np.concatenate([[0], np.cumsum(np.asarray(group, np.int64))]))

    @classmethod
    def of_matrix(cls, scores: Any, matrix: Any, what: str) -> BoostingData:
        """Scores and an `xgboost.DMatrix`, whose weights are one a query or one a row."""
        offsets = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if offsets.size < 2:
            raise DataError(FORGOTTEN.format(what=what).replace("group=", "group= or qid="))
        weight = matrix.get_weight()
        if np.size(weight) == offsets.size - 1:
            weight = np.repeat(weight, np.diff(offsets))
        return cls._check(matrix.get_label(), scores, weight, offsets)

    @classmethod
    def _check(cls, relevance: Any, scores: Any, weight: Any, offsets: Ints) -> BoostingData:
        n = int(offsets[-1])
        grades = column(np.ravel(relevance), n, "relevance", np.float64)
        weights = None if weight is None or np.size(weight) == 0 else column(weight, n, "weight", np.float64)
        return cls(column(np.ravel(scores), n, "scores", np.float64), grades, offsets, weights)


IDLE = 1e-6  # the Hessian of documents of queries that have nothing to order: they weigh next to nothing in a leaf
ROUNDING = 1e-12  # slopes below this are differences of equal numbers that were added up in another order
CACHED = 8  # data sets whose gains and position weights are cached: cross-validation trains on several in turn


def boosting_objective(
    measure: Any = "nDCG@10",
    *,
    bound: str | Bound = "tie-aware",
    position_weights: Any = "log@30",
    truncation_level: int = 30,
    score_noise: float = 1.0,
    scale: float = 1.0,
    damping: float = 0.1,
    seed: int = 0,
    feature_map: str | JointFeatureMap = "positional",
) -> BoostingObjective:
    """The objective Σ_q loss_q(scale · s) of scores s, loss_q an upper bound of the regret of `measure` on query q.

    measure, bound, position_weights, feature_map: as in `rankopt.losses.ScoreLoss`. truncation_level: the cutoff of
    nDCG and DCG if theirs is smaller, as `lambdarank_truncation_level` of LightGBM: deeper documents teach too. The
    rest: see `BoostingObjective`.
    """
    check("truncation_level", truncation_level, (Interval(1, integer=True),))
    for name, value, zero in (("score_noise", score_noise, True), ("scale", scale, False), ("damping", damping, False)):
        check(name, value, (NOT_NEGATIVE if zero else POSITIVE,))
    check("seed", seed, (SEED,))
    parsed, level = parse(measure), int(truncation_level)
    if isinstance(parsed, DiscountedGain) and parsed.cutoff is not None and parsed.cutoff < level:
        parsed = parsed @ level
    return BoostingObjective(
        ScoreLoss(parsed, bound, position_weights, feature_map),
        float(score_noise),
        float(scale),
        float(damping),
        int(seed),
    )


@dataclass(frozen=True)
class BoostingObjective:
    """With r the slope of the loss at scale · (s + noise · spread · z), z standard normal, and |r|‾ the mean of |r|:

        gradient r / |r|‾        Hessian |r| / |r|‾ + damping (1e-6 in queries with nothing to order)

    both times the weight of the row, if there is one.

    A maximum of linear functions has no curvature of its own. With this one a leaf moves by the mean of the signs of
    its slopes, each as heavy as the slope is large, hence by the learning rate at most: documents in a right
    order do not hold back those that are not, and one unit of score is one of the margin, whatever the measure.

    spread is the deviation of the scores inside queries. One draw a round gives the gradient of the smoothed bound in
    the mean over rounds; without it every step follows one order of documents whose scores lie close. A draw depends on
    the seed and the scores alone, so the same data give the same model.

    As `LGBMRanker(objective=...)` and as `objective` of `lightgbm.train`; for `xgboost.train` obj=objective.xgboost.
    It can be pickled and copied, and keeps what does not vary of the data it saw last.
    """

    loss: ScoreLoss
    score_noise: float = 1.0
    scale: float = 1.0
    damping: float = 0.1
    seed: int = 0
    _known: dict[bytes, GradedLoss] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[Floats, Floats]:
        """For LightGBM: (grades, scores, weight, group) from its ranker, or (scores, data set) from its `train`."""
        return self.at(BoostingData.from_arrays(first, second, weight, group, "the objective"))

    def xgboost(self, scores: Any, matrix: Any) -> tuple[Floats, Floats]:
        """For XGBoost: scores and a `DMatrix` with groups or query ids."""
        return self.at(BoostingData.of_matrix(scores, matrix, "the objective"))

    def at(self, rows: BoostingData) -> tuple[Floats, Floats]:
        """Gradient and Hessian, (N,) each."""
        graded = self._graded(rows)
        selected = graded.selected
        scores = self.scale * rows.scores
        if graded.loss is not None and self.score_noise > 0:
            scores[selected] += self.score_noise * self._draw_noise(scores[selected], graded.selected_offsets)
        slope = graded.at(scores).slope[selected]
        slope[np.abs(slope) < ROUNDING] = 0.0
        weights = np.ones(slope.size) if rows.weights is None else rows.weights[selected]
        total = float(weights @ np.abs(slope))
        mean = total / float(weights.sum()) if total > 0 else 1.0
        gradient, hessian = np.zeros(scores.size), np.full(scores.size, IDLE)
        gradient[selected] = slope / mean
        hessian[selected] = np.abs(slope) / mean + self.damping
        return (gradient, hessian) if rows.weights is None else (gradient * rows.weights, hessian * rows.weights)

    def _draw_noise(self, scores: Floats, offsets: Ints) -> Floats:
        """Normal numbers with the deviation that the scores have inside these queries."""
        sums = np.add.reduceat(scores, offsets[:-1])
        spread = np.sqrt(max(float(scores @ scores - sums @ (sums / np.diff(offsets))) / scores.size, 0.0))
        if spread <= ROUNDING * np.abs(scores).max():
            return np.zeros(scores.size)
        salt = self.seed.to_bytes(16, "little")
        digest = blake2b(scores.tobytes(), digest_size=16, salt=salt).digest()
        generator = np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))
        return np.asarray(spread * generator.standard_normal(scores.size, dtype=np.float32), dtype=np.float64)

    def _graded(self, rows: BoostingData) -> GradedLoss:
        """The loss of these grades; made once for each data set."""
        digest = blake2b(rows.relevance.tobytes(), digest_size=16)
        digest.update(rows.offsets.tobytes())
        key = digest.digest()
        if key not in self._known:
            while len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            self._known[key] = self.loss.bind(rows.relevance, offsets=rows.offsets)
        return self._known[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}


def boosting_metric(measure: Any = "nDCG@10", *, convention: str | Convention = "default") -> BoostingMetric:
    """The mean of any measure of `rankopt.measures`, to be maximized, for early stopping.

    convention: a name of `rankopt.measures.conventions`, or such an object. It defines the value of a query without
    relevant documents: none ("default"), or 0 ("burges", "trec", "letor4"). LightGBM and XGBoost count it as 1 in
    their own nDCG ("lightgbm", "xgboost") and keep the input order of equal scores, else the mean over orders counts.
    """
    return BoostingMetric(parse(measure), convention_named(convention))


@dataclass(frozen=True)
class BoostingMetric:
    """As `eval_metric` of `LGBMRanker.fit` and `feval` of `lightgbm.train`; for `xgboost.train`
    custom_metric=metric.xgboost with maximize=True."""

    measure: Measure
    convention: Convention

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[str, float, bool]:
        """(name, value, that more is better): of (grades, scores, weight, group), or (scores, data set)."""
        value = self.at(BoostingData.from_arrays(first, second, weight, group, "the metric"))
        return repr(self.measure), value, True

    def xgboost(self, scores: Any, matrix: Any) -> tuple[str, float]:
        """(name, value) of scores and a `DMatrix`."""
        return repr(self.measure), self.at(BoostingData.of_matrix(scores, matrix, "the metric"))

    def at(self, rows: BoostingData) -> float:
        """The mean over the queries that count, each with the weight of its documents."""
        found = evaluate(rows.relevance, rows.scores, self.measure, convention=self.convention, offsets=rows.offsets)
        return found.mean(weights=None if rows.weights is None else rows.weights[rows.offsets[:-1]])
