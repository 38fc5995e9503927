"""Decimal numbers in bytes, read by compiled code and correctly rounded, as Python's `float` does.

* a mantissa below 2^53 and a power of ten up to 22 are exact, so one product or quotient rounds once [Clinger 1990]
* else the product of mantissa and power is formed as a sum of two doubles, with a relative error below 2^-98; where
  that error could change the rounding, Python's `float` decides
"""

from fractions import Fraction
from functools import cache
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import compiled

Floats = NDArray[np.float64]
Bytes = NDArray[Any]  # of uint8

TEXT = nb.types.Array(nb.uint8, 1, "C", readonly=True)
TABLE = nb.types.Array(nb.float64, 1, "C", readonly=True)
LIMIT = 250  # powers of ten beyond it come near the ends of the range of doubles, where the error bound fails
DIGITS = 18  # of a mantissa in int64
EXACT, HARD, NONE = 0, 1, 2

PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57


@cache
def powers_of_ten() -> tuple[Floats, Floats]:
    """Doubles high, low (2 LIMIT + 1,) whose sum is 10^e at index LIMIT + e, to a relative error of 2^-106."""
    exact = [Fraction(10) ** e for e in range(-LIMIT, LIMIT + 1)]
    high = np.array([float(power) for power in exact])
    low = np.array([float(power - Fraction(float(power))) for power in exact])
    for table in (high, low):
        table.setflags(write=False)
    return high, low


@compiled(nb.types.Tuple((nb.float64, nb.boolean))(nb.int64, nb.int64, TABLE, TABLE))
def scaled(mantissa: int, exponent: int, high: Floats, low: Floats) -> tuple[float, bool]:
    """mantissa · 10^exponent for 0 < mantissa < 10^18, and whether it is sure to be correctly rounded."""
    if mantissa < 1 << 53 and -22 <= exponent <= 22:
        if exponent < 0:
            return mantissa / high[LIMIT - exponent], True
        return mantissa * high[LIMIT + exponent], True
    if not -LIMIT <= exponent <= LIMIT:
        return 0.0, False
    m = np.float64(mantissa)
    rest = np.float64(mantissa - np.int64(m))
    p = high[LIMIT + exponent]
    product = m * p
    # Dekker's product: halves of 26 bits multiply exactly, so `error` is what rounding took from m * p.
    split = 134217729.0 * m
    m1 = split - (split - m)
    m2 = m - m1
    split = 134217729.0 * p
    p1 = split - (split - p)
    p2 = p - p1
    error = ((m1 * p1 - product) + m1 * p2 + m2 * p1) + m2 * p2
    error += m * low[LIMIT + exponent] + rest * p
    value = product + error
    tail = error - (value - product)
    slack = value * 2.0**-98
    return value, value + (tail + slack) == value and value + (tail - slack) == value


@compiled(nb.types.Tuple((nb.float64, nb.int64, nb.int64))(TEXT, nb.int64, TABLE, TABLE))
def number_at(text: Bytes, at: int, high: Floats, low: Floats) -> tuple[float, int, int]:
    """The decimal number that begins at `at`, where it ends, and whether it is EXACT, HARD (for Python) or NONE at all.

    The text ends with a byte that belongs to no number.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    mantissa, exponent, digits = 0, 0, 0
    seen, point = False, False
    while True:
        byte = text[at]
        if ZERO <= byte <= NINE:
            seen = True
            if digits > 0 or byte != ZERO:
                digits += 1
            if digits <= DIGITS:
                mantissa = 10 * mantissa + (byte - ZERO)
                exponent -= point
        elif byte == POINT and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return 0.0, at, NONE
    if text[at] == 69 or text[at] == 101:  # E, e
        at += 1
        down = text[at] == MINUS
        if down or text[at] == PLUS:
            at += 1
        if not ZERO <= text[at] <= NINE:
            return 0.0, at, NONE
        power = 0
        while ZERO <= text[at] <= NINE:
            if power < 99999:
                power = 10 * power + (text[at] - ZERO)
            at += 1
        exponent += -power if down else power
    if digits > DIGITS:
        return 0.0, at, HARD
    if mantissa == 0:
        return (-0.0 if negative else 0.0), at, EXACT
    value, sure = scaled(mantissa, exponent, high, low)
    return (-value if negative else value), at, (EXACT if sure else HARD)
