"""Sums rounded outward: value <= optimum <= bound for the exact numbers of a problem.

The rounding error of a sum or product of two doubles is a double too [Dekker 1971]. These terms are added exactly
(`math.fsum`) and rounded once, outward. Where that is too slow, each sum is a pair of doubles, and the error of the
pair, about 1e-30 of the terms [Ogita, Rump and Oishi 2005], widens the claim. Integers are exact.

>>> above([0.1, 0.2]), below([0.1, 0.2]), above([1.0, 2.0])
(0.30000000000000004, 0.3, 3.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, isfinite, nextafter

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.arrays import Floats

UNIT = 2.0**-53

SPLIT = 2.0**27 + 1.0

TINY = 2.0**-900  # below this a product drops digits that no double holds
DROPPED = 2.0**-1040  # upper bound of the digits that are dropped
MOST_TERMS = 400  # longer sums of a row are taken in double precision, and what that may lose is counted


@dataclass(frozen=True, eq=False)
class Pair:
    """Sums high + low, elementwise, high the nearest double; `off` bounds their error."""

    high: Floats
    low: Floats
    off: Floats


def above(*terms: ArrayLike) -> float:
    """The least double that is not below the sum of all terms; infinite if unknown."""
    return 0.0 - below(*(-np.asarray(part, dtype=np.float64) for part in terms))


def below(*terms: ArrayLike) -> float:
    """The greatest double that is not above the sum of all terms; minus infinity if unknown."""
    every = [term for part in terms for term in np.asarray(part, dtype=np.float64).ravel().tolist()]
    try:
        near = fsum(every)
        over = fsum([*every, -near]) < 0.0 if isfinite(near) else False
    except (OverflowError, ValueError):
        return -inf
    if not isfinite(near):
        return -inf
    return (nextafter(near, -inf) if over else near) + 0.0


def products(left: Floats, right: Floats) -> tuple[Floats, Floats, float]:
    """Terms and digits with Σ left · right = Σ terms + Σ digits, up to the error bound returned third."""
    with np.errstate(all="ignore"):
        high, low = multiplied(left, right)
    return high, low, DROPPED * float(((np.abs(high) < TINY) & (left != 0.0) & (right != 0.0)).sum())


def added(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The sums, and their rounding errors."""
    total = left + right
    moved = total - left
    return total, (left - (total - moved)) + (right - moved)


def difference(start: Floats, matrix: csr_array, vector: Floats, rest: Floats | float = 0.0) -> Pair:
    """start + rest - matrix @ vector, as pairs."""
    lengths = np.diff(matrix.indptr)
    longest = int(lengths.max(initial=0))
    with np.errstate(all="ignore"):
        size = np.abs(start) + np.abs(rest) + abs(matrix) @ np.abs(vector)
        if longest > MOST_TERMS:
            return Pair(start - matrix @ vector, np.zeros(start.size), UNIT * (2.0 * longest + 8.0) * size)
        high, low = added(start, np.broadcast_to(np.asarray(rest, dtype=np.float64), start.shape))
        exact, tiny = np.ones(start.size, dtype=np.bool_), np.zeros(start.size)
        for term in range(longest):
            rows = np.flatnonzero(lengths > term)
            entry = matrix.indptr[rows] + term
            weight, factor = matrix.data[entry], vector[matrix.indices[entry]]
            product, digits = multiplied(weight, factor)
            high[rows], left = added(high[rows], -product)
            low[rows] += left - digits
            exact[rows] &= (left == 0.0) & (digits == 0.0)
            tiny[rows] += np.where((np.abs(product) < TINY) & (weight != 0.0) & (factor != 0.0), DROPPED, 0.0)
        high, low = added(high, low)
    return Pair(high, low, np.where(exact, 0.0, (UNIT * (2.0 * longest + 8.0)) ** 2 * size) + tiny)


def weighted(weight: Floats, pair: Pair) -> tuple[list[Floats], float]:
    """Terms of Σ weight · pair, and a bound on their error."""
    high, high_digits, lost = products(weight, pair.high)
    low, low_digits, lost_too = products(weight, pair.low)
    off = float((np.abs(weight) * pair.off).sum()) * (1.0 + 1e-9) + lost + lost_too
    return [high, high_digits, low, low_digits], off


def multiplied(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The products, and their rounding errors: of two numbers, each split in halves of 26 binary digits."""
    product = left * right
    moved = SPLIT * left
    a = moved - (moved - left)
    b = left - a
    moved = SPLIT * right
    c = moved - (moved - right)
    d = right - c
    return product, b * d - (((product - a * c) - b * c) - a * d)
