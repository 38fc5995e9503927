"""Linear scores, the same for the same document wherever it stands."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.products import row_scores

Floats = NDArray[np.float64]


def linear_scores(features: Any, coef: Floats) -> Floats:
    """The scores X w (N,) of features X (N, d), float64.

    Each row is summed on its own and in one order, so equal documents get equal scores wherever they stand. A BLAS
    product does not promise that: it sums the last rows of a block differently, and what ought to be ties is none.
    """
    return row_scores(features, np.arange(features.shape[0]), coef)
