"""How many rounds a boosted classifier grows, chosen on whole queries.

Documents of one query resemble each other: rows left out of training have their like in it, so that a choice on rows is
too late. Here queries are left out. With an eval_set, rounds* is the round after which the mean of the measure over its
queries is largest. Without one the training queries with something to order are dealt into three folds by their content
(their canonical order), a classifier is grown without each fold in turn, and

    rounds* = argmax_r  Σ_q v_q measure_q(scores of q after r rounds, grown without the fold of q) / Σ_q v_q,

of equals the fewest. All grow at once, `patience` rounds at a time, until the best round is so many rounds back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.rankers.options import number

__all__ = ["FOLDS", "Part", "chosen_rounds"]

Floats = NDArray[np.float64]
Told = Callable[[int, float | None], None]

FOLDS = 3


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to grow on, with their classes and weights (None: 1 each), and rows to be judged by; judge: from their
    probabilities (n, K), by the classes that the classifier knows, to the measure of each query and its weight."""

    features: Any
    classes: NDArray[np.int64]
    weights: Floats | None
    held: Any
    judge: Callable[[Floats, NDArray[np.int64]], tuple[Floats, Floats]]


def chosen_rounds(classifier: Any, parts: list[Part], told: Told) -> tuple[int, Floats]:
    """rounds*, and the mean of the measure after each round that was grown, over the queries of all parts.

    classifier: has `max_iter`, `n_iter_no_change`, `warm_start` and `staged_predict_proba`, as scikit-learn's histogram
    boosting. told: is told of each round.
    """
    from sklearn.base import clone

    most, patience = _whole(classifier, "max_iter"), _whole(classifier, "n_iter_no_change")
    growing = [clone(classifier).set_params(warm_start=True, early_stopping=False) for _ in parts]
    curve: list[float] = []
    while len(curve) < most and (not curve or len(curve) - 1 - np.argmax(curve) < patience):
        rounds = min(len(curve) + patience, most)
        judged = [
            _after(one.set_params(max_iter=rounds), part, len(curve)) for one, part in zip(growing, parts, strict=True)
        ]
        found = np.concatenate([values for values, _ in judged], axis=1)
        counted = ~np.isnan(found).any(axis=0)
        if not counted.any():
            raise OptionError(
                "rounds cannot be chosen because the measure is defined on no query that was left out; choose another, "
                "or HistGradientBoostingClassifier(early_stopping=False) with as many rounds as it says"
            )
        weights = np.concatenate([weights for _, weights in judged])[counted]
        for value in np.average(found[:, counted], axis=1, weights=weights).tolist():
            curve.append(value)
            told(len(curve), value)
    return int(np.argmax(curve)) + 1, np.array(curve)


def _after(classifier: Any, part: Part, done: int) -> tuple[Floats, Floats]:
    """(rounds, m) the measures of the held queries after each round beyond those done, and the weights (m,)."""
    classifier.fit(part.features, part.classes, sample_weight=part.weights)
    staged = islice(classifier.staged_predict_proba(part.held), done, None)
    judged = [part.judge(found, classifier.classes_) for found in staged]
    return np.stack([values for values, _ in judged]), judged[0][1]


def _whole(classifier: Any, name: str) -> int:
    """An option that is a number of rounds; OptionError for anything else."""
    value = number(getattr(classifier, name))
    if not (value >= 1 and value.is_integer()):
        raise OptionError(
            f"{name} = {getattr(classifier, name)!r} of the classifier is no number of rounds; give 1 or more"
        )
    return int(value)
