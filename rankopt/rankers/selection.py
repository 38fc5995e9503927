"""Which features a linear ranker uses: those whose weight is not 0."""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

__all__ = ["FeatureSelectionMixin"]


class FeatureSelectionMixin:
    """`get_support` and `selected_`, under scikit-learn's names; `SelectFromModel(ranker, prefit=True)` works too."""

    coef_: NDArray[np.float64]
    n_features_in_: int

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
