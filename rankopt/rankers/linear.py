"""Linear rankers, score(x) = coefᵀ x: scores, explanations, selected features, and the measure as a function of w."""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankopt.errors import DataError, ModelError
from rankopt.evaluation.evaluation import evaluate
from rankopt.explanations.contributions import Explanation
from rankopt.persistence.onnx import Linear
from rankopt.rankers.base import Ranker
from rankopt.rankers.inputs import normalised_among, read_features, read_row
from rankopt.rankers.typing import AnyRows, Document
from rankopt.scorers.linear import linear_scores

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]


class LinearRanker(Ranker):
    """Base class of rankers with scores `coefᵀ x`; a subclass computes coef in `_fit`.

    Data are passed as to every `Ranker`. Fitted: `coef_` (d,) in the units of the input features, and the attributes
    of every ranker.
    """

    _saved: ClassVar[tuple[str, ...]] = ("coef_", *Ranker._saved)

    coef_: Floats

    def explain(self, x: Document, y: Document, *, among: AnyRows | None = None) -> Explanation:
        """Explain the score difference of documents x and y (d,): the terms coef_j (x_j - y_j), largest first.

        among: all documents (n, d) of their query; needed only by a ranker with `normalize`, to normalize x and y. The
        terms are then those of the normalized features, with the normalization fixed.
        """
        check_is_fitted(self, "coef_")
        return self._explained(x, y, self.coef_, among)

    def _explained(self, x: Any, y: Any, coef: Floats, among: Any = None) -> Explanation:
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        rows = [read_row(self, document, name) for document, name in ((x, "x"), (y, "y"))]
        rows = normalised_among(self, rows, among, lambda X: read_features(self, X, reset=False))
        return Explanation.from_coefficients(tuple(str(name) for name in names), coef, *rows)

    def _as_graph(self) -> Linear:
        return Linear(self.coef_)

    def _scores(self, features: Any) -> Floats:
        scores = linear_scores(features, self.coef_)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise DataError(
                f"The score of row {row} leaves double precision; its features are too large: rescale them."
            )
        return scores

    def _check_learned(self) -> None:
        """Raise ModelError where the weights are missing, of another type or shape, or not finite."""
        if not hasattr(self, "coef_"):
            raise ModelError("coef_ is missing.")
        coef, shape = self.coef_, self._coef_shape()
        if not (isinstance(coef, np.ndarray) and coef.dtype == np.float64 and coef.shape == shape):
            size = " × ".join(map(str, shape))
            raise ModelError(f"coef_ is not an array of {size} float64 numbers, as n_features_in_ requires.")
        if not np.isfinite(coef).all():
            raise ModelError("coef_ has a value that is not finite.")

    def _coef_shape(self) -> tuple[int, ...]:
        return (self.n_features_in_,)

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        """The measure on the evaluation queries, as `score` computes it."""
        values = self._values(evaluation)
        return lambda w: float(np.nanmean(values(w)))

    def _values(self, queries: Queries, measures: Sequence[Any] | None = None) -> Callable[[Floats], Floats]:
        """The measure (m,) of each query, or the mean of several, NaN where it is not defined, as a function of w."""
        deployment, wanted = self._deployment(queries), [self.measure] if measures is None else list(measures)

        def values(w: Floats) -> Floats:
            scores = deployment.places(linear_scores(queries.features, w))
            return np.asarray(evaluate(queries, scores, wanted).values.mean(axis=0))

        return values

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """(d,) True for a feature whose weight is not 0 (of a ranker with several weights a feature, any of them); or
        the `indices` of these features."""
        check_is_fitted(self, "coef_")
        support = np.any(np.reshape(self.coef_, (-1, self.n_features_in_)) != 0.0, axis=0)
        return np.flatnonzero(support) if indices else support

    @property
    def selected_(self) -> NDArray[np.object_]:
        """The names of these features ("x0", "x1", ... where the data named none), the largest weight first."""
        indices = self.get_support(indices=True)
        size = np.abs(np.reshape(self.coef_, (-1, self.n_features_in_))).max(axis=0)[indices]
        names = getattr(self, "feature_names_in_", None)
        names = np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object) if names is None else names
        return np.asarray(names[indices[np.argsort(-size, kind="stable")]], dtype=object)
