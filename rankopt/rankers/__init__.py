"""Rankers: scikit-learn estimators that learn to order the documents of a query, one file each.

The table is text: an estimator, and scikit-learn with it, loads when its name is first used.
"""

from importlib import import_module
from typing import Any

RANKERS = {
    "LargeMarginRanker": "rankopt.rankers.large_margin:LargeMarginRanker",
    "PairwiseRanker": "rankopt.rankers.pairwise:PairwiseRanker",
    "RegressionRanker": "rankopt.rankers.regression:RegressionRanker",
}
"""Every ranker, `name: "module:object"`. The closed list of what a saved model may be."""

_PARTS = {
    "Explanation": "rankopt.rankers.explanation:Explanation",
    "LinearRanker": "rankopt.rankers.base:LinearRanker",
    "load_model": "rankopt.rankers.saved:load_model",
    "save_model": "rankopt.rankers.saved:save_model",
}

__all__ = [*RANKERS, *_PARTS]


def __getattr__(name: str) -> Any:
    """The object that a table names, loaded on first use."""
    place = RANKERS.get(name) or _PARTS.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = place.split(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """Names for completion, loaded or not."""
    return sorted({*globals(), *__all__})
