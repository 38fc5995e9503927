"""How many rounds a boosted classifier grows, chosen on whole queries.

Documents of one query resemble each other: rows left out of training have their like in it, and a choice on them comes
too late. Here queries are left out. Over the documents j that are held out, with the weights v of their queries,

    rounds* = argmax_r  Σ_j v_j log P_r(y_j | x_j) / Σ_j v_j,      of equals the fewest,

P_r the classifier after r rounds. Held out are the queries of eval_set, if there is one; else the training queries with
something to order, dealt into three folds in their canonical order, each fold seen by a P_r that is grown without it.
All grow at once, `n_iter_no_change` rounds at a time, until the best round is so many rounds back or `max_iter` is
reached. A grade that nothing grown on has counts as of probability 1e-15.

The likelihood is what the classifier is grown for, and smooth where the measure of a ranking is not: chosen by nDCG@10
in its place, rounds differed more from split to split, and rankings were no better (`benchmarks/mcrank.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.arrangement import Arrangement
from rankopt.errors import OptionError
from rankopt.rankers.options import number

__all__ = ["Part", "StagedPredictions", "chosen_rounds", "folds_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Told = Callable[[int, float | None], None]

FOLDS = 3
LEAST = 1e-15


@dataclass(frozen=True, eq=False)
class StagedPredictions:
    """Some rows (None: all) of features, places of classes (-1: of none) and weights, copied when asked for."""

    features: Any
    classes: Ints
    weights: Floats
    chosen: Mask | None = None

    def of(self, values: Any) -> Any:
        return values if self.chosen is None else values[self.chosen]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to grow on, and rows that are held out."""

    grown: StagedPredictions
    held: StagedPredictions


def folds_of(queries: Arrangement) -> list[Mask]:
    """Each fold as a mask (N,) of the documents that are held out; none where fewer than two queries have something to
    order. Whatever is held out, what is left has two grades or more."""
    grades, starts = queries.graded, queries.offsets[:-1]
    ordered = np.flatnonzero(np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))
    if ordered.size < 2:
        return []
    fold = np.full(len(queries), -1)
    fold[ordered] = np.arange(ordered.size) % FOLDS
    of_documents = np.repeat(fold, np.diff(queries.offsets))
    return [of_documents == number for number in range(min(FOLDS, ordered.size))]


def chosen_rounds(classifier: Any, parts: list[Part], told: Told) -> tuple[int, Floats]:
    """rounds*, and the mean log-likelihood after each round that was grown.

    classifier: scikit-learn's histogram boosting, or what has its `max_iter`, `n_iter_no_change`, `warm_start` and
    `staged_predict_proba`. told: is told of each round.
    """
    from sklearn.base import clone

    most, patience = _whole(classifier, "max_iter"), _whole(classifier, "n_iter_no_change")
    growing = [clone(classifier).set_params(warm_start=True, early_stopping=False) for _ in parts]
    total = sum(part.held.of(part.held.weights).sum() for part in parts)
    found: list[float] = []
    while len(found) < most and (not found or len(found) - 1 - np.argmax(found) < patience):
        rounds = min(len(found) + patience, most)
        sums = np.zeros(rounds - len(found))
        for one, part in zip(growing, parts, strict=True):
            sums += _after(one.set_params(max_iter=rounds), part, len(found))
        for value in (sums / total).tolist():
            found.append(value)
            told(len(found), value)
    return int(np.argmax(found)) + 1, np.array(found)


def _after(classifier: Any, part: Part, done: int) -> Floats:
    """The log-likelihood of what is held out after each round beyond those done: sums over the documents."""
    grown, held = part.grown, part.held
    weights = None if np.ptp(grown.weights) == 0 else grown.of(grown.weights)
    classifier.fit(grown.of(grown.features), grown.of(grown.classes), sample_weight=weights)
    classes = held.of(held.classes)
    column = np.minimum(np.searchsorted(classifier.classes_, classes), classifier.classes_.size - 1)
    rows, known = np.arange(classes.size), classifier.classes_[column] == classes
    staged = islice(classifier.staged_predict_proba(held.of(held.features)), done, None)
    own = (np.where(known, found[rows, column], 0.0) for found in staged)
    counted = held.of(held.weights)
    return np.array([counted @ np.log(np.maximum(found, LEAST)) for found in own])


def _whole(classifier: Any, name: str) -> int:
    """An option that is a number of rounds; OptionError for anything else."""
    value = number(getattr(classifier, name))
    if not (value >= 1 and value.is_integer()):
        given = getattr(classifier, name)
        raise OptionError(f"{name} = {given!r} of the classifier is no number of rounds; give 1 or more")
    return int(value)
