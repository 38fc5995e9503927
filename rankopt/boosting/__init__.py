"""Trees on the bound: our losses as objectives of LightGBM and XGBoost, and a ranker of trees with our conventions.

LightGBM and XGBoost come with `pip install 'rankopt[boosting]'` and are loaded where they are used.
"""

from typing import Any

from formulations.registry import member

PARTS = {
    "BoostedRanker": "rankopt.boosting.ranker:BoostedRanker",
    "BoostingMetric": "rankopt.boosting.objective:BoostingMetric",
    "BoostingObjective": "rankopt.boosting.objective:BoostingObjective",
    "boosting_metric": "rankopt.boosting.objective:boosting_metric",
    "boosting_objective": "rankopt.boosting.objective:boosting_objective",
}
"""What is here, `name: "module:object"`, loaded on first use."""

__all__ = ["PARTS", *PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
