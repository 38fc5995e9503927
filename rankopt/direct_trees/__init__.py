"""Trees with exact weights: each the best on the line that it spans, of the measure itself [paper 3, section 2.4].

    growers/      a regression tree of residuals, by scikit-learn or LightGBM; a tree of the measure itself
    problem       the measure as a function of the scores of all training documents
    weights       where on its line a tree stands
    stages        tree by tree: grown, weighed, added
    leveraging    all trees first, then their weights in turn
    ranker        the estimator

The tables are text: what they name loads on first use.
"""

from typing import Any

from formulations.registry import member

PARTS = {
    "DirectBoostedRanker": "rankopt.direct_trees.ranker:DirectBoostedRanker",
    "TreeCertificate": "rankopt.direct_trees.certificate:TreeCertificate",
    "TreeHistory": "rankopt.direct_trees.training:TreeHistory",
    "TreeStep": "rankopt.direct_trees.training:TreeStep",
}
"""What is here, `name: "module:object"`."""

GROWERS = {
    "scikit-learn": "rankopt.direct_trees.growers.scikit_learn:ScikitLearn",
    "lightgbm": "rankopt.direct_trees.growers.light_gbm:LightGBM",
    "measure": "rankopt.direct_trees.growers.on_measure:OnMeasure",
}
"""What grows trees, `name: "module:class"` of a `Grower`."""

STRATEGIES = ("stage-wise", "leveraging", "both")

__all__ = ["GROWERS", "PARTS", "STRATEGIES", *PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
