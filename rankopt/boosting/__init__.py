"""Trees on the bound: our losses as objectives of LightGBM and XGBoost, and a ranker of trees with our conventions.

LightGBM and XGBoost come with `pip install 'rankopt[boosting]'` and are loaded where they are used.
"""

from formulations.registry import lazy

PARTS = {
    "BoostedRanker": "rankopt.boosting.ranker:BoostedRanker",
    "BoostingMetric": "rankopt.boosting.objective:BoostingMetric",
    "BoostingObjective": "rankopt.boosting.objective:BoostingObjective",
    "boosting_metric": "rankopt.boosting.objective:boosting_metric",
    "boosting_objective": "rankopt.boosting.objective:boosting_objective",
}
"""What is here, `name: "module:object"`, loaded on first use."""

__all__ = ["PARTS", *PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
