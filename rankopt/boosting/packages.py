"""LightGBM, of the extra `boosting`, loaded where it is used, and features as it takes them."""

from importlib import import_module
from typing import Any

from rankopt.errors import OptionError

__all__ = ["lightgbm", "table"]


def lightgbm() -> Any:
    """The package; OptionError that names the cure where it is not installed."""
    try:
        return import_module("lightgbm")
    except ImportError as error:
        raise OptionError(
            f"trees of LightGBM cannot be grown or used because lightgbm cannot be loaded ({error}); "
            "pip install 'rankopt[boosting]'"
        ) from error


def table(features: Any) -> Any:
    """The features as an array or a sparse matrix: LightGBM knows no sparse arrays. Nothing is copied."""
    if not hasattr(features, "tocsr"):
        return features
    from scipy.sparse import csr_matrix

    return csr_matrix(features)
