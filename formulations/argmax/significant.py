"""Position weights without those that are nothing beside the largest: products with them would lose their digits.

Steps of subnormal weights multiply to zero, and angles between steps could no longer be told. A weight below 2⁻⁴⁰⁰ of
the largest in its query is taken as zero; what that can cost is added to the bound.
"""

import numpy as np

from formulations.arrays import Floats, Ints

__all__ = ["significant"]

NOTHING = 2.0**-400


def significant(weights: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """The weights, small ones zero, and for each query the sum of what was left out; weights fall in each query."""
    largest = np.maximum(np.abs(weights[offsets[:-1]]), np.abs(weights[offsets[1:] - 1]))
    size = np.abs(weights)
    small = size < NOTHING * np.repeat(largest, np.diff(offsets))
    lost = np.add.reduceat(np.where(small, size, 0.0), offsets[:-1])
    return np.where(small, 0.0, weights) if lost.any() else weights, lost
