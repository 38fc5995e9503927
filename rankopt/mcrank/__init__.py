"""Grades as classes: McRank, a ranking by the expected grade of any classifier, and classifiers as plain arrays.

The table is text: what it names, and scikit-learn with it, loads on first use.
"""

from typing import Any

from formulations.registry import member

PARTS = {"McRanker": "rankopt.mcrank.ranker:McRanker"}
"""What is here, `name: "module:object"`."""

FORMS = {
    "linear": "rankopt.mcrank.classifier_data:GradeWeights",
    "trees": "rankopt.mcrank.classifier_data:GradeTrees",
}
"""Classifiers of grades as data: what a saved model may hold, `name: "module:record"`. A record has `of(classifier)`,
which reads one or is None, `n_features`, `n_classes` and `probabilities(features)`."""

CLASSIFIERS = {
    "HistGradientBoostingClassifier": (
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting:HistGradientBoostingClassifier"
    ),
    "LogisticRegression": "sklearn.linear_model._logistic:LogisticRegression",
}
"""Classifiers that a saved model may name as its parameter, with options that are data; the others are refused."""

__all__ = ["CLASSIFIERS", "FORMS", "PARTS", *PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
