"""Explanations: the terms of a score difference, and how tight the bounds of the regret are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.explanations.contributions import Explanation as Explanation
    from rankopt.explanations.tightness import Tightness as Tightness

PARTS = public_names(__name__)
"""What `explain` and `bound_tightness` of a ranker return, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
