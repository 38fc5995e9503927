"""Grades as classes, and the expectation that their probabilities come to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXPECTED = ("grade", "gain")

MOST = 31
"""Grades beyond which they are numbers, not classes: a boosted classifier grows a tree a round for each."""


def classes_of(grades: Floats) -> tuple[Floats, Ints]:
    """The distinct grades (K,), rising, and for each document the place of its own. DataError unless 2 <= K <= MOST."""
    if grades.size < 2:
        raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
    classes, places = np.unique(grades, return_inverse=True)
    if classes.size == 1:
        raise DataError(
            f"training cannot learn an order because all documents have the grade {classes[0]:g}; give two grades"
        )
    if classes.size > MOST:
        raise DataError(
            f"McRanker cannot take {classes.size} distinct grades as classes, {MOST} at most; put them into a few bins "
            "(`np.digitize(y, bins)`), or fit RegressionRanker or BoostedRanker, which take grades as numbers"
        )
    return classes, places.astype(np.int64)


def values_of(classes: Floats, expected: str) -> Floats:
    """(K,) what a document of each class is worth: its grade y, or the gain 2^y - 1. DataError where that overflows."""
    if expected == "grade":
        return classes
    with np.errstate(over="ignore"):
        values = 2.0**classes - 1.0
    if not np.isfinite(values).all():
        raise DataError(
            f"the gain 2^{classes[-1]:g} - 1 leaves double precision; use expected='grade', or lower grades"
        )
    return np.asarray(values)


def expectation(probabilities: Any, known: Any, values: Floats) -> Floats:
    """(N,) Σ_k P(k) value_k, one class after the other; known: the place of the class of each column."""
    total = np.zeros(len(probabilities))
    for column, place in enumerate(np.asarray(known).tolist()):
        total += probabilities[:, column] * values[place]
    return total
