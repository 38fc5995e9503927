"""Logistic regression as data: a vector of weights for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import ModelError
from rankopt.mcrank.links import probabilities

__all__ = ["GradeWeights"]

Floats = NDArray[np.float64]

LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class GradeWeights:
    """P(y | x) = softmax(W x + b)_y; of two classes, that have one row of W, the logistic of w·x + b.

    weights (K, d), or (1, d) for K = 2. intercepts: (K,) or (1,). ModelError for anything else.
    """

    weights: Floats
    intercepts: Floats

    def __post_init__(self) -> None:
        for name, ndim in (("weights", 2), ("intercepts", 1)):
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == ndim):
                raise ModelError(f"{name} of a linear classifier is no array of numbers in {ndim} dimensions.")
            if not (np.abs(array) < LARGEST).all():
                raise ModelError(f"{name} of a linear classifier holds numbers that are not finite.")
        rows = self.weights.shape[0]
        if rows in (0, 2) or self.weights.shape[1] == 0 or self.intercepts.shape != (rows,):
            raise ModelError(f"a linear classifier has {self.intercepts.size} intercepts for {rows} rows of weights.")

    @classmethod
    def of(cls, classifier: Any) -> GradeWeights | None:
        """The weights of a fitted `LogisticRegression`; None of anything else."""
        from sklearn.linear_model import LogisticRegression

        if type(classifier) is not LogisticRegression:
            return None
        weights = np.array(classifier.coef_, dtype=np.float64)
        intercepts = np.zeros(len(weights)) + np.asarray(classifier.intercept_, dtype=np.float64)
        return None if len(weights) == 2 else cls(weights, intercepts)

    @property
    def n_features(self) -> int:
        return int(self.weights.shape[1])

    @property
    def n_classes(self) -> int:
        return max(int(self.weights.shape[0]), 2)

    def probabilities(self, features: Any) -> Floats:
        """(N, K) for features (N, d), dense or CSR."""
        return probabilities(np.asarray(features @ self.weights.T) + self.intercepts)
