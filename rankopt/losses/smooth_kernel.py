"""The smoothed measure and its slopes, a query after the other: O(n k) exponentials, no sorting, no table of pairs."""

import math

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled

__all__ = ["smoothed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTHING = 38.0
"""exp(-38) = 3e-17: what is farther away than that changes no digit of a sum in which 1 stands."""


@compiled(nb.void(READ_FLOATS, nb.int64, nb.int64, nb.int64, FLOATS))
def _largest(scores: Floats, low: int, high: int, k: int, top: Floats) -> None:
    """top[:k]: the k largest scores of the rows low <= i < high, falling."""
    held = 0
    for i in range(low, high):
        s = scores[i]
        if held < k:
            p = held
            held += 1
        elif s > top[k - 1]:
            p = k - 1
        else:
            continue
        while p > 0 and top[p - 1] < s:
            top[p] = top[p - 1]
            p -= 1
        top[p] = s


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, nb.float64, nb.int64, nb.int64, FLOATS, FLOATS
    )
)  # fmt: skip
def smoothed(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    places: Ints,
    offsets: Ints,
    sigma: float,
    first: int,
    last: int,
    value: Floats,
    slope: Floats,
) -> None:
    """value[q] = A_q and its slopes, of the queries first <= q < last; σ = 0 is the limit, with slopes of 0.

    Places of one score are one: their discounts add up. Slopes come as zeros.
    """
    longest, most = 1, 1
    for q in range(first, last):
        longest, most = max(longest, offsets[q + 1] - offsets[q]), max(most, places[q])
    near, top = np.empty(longest), np.empty(most)
    sharp = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    for q in range(first, last):
        low, high, k = offsets[q], offsets[q + 1], places[q]
        _largest(scores, low, high, k, top)
        total, p = 0.0, 0
        while p < k:
            s, worth = top[p], 0.0
            while p < k and top[p] == s:
                worth += discount[low + p]
                p += 1
            whole, earned, same, one = 0.0, 0.0, 0, low
            for i in range(low, high):
                apart = scores[i] - s
                if apart == 0.0:
                    h = 1.0
                    same += 1
                    one = i
                else:
                    far = apart * apart * sharp
                    h = math.exp(-far) if sigma > 0.0 and far < NOTHING else 0.0
                near[i - low] = h
                whole += h
                earned += h * gain[i]
            mean = earned / whole
            total += worth * mean
            if sigma > 0.0:
                strength, pulled = worth * 2.0 * sharp / whole, 0.0
                for i in range(low, high):
                    if near[i - low] > 0.0:
                        pull = strength * (gain[i] - mean) * near[i - low] * (scores[i] - s)
                        slope[i] -= pull
                        pulled += pull
                if same == 1:
                    slope[one] += pulled
                else:
                    for i in range(low, high):
                        if scores[i] == s:
                            slope[i] += pulled / same
        value[q] = total
