"""How good weights of a linear ranker are on queries, while they are learned."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.scorers.linear import linear_scores

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["EvaluationMixin"]

Floats = NDArray[np.float64]


class EvaluationMixin:
    """The measure of a ranker as a function of its weights; rankings are those that it shows."""

    measure: Any
    _deployment: Any

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        """The measure on the evaluation queries, as `score` computes it."""
        values = self._values(evaluation)
        return lambda w: float(np.nanmean(values(w)))

    def _values(self, queries: Queries, measures: Sequence[Any] | None = None) -> Callable[[Floats], Floats]:
        """The measure (m,) of each query, or the mean of several, NaN where it is not defined, as a function of w."""
        from rankopt.evaluation.evaluation import evaluate

        deployment, wanted = self._deployment(queries), [self.measure] if measures is None else list(measures)

        def values(w: Floats) -> Floats:
            scores = deployment.places(linear_scores(queries.features, w))
            return np.asarray(evaluate(queries, scores, wanted).values.mean(axis=0))

        return values
