"""Linear scores, the same for the same document wherever it stands."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def linear_scores(features: Any, coef: Floats) -> Floats:
    """The scores X w (N,) of features X (N, d), float64.

    Each row is summed on its own and in one order, so equal documents get equal scores wherever they stand. A BLAS
    product does not promise that: it sums the last rows of a block differently, and what ought to be ties is none.
    """
    if hasattr(features, "tocsr"):
        return np.asarray(features.astype(np.float64, copy=False) @ coef)
    return np.asarray(np.einsum("ij,j->i", features, coef, dtype=np.float64))
