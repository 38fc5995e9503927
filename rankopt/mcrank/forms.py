"""Classifiers as plain data: which can be, and whether what was read is what the classifier says."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.tables import load
from rankopt.errors import ModelError
from rankopt.mcrank import CLASSIFIERS, FORMS

__all__ = ["as_data", "check_form", "refusal"]

CLOSE = 1e-12


def as_data(classifier: Any, rows: Any) -> Any:
    """The record of `FORMS` that gives the probabilities of a fitted classifier, on these rows as it does (1e-12), with
    class 0, 1, ... in its columns; None where there is none."""
    if not np.array_equal(classifier.classes_, np.arange(len(classifier.classes_))):
        return None
    for place in FORMS.values():
        form = load(place).of(classifier)
        if form is not None:
            given, found = classifier.predict_proba(rows), form.probabilities(rows)
            return form if given.shape == found.shape and np.abs(given - found).max() <= CLOSE else None
    return None


def check_form(form: Any, features: int, classes: int) -> None:
    """ModelError unless this is a record of `FORMS` for so many features and classes."""
    if not any(type(form) is load(place) for place in FORMS.values()):
        raise ModelError("grades_ is missing, or no classifier.")
    if (form.n_features, form.n_classes) != (features, classes):
        raise ModelError(
            f"grades_ is a classifier of {form.n_features} features into {form.n_classes} classes, not of {features} "
            f"into {classes}."
        )


def refusal(classifier: Any) -> ModelError:
    """Why a ranker by this classifier cannot be saved."""
    return ModelError(
        f"This McRanker cannot be saved because its classifier, a {type(classifier).__name__}, cannot be told as plain "
        f"arrays; {' and '.join(CLASSIFIERS)} can (trees that split by numbers, one softmax of all classes). Fit one "
        "of these, or keep the ranker by joblib, for readers who trust the file."
    )
