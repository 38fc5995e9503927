"""Experimental: algorithms without a promise of stability, which no other module imports."""

from rankopt.experimental.counterfactual import CounterfactualChange as CounterfactualChange
from rankopt.experimental.counterfactual import ShadowPrices as ShadowPrices
from rankopt.experimental.counterfactual import counterfactual as counterfactual
from rankopt.experimental.counterfactual import shadow_prices as shadow_prices

__all__ = ["CounterfactualChange", "ShadowPrices", "counterfactual", "shadow_prices"]
