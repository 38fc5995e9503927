"""What the values of queries must be: finite features, grades that are finite and not negative."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankopt.data.values import Features, is_sparse


def first_wrong_value(
    features: Features | None, relevance: NDArray[np.float64] | None, names: Sequence[str] | None
) -> tuple[int, str] | None:
    """The row of the first value that cannot be, and what is wrong with it; None where all can. No features: they are
    known to be finite."""
    place = None if features is None else first_not_finite(features)
    if features is not None and place is not None:
        row, j = place
        named = "" if names is None else f" ({names[j]!r})"
        return row, (
            f"feature column {j}{named} is {features[row, j]}. Rankings need finite features: impute it, or leave the "
            "document out."
        )
    if relevance is None:
        return None
    wrong = ~((relevance >= 0) & (relevance < np.inf))
    if not wrong.any():
        return None
    row = int(np.flatnonzero(wrong)[0])
    cure = "say what it means by unjudged=0 or unjudged='drop'" if relevance[row] < 0 else "leave the document out"
    return row, f"the grade is {relevance[row]:g}. Grades are finite and >= 0: {cure}."


def first_not_finite(features: Features) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinite value, None where all are finite."""
    entries = features.data if is_sparse(features) else features
    with np.errstate(all="ignore"):
        total = entries.sum()  # finite only if every term is; it may overflow although they all are
    if np.isfinite(total):
        return None
    wrong = ~np.isfinite(entries)
    if not wrong.any():
        return None
    if not is_sparse(features):
        row, column = np.argwhere(wrong)[0]
        return int(row), int(column)
    entry = int(np.flatnonzero(wrong)[0])
    return int(np.searchsorted(features.indptr, entry, side="right")) - 1, int(features.indices[entry])
