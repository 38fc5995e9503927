"""The documents of a query as they stand at t = -∞: with what every sweep begins, and what costs a short one most.

Slopes are dealt twice, by two digits of where each lies between the least and the largest, then what is out of order is
inserted: right whatever the digits are. Few documents, and slopes that crowd, are merged instead.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["FEW", "dealt", "first_order"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 40
"""Documents that are merged."""

HIGH = 32
"""Bits below the number of a document's slope, which say which document it is."""


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_INTS, FLOATS, INTS, INTS))
def first_order(scores: Floats, slopes: Floats, by_score: Ints, key: Floats, order: Ints, spare: Ints) -> None:
    """The least slope first, of equal slopes the larger score.

    by_score: the documents by falling score. key, order, spare: room for as many.
    """
    if by_score.size <= FEW or not dealt(slopes, by_score, order, spare):
        for j in range(by_score.size):
            order[j] = by_score[j]
            key[j] = -slopes[j]
        sort_falling(order, key, spare)


@compiled(nb.boolean(READ_FLOATS, READ_INTS, INTS, INTS))
def dealt(values: Floats, given: Ints, order: Ints, spare: Ints) -> bool:
    """Put some in order of rising values, equal ones as they are given; False if values crowd too much for that."""
    n = given.size
    least, largest, least_odd, largest_odd = values[0], values[0], values[n - 1], values[n - 1]
    for i in range(n // 2):
        x, y = values[2 * i], values[2 * i + 1]
        least, largest = min(least, x), max(largest, x)
        least_odd, largest_odd = min(least_odd, y), max(largest_odd, y)
    least, largest = min(least, least_odd), max(largest, largest_odd)
    digit = 6 if n < 100 else 7 if n < 300 else 8
    mask, top = (1 << digit) - 1, float((1 << (2 * digit)) - 1)
    scale = top / (largest - least) if largest > least else 0.0
    counts = np.zeros(2 << digit, np.int64)
    first, second = counts[: 1 << digit], counts[1 << digit :]
    for i in range(n):
        j = given[i]
        part = (values[j] - least) * scale
        part = part if part > 0.0 else 0.0  # no number either
        number = np.int64(part if part < top else top)
        first[number & mask] += 1
        second[number >> digit] += 1
        order[i] = number << HIGH | j
    one, two = 0, 0
    for k in range(mask + 1):
        one, first[k] = one + first[k], one
        two, second[k] = two + second[k], two
    for i in range(n):
        word = order[i]
        k = word >> HIGH & mask
        spare[first[k]] = word
        first[k] += 1
    for i in range(n):
        word = spare[i]
        k = word >> (HIGH + digit)
        order[second[k]] = word & ((1 << HIGH) - 1)
        second[k] += 1
    left = 4 * n
    for i in range(1, n):
        x = order[i]
        place = i
        while place > 0 and values[order[place - 1]] > values[x] and left > 0:
            order[place] = order[place - 1]
            place -= 1
            left -= 1
        order[place] = x
    return left > 0
