"""Determinants in integers: no rounding, and no fractions on the way.

Bareiss: in Gaussian elimination by cross-multiplication every entry after step k is a minor of order k + 1, once it is
divided by the pivot before; so that division leaves no rest [Bareiss, 1968].

>>> determinant([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
2
>>> determinant([[0.5]])
Fraction(1, 2)
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np

__all__ = ["determinant", "exactly", "rank"]


def exactly(value: Any) -> int | Fraction:
    """The number itself: an int where it is whole."""
    number = Fraction(value.item() if isinstance(value, np.generic) else value)
    return int(number) if number.denominator == 1 else number


def determinant(matrix: Any) -> int | Fraction:
    """The determinant of a square matrix (rows of numbers), exactly."""
    rows, units = _whole_rows(matrix)
    sign, previous, size = 1, 1, len(rows)
    for step in range(size - 1):
        pivot = next((row for row in range(step, size) if rows[row][step]), None)
        if pivot is None:
            return 0
        if pivot != step:
            rows[step], rows[pivot], sign = rows[pivot], rows[step], -sign
        _eliminate(rows, step, step, previous)
        previous = rows[step][step]
    return exactly(Fraction(sign * rows[-1][-1], prod(units))) if size else 1


def rank(matrix: Any) -> int:
    """The rank of a matrix (rows of numbers), exactly."""
    rows, _ = _whole_rows(matrix)
    found, previous = 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in range(found, len(rows)) if rows[row][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        _eliminate(rows, found, column, previous)
        previous = rows[found][column]
        found += 1
    return found


def _eliminate(rows: list[list[int]], place: int, column: int, previous: int) -> None:
    top = rows[place]
    pivot = top[column]
    for row in rows[place + 1 :]:
        factor = row[column]
        if not factor and pivot == previous:  # nothing changes, as in most rows of a sparse matrix
            continue
        for j in range(column, len(row)):
            row[j] = (row[j] * pivot - factor * top[j]) // previous


def _whole_rows(matrix: Any) -> tuple[list[list[int]], list[int]]:
    """The rows multiplied by their units, which make them whole, and the units."""
    exact = [[exactly(value) for value in row] for row in matrix]
    units = [lcm(*(Fraction(value).denominator for value in row)) for row in exact]
    return [[int(value * unit) for value in row] for row, unit in zip(exact, units, strict=True)], units
