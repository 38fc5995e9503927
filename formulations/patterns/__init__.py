"""Measures of the pattern of grades, and the feature maps of rankings under which their argmax is a longest path.

>>> from formulations.patterns import AP, pattern_loss
>>> pattern_loss("AP@10") == AP(cutoff=10)
True
"""

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from formulations.patterns.losses import AP as AP
    from formulations.patterns.losses import AUC as AUC
    from formulations.patterns.losses import ERR as ERR
    from formulations.patterns.losses import RR as RR
    from formulations.patterns.losses import Cells as Cells
    from formulations.patterns.losses import Discounted as Discounted
    from formulations.patterns.losses import PatternLoss as PatternLoss
    from formulations.patterns.losses import StepwiseLoss as StepwiseLoss
    from formulations.patterns.losses import pattern_loss as pattern_loss
    from formulations.problems.relevance_values import Earnings as Earnings
    from formulations.problems.relevance_values import FeatureMap as FeatureMap

LOSSES = {
    "AP": "formulations.patterns.losses:AP",
    "AUC": "formulations.patterns.losses:AUC",
    "Cells": "formulations.patterns.losses:Cells",
    "Discounted": "formulations.patterns.losses:Discounted",
    "ERR": "formulations.patterns.losses:ERR",
    "RR": "formulations.patterns.losses:RR",
    "StepwiseLoss": "formulations.patterns.losses:StepwiseLoss",
}
"""Every loss of a pattern, `name: "module:class"`."""

WORDS = {
    "Earnings": "formulations.problems.relevance_values:Earnings",
    "FeatureMap": "formulations.problems.relevance_values:FeatureMap",
    "PatternLoss": "formulations.patterns.losses:PatternLoss",
    "pattern_loss": "formulations.patterns.losses:pattern_loss",
}

__all__ = [*LOSSES, *WORDS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, LOSSES, WORDS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
