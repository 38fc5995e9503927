"""The packages of the extra `boosting`, loaded where they are used."""

from importlib import import_module
from typing import Any

from rankopt.errors import OptionError

__all__ = ["lightgbm"]


def lightgbm() -> Any:
    """The package; OptionError that names the cure where it is not installed."""
    try:
        return import_module("lightgbm")
    except ImportError as error:
        raise OptionError(
            f"BoostedRanker cannot grow or use trees because lightgbm cannot be loaded ({error}); "
            "pip install 'rankopt[boosting]'"
        ) from error
