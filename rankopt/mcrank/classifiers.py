"""Classifiers of grades: the default, what any must be able to do, and how one is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.values import is_sparse
from rankopt.errors import OptionError
from rankopt.rankers.options import number

__all__ = ["check_classifier", "default_classifier", "fitted", "readable", "stops_on_queries"]

Floats = NDArray[np.float64]

ROUNDS, PATIENCE, LEARNING_RATE, LEAVES = 500, 10, 0.1, 8
"""Of the default: rounds at most, rounds without a better one after which it ends, and its trees."""


def default_classifier(random_state: Any) -> Any:
    """Histogram boosting that is stopped on whole queries; the same bits each time for a number or None."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    seed = (0 if random_state is None else random_state) if draw is None else int(draw(2**31 - 1))
    if not (0 <= number(seed) < 2**32 and number(seed).is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return HistGradientBoostingClassifier(
        max_iter=ROUNDS, n_iter_no_change=PATIENCE, learning_rate=LEARNING_RATE, max_leaf_nodes=LEAVES,
        random_state=int(seed),
    )  # fmt: skip


def check_classifier(classifier: Any) -> None:
    """OptionError unless it is None or has what is asked of a classifier."""
    if classifier is None:
        return
    kind = type(classifier).__name__
    if isinstance(classifier, type):
        raise OptionError(
            f"classifier = {classifier.__name__} is a class, not one of its objects; write {classifier.__name__}()"
        )
    if not (hasattr(classifier, "fit") and hasattr(classifier, "get_params")):
        raise OptionError(f"classifier cannot be a {kind} because it is no estimator of scikit-learn's kind; give one")
    if not hasattr(classifier, "predict_proba"):
        raise OptionError(
            f"classifier cannot be {classifier!r:.80} because it has no predict_proba, and an expected grade needs "
            "probabilities; wrap it by CalibratedClassifierCV, or give another"
        )


def stops_on_queries(classifier: Any) -> bool:
    """Whether it is histogram boosting that leaves it open when to stop (early_stopping="auto", its default)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return isinstance(classifier, HistGradientBoostingClassifier) and classifier.early_stopping == "auto"


def fitted(classifier: Any, features: Any, classes: NDArray[np.int64], weights: Floats | None) -> Any:
    """The classifier, fitted. OptionError where rows have weights and it takes none."""
    from sklearn.utils.validation import has_fit_parameter

    if weights is None:
        return classifier.fit(features, classes)
    if not has_fit_parameter(classifier, "sample_weight"):
        raise OptionError(
            f"query_weight cannot be heeded because fit of {type(classifier).__name__} takes no sample_weight; leave "
            "it out, or give another classifier"
        )
    return classifier.fit(features, classes, sample_weight=weights)


def readable(classifier: Any, features: Any) -> Any:
    """The features as the classifier takes them: CSR becomes an array where it takes no other."""
    if not is_sparse(features) or _takes_sparse(classifier):
        return features
    return features.toarray()


def _takes_sparse(classifier: Any) -> bool:
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(classifier).input_tags.sparse)
    except (AttributeError, TypeError):  # of another package
        return False
