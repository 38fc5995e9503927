"""Whether the attributes of a ranker that were read from a file fit together."""

from typing import TYPE_CHECKING

import numpy as np

from rankopt.errors import ModelError

if TYPE_CHECKING:
    from rankopt.rankers.base import LinearRanker


def check_weights(ranker: "LinearRanker") -> None:
    """Raise ModelError where weights, counts and names are missing, of another type or shape, or not finite."""
    for name in ("coef_", "n_features_in_", "n_queries_"):
        if not hasattr(ranker, name):
            raise ModelError(f"{name} is missing.")
    for name in ("n_features_in_", "n_queries_"):
        if type(getattr(ranker, name)) is not int:
            raise ModelError(f"{name} is not a whole number.")
    coef, d, shape = ranker.coef_, ranker.n_features_in_, ranker._coef_shape()
    if not (isinstance(coef, np.ndarray) and coef.dtype == np.float64 and coef.shape == shape):
        size = " × ".join(map(str, shape))
        raise ModelError(f"coef_ is not an array of {size} float64 numbers as n_features_in_ says.")
    if not np.isfinite(coef).all():
        raise ModelError("coef_ has a value that is not finite.")
    names = getattr(ranker, "feature_names_in_", None)
    if names is not None and np.shape(names) != (d,):
        raise ModelError(f"feature_names_in_ does not name {d} features.")
