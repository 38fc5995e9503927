"""The option `normalize` of a ranker: each feature made comparable within its query, wherever the ranker reads data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.normalisation import METHODS, QueryNormalizer, normalise
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]


def check_normalize(method: Any) -> None:
    """Raise OptionError unless this is None or a method of `rankopt.data.normalisation`."""
    if method is not None and method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise OptionError(f"normalize cannot be {str(method)[:80]!r}; it is None or one of {known}.")


def normalised(ranker: Any, queries: Queries) -> Queries:
    """The queries as the ranker wants them: by its `normalize`, or as they are where it has none."""
    method = getattr(ranker, "normalize", None)
    check_normalize(method)
    return queries if method is None else normalise(queries, method)


def normalised_among(ranker: Any, rows: list[Floats], among: Any, read: Callable[[Any], Any]) -> list[Floats]:
    """Single documents (d,) in the units of the ranker; `among`: the documents (n, d) of their query, `read` from what
    the caller has. DataError where these are needed and missing."""
    if ranker.normalize is None:
        return rows
    if among is None:
        raise DataError(
            f"{type(ranker).__name__} cannot compare single documents because it was fitted with "
            f"normalize={ranker.normalize!r}, which depends on all documents of a query; pass among=, the rows of "
            "their query."
        )
    normalizer = QueryNormalizer(ranker.normalize).fit(read(among))
    made = normalizer.transform(np.stack(rows))
    return list(np.asarray(made, dtype=np.float64))
