"""Our measures as metrics of LightGBM and XGBoost, ties averaged, under a named convention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankopt.boosting.rows import BoostingData
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures.convention import Convention, convention_named
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse

__all__ = ["BoostingMetric", "boosting_metric"]


def boosting_metric(measure: Any = "nDCG@10", *, convention: str | Convention = "default") -> BoostingMetric:
    """The mean of any measure of `rankopt.measures`, to be maximised, for early stopping.

    convention: a name of `rankopt.measures.conventions`, or such an object. It says what a query without relevant
    documents counts: nothing ("default"), or 0 ("burges", "trec", "letor4"). LightGBM and XGBoost count it as 1 in
    their own nDCG, which is `Convention(empty=1.0)`. Equal scores count as the mean over their orders; with LightGBM's
    own metric they stand as they come.
    """
    return BoostingMetric(parse(measure), convention_named(convention))


@dataclass(frozen=True)
class BoostingMetric:
    """As `eval_metric` of `LGBMRanker.fit` and `feval` of `lightgbm.train`; for `xgboost.train`
    custom_metric=metric.xgboost with maximize=True."""

    measure: Measure
    convention: Convention

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[str, float, bool]:
        """(name, value, that more is better): of (grades, scores, weight, group), or (scores, data set)."""
        what = "the metric"
        if hasattr(second, "get_label"):
            return (repr(self.measure), self.at(BoostingData.of_dataset(first, second, what)), True)
        return (repr(self.measure), self.at(BoostingData.of(first, second, weight, group, what)), True)

    def xgboost(self, scores: Any, matrix: Any) -> tuple[str, float]:
        """(name, value) of scores and a `DMatrix`."""
        return repr(self.measure), self.at(BoostingData.of_matrix(scores, matrix, "the metric"))

    def at(self, rows: BoostingData) -> float:
        """The mean over the queries that count, each with the weight of its documents."""
        found = evaluate(rows.relevance, rows.scores, self.measure, convention=self.convention, offsets=rows.offsets)
        return found.mean(weights=rows.query_weights)
