"""Rankers: scikit-learn estimators that learn to order the documents of a query, one file each.

The table is text: an estimator, and scikit-learn with it, loads when its name is first used.
"""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.ascent.ascent import RandomDirections as RandomDirections
    from rankopt.boosting.ranker import BoostedRanker as BoostedRanker
    from rankopt.explanations.contributions import Explanation as Explanation
    from rankopt.persistence.checkpoint import Checkpoint as Checkpoint
    from rankopt.persistence.models import load_model as load_model
    from rankopt.persistence.models import save_model as save_model
    from rankopt.persistence.onnx import save_onnx as save_onnx
    from rankopt.persistence.onnx import to_onnx as to_onnx
    from rankopt.rankers.base import Ranker as Ranker
    from rankopt.rankers.cofi import CofiRanker as CofiRanker
    from rankopt.rankers.direct import DirectRanker as DirectRanker
    from rankopt.rankers.large_margin import LargeMarginRanker as LargeMarginRanker
    from rankopt.rankers.large_margin import svm as svm
    from rankopt.rankers.linear import LinearRanker as LinearRanker
    from rankopt.rankers.linear import RegressionRanker as RegressionRanker
    from rankopt.rankers.loss import LossRanker as LossRanker
    from rankopt.rankers.loss import PairwiseRanker as PairwiseRanker
    from rankopt.rankers.matching import MatchingRanker as MatchingRanker
    from rankopt.rankers.smooth import SmoothRanker as SmoothRanker

_NAMES = public_names(__name__)
RANKERS = {
    name: place for name, place in _NAMES.items() if name.endswith("Ranker") and name not in ("LinearRanker", "Ranker")
}
"""Every ranker, `name: "module:object"`."""

MODEL_CLASSES = {
    **RANKERS,
    "DecisionRegressor": "rankopt.decisions.regressor:DecisionRegressor",
    "DirectBoostedRanker": "rankopt.experimental.direct_trees:DirectBoostedRanker",
    "PlackettLuceRanker": "rankopt.policies.plackett_luce:PlackettLuceRanker",
}
"""The closed list of what a saved model may be, with the experimental rankers that are plain data."""

STARTS = {
    "zeros": "rankopt.rankers.starts:zeros",
    "regression": "rankopt.rankers.starts:regression",
    "ridge": "rankopt.rankers.starts:ridge",
    "ranksvm": "rankopt.rankers.starts:ranksvm",
}
"""What w0 may be by name, `name: "module:function"`: a function of the ranker and of its training queries."""

SLOT_STARTS = {"zeros": STARTS["zeros"], "regression": "rankopt.rankers.matching:regression"}
"""The same of `MatchingRanker`."""

SMOOTH_STARTS = {
    "ridge": "rankopt.rankers.starts:bare_ridge",
    "ranksvm": STARTS["ranksvm"],
    "regression": STARTS["regression"],
}
"""The same of `SmoothRanker`, which gives every start a scale of its own, and cannot move where all scores are 0."""

STRENGTHS = ("scale", "auto")
"""What lam may be by name: the strength natural to the data, or the one that cross-validation chooses."""

_PARTS = {name: place for name, place in _NAMES.items() if name not in RANKERS}

__all__ = [*RANKERS, *_PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, _NAMES)
