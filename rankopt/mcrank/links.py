"""From raw values of classes to their probabilities, as scikit-learn's boosting and logistic regression take it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["probabilities"]

Floats = NDArray[np.float64]


def probabilities(raw: Floats) -> Floats:
    """(N, K), K >= 2: softmax of the K columns of `raw`, or of one column z the logistic 1 / (1 + exp(-z)) of class 1
    beside that of class 0. The operations and their order are scikit-learn's, and so are the bits."""
    if raw.shape[1] == 1:
        found = np.empty((raw.shape[0], 2))
        found[:, 1] = expit(raw[:, 0])
        found[:, 0] = 1 - found[:, 1]
        return found
    powers: Floats = np.exp(raw - raw.max(axis=1)[:, None])
    powers /= powers.sum(axis=1)[:, None]
    return powers
