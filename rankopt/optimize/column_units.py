"""Units for columns whose squares would leave double precision: powers of two, which cost no digit.

>>> column_units(np.array([[1.0, 3e200], [2.0, 0.0]]))
array([1.00000000e+000, 3.26605044e-201])
>>> column_units(np.array([[1.0, 3e20], [2.0, 0.0]])) is None
True
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.scorers.linear import PART

__all__ = ["column_units", "in_units", "largest_magnitudes"]

Floats = NDArray[np.float64]

SAFE = 300
"""Magnitudes of 2**-SAFE to 2**SAFE have squares that can be summed."""

DEEPEST = 1000
"""A column below 2**-DEEPEST would need weights beyond double precision; it counts as constant, as it did."""


def column_units(features: Any) -> Floats | None:
    """(d,) what to multiply the columns with, 1 for those that are well as they are; None where all are.

    features: dense or CSR.
    """
    largest = np.frexp(largest_magnitudes(features))[1]
    empty = largest < -DEEPEST  # columns of zeros among them
    if ((np.abs(largest) <= SAFE) | empty).all():
        return None
    return np.ldexp(1.0, np.where((np.abs(largest) <= SAFE) | empty, 0, -largest))


def in_units(features: Any, units: Floats) -> Any:
    """A copy of the features with their columns multiplied."""
    if hasattr(features, "tocsr"):
        scaled = features.astype(np.float64)
        scaled.data = scaled.data * units[scaled.indices]
        return scaled
    return features * units


def largest_magnitudes(features: Any) -> Floats:
    """(d,) the largest magnitude of each column."""
    largest = np.zeros(features.shape[1])
    if hasattr(features, "tocsr"):
        for start in range(0, features.data.size, PART << 6):
            part = slice(start, start + (PART << 6))
            np.maximum.at(largest, features.indices[part], np.abs(features.data[part]))
        return largest
    for start in range(0, features.shape[0], PART):
        np.maximum(largest, np.abs(features[start : start + PART]).max(axis=0), out=largest)
    return largest
