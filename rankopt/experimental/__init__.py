"""Experimental: algorithms without a promise of stability, which no other module imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.experimental.counterfactual import CounterfactualChange as CounterfactualChange
    from rankopt.experimental.counterfactual import ShadowPrices as ShadowPrices
    from rankopt.experimental.counterfactual import counterfactual_change as counterfactual_change
    from rankopt.experimental.counterfactual import shadow_prices as shadow_prices

PARTS = {
    "CounterfactualChange": "rankopt.experimental.counterfactual:CounterfactualChange",
    "ShadowPrices": "rankopt.experimental.counterfactual:ShadowPrices",
    "counterfactual_change": "rankopt.experimental.counterfactual:counterfactual_change",
    "shadow_prices": "rankopt.experimental.counterfactual:shadow_prices",
}
"""Every experimental function and estimator, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> object:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
