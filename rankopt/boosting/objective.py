"""The bound of a measure's regret as an objective for LightGBM and XGBoost: a gradient and a Hessian a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.boosting.rows import BoostingData
from rankopt.errors import OptionError
from rankopt.losses.argmax import Map
from rankopt.losses.margin import Bound
from rankopt.losses.score_loss import GradedLoss, ScoreLoss
from rankopt.rankers.options import number

__all__ = ["BoostingObjective", "boosting_objective"]

Floats = NDArray[np.float64]

IDLE = 1e-6
"""The Hessian of documents of queries that have nothing to order: they weigh next to nothing in a leaf."""

ROUNDING = 1e-12
"""Slopes below this are differences of equal numbers that were added up in another order."""

KEPT = 8
"""Data sets whose gains and position weights are kept: cross-validation trains on several in turn."""


def boosting_objective(
    measure: Any = "nDCG@10",
    *,
    bound: str | Bound = "nonconvex",
    decay: Any = "power(0.5)",
    noise: float = 1.0,
    scale: float = 1.0,
    damping: float = 0.3,
    seed: int = 0,
    map: str | Map = "positional",
) -> BoostingObjective:
    """The objective Σ_q loss_q(scale · s) of scores s, loss_q an upper bound of the regret of `measure` on query q.

    measure, bound, decay, map: as in `rankopt.losses.ScoreLoss`. The rest: see `BoostingObjective`.
    """
    for name, value, zero in (("noise", noise, True), ("scale", scale, False), ("damping", damping, False)):
        if not (0 < number(value) < np.inf or (zero and value == 0)):
            raise OptionError(f"{name} = {value!r} cannot work; give a positive number, such as 0.3")
    if not (number(seed) >= 0 and number(seed).is_integer()):
        raise OptionError(f"seed = {seed!r} is no seed; give a whole number, 0 or more")
    return BoostingObjective(
        ScoreLoss(measure, bound, decay, map), float(noise), float(scale), float(damping), int(seed)
    )


@dataclass(frozen=True)
class BoostingObjective:
    """With r the slope of the loss at scale · (s + noise · spread · z), z standard normal, and |r|‾ the mean of |r|:

        gradient r / |r|‾        Hessian |r| / |r|‾ + damping (1e-6 in queries with nothing to order)

    both times the weight of the row, if there is one.

    A maximum of linear functions has no curvature of its own. With this one a leaf moves by the mean of the signs of
    its slopes, each as heavy as the slope is large, hence by the learning rate at most: documents that are placed
    right do not hold back those that are not, and one unit of score is one of the margin, whatever the measure.

    spread is the deviation of the scores inside queries. One draw a round gives the gradient of the smoothed bound in
    the mean over rounds; without it every step follows one order of documents whose scores lie close. A draw depends on
    the seed and the scores alone, so the same data give the same model.

    As `LGBMRanker(objective=...)` and as `objective` of `lightgbm.train`; for `xgboost.train` obj=objective.xgboost.
    It can be pickled and copied, and keeps what does not vary of the data it saw last.
    """

    loss: ScoreLoss
    noise: float = 1.0
    scale: float = 1.0
    damping: float = 0.3
    seed: int = 0
    _known: dict[bytes, GradedLoss] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[Floats, Floats]:
        """For LightGBM: (grades, scores, weight, group) from its ranker, or (scores, data set) from its `train`."""
        what = "the objective"
        if hasattr(second, "get_label"):
            return self.at(BoostingData.of_dataset(first, second, what))
        return self.at(BoostingData.of(first, second, weight, group, what))

    def xgboost(self, scores: Any, matrix: Any) -> tuple[Floats, Floats]:
        """For XGBoost: scores and a `DMatrix` with groups or query ids."""
        return self.at(BoostingData.of_matrix(scores, matrix, "the objective"))

    def at(self, rows: BoostingData) -> tuple[Floats, Floats]:
        """Gradient and Hessian, (N,) each."""
        graded = self._graded(rows)
        kept = graded.kept
        scores = self.scale * rows.scores
        if graded.loss is not None and self.noise > 0:
            scores[kept] += self.noise * self._drawn(scores[kept], graded.kept_offsets)
        slope = graded.at(scores).slope[kept]
        slope[np.abs(slope) < ROUNDING] = 0.0
        weights = np.ones(slope.size) if rows.weights is None else rows.weights[kept]
        total = float(weights @ np.abs(slope))
        mean = total / float(weights.sum()) if total > 0 else 1.0
        gradient, hessian = np.zeros(scores.size), np.full(scores.size, IDLE)
        gradient[kept] = slope / mean
        hessian[kept] = np.abs(slope) / mean + self.damping
        return (gradient, hessian) if rows.weights is None else (gradient * rows.weights, hessian * rows.weights)

    def _drawn(self, scores: Floats, offsets: NDArray[np.int64]) -> Floats:
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
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = self.loss.on(rows.relevance, offsets=rows.offsets)
        return self._known[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}
