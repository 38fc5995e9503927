"""A measure of ratings that were left out: for each user over those rated items alone, equal scores averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.evaluation.evaluation import evaluate

__all__ = ["rated_only"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rated_only(bounds: Ints, values: Floats, scores: Floats, measure: Any) -> Floats:
    """(n,) the measure of each user's ratings in the order of the scores; NaN where it tells no order from another:
    for users of fewer than two ratings, and of equal ones."""
    sizes = np.diff(bounds)
    found = np.full(sizes.size, np.nan)
    starts = bounds[:-1][sizes > 0]
    if not starts.size:
        return found
    differs = np.zeros(sizes.size, dtype=bool)
    differs[sizes > 0] = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
    if differs.any():
        rows = np.repeat(differs, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[differs])])
        found[differs] = evaluate(values[rows], scores[rows], measure, offsets=offsets).values[0]
    return found
