"""Explanations: a score taken apart, what would exchange two documents, how tight the bounds are, what limits cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.explanations.contributions import Explanation as Explanation
    from rankopt.explanations.counterfactual import CounterfactualChange as CounterfactualChange
    from rankopt.explanations.prices import Prices as Prices
    from rankopt.explanations.tightness import Tightness as Tightness

PARTS = {
    "Explanation": "rankopt.explanations.contributions:Explanation",
    "Prices": "rankopt.explanations.prices:Prices",
    "CounterfactualChange": "rankopt.explanations.counterfactual:CounterfactualChange",
    "Tightness": "rankopt.explanations.tightness:Tightness",
}
"""What `explain`, `tightness` and `prices` of a ranker return, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> object:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
