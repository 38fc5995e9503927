"""A measure of ratings that were left out: for each user over those rated items alone, equal scores averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.evaluation.evaluation import evaluate
from rankopt.evaluation.rated_lists import measured, ordered_lists

__all__ = ["rated_only"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rated_only(bounds: Ints, values: Floats, scores: Floats, measure: Any) -> Floats:
    """(n,) the measure of each user's ratings in the order of the scores; NaN where it tells no order from another:
    for users of fewer than two ratings, and of equal ones."""
    sizes, differs = np.diff(bounds), ordered_lists(bounds, values)
    found = np.full(sizes.size, np.nan)
    if differs.any():
        rows = np.repeat(differs, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[differs])])
        with measured(measure, values):
            found[differs] = evaluate(values[rows], scores[rows], measure, offsets=offsets).values[0]
    return found
