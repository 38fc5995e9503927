"""Determinants and ranks without rounding: Gaussian elimination of sparse rows in integers and fractions.

The shortest row is eliminated first, so lines with one entry are expanded, and cycles (two entries a line) stay sparse.

>>> determinant(entries_of(csr_array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])), 3)
2
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Number: TypeAlias = int | Fraction
Entries: TypeAlias = tuple[tuple[int, int, Number], ...]  # entries other than 0: row, column and value, row by row


def exactly(value: Any) -> Number:
    """The number itself: an int where it is integral."""
    number = Fraction(value.item() if isinstance(value, np.generic) else value)
    return int(number) if number.denominator == 1 else number


def entries_of(matrix: csr_array) -> Entries:
    """The entries of a sparse matrix, exactly."""
    held = matrix.tocoo()
    cells = zip(*(part.tolist() for part in held.coords), held.data.tolist(), strict=True)
    return tuple(sorted((i, j, exactly(value)) for i, j, value in cells if value))


def determinant(entries: Entries, size: int) -> Number:
    """The determinant of the square matrix with these entries."""
    pivots = list(_pivots(entries))
    if len(pivots) < size:
        return 0
    return exactly(_sign({row: column for row, column, _ in pivots}) * prod(value for _, _, value in pivots))


def rank(entries: Entries) -> int:
    """The rank of a matrix with these entries."""
    return sum(1 for _ in _pivots(entries))


def pivoted(matrix: NDArray[np.int8], row: int, column: int) -> NDArray[np.int8]:
    """The matrix after a pivot on an entry ±1, up to the signs of that row and column: equally totally unimodular."""
    pivot = matrix[row, column]
    result: NDArray[np.int8] = matrix - pivot * np.outer(matrix[:, column], matrix[row])
    result[row], result[:, column], result[row, column] = matrix[row], matrix[:, column], -pivot
    return result


def _pivots(entries: Entries) -> Iterator[tuple[int, int, Number]]:
    """Row, column and value of each pivot of the elimination."""
    rows: dict[int, dict[int, Number]] = {}
    columns: dict[int, set[int]] = {}
    for i, j, value in entries:
        rows.setdefault(i, {})[j] = value
        columns.setdefault(j, set()).add(i)
    while rows:
        row = min(rows, key=lambda i: len(rows[i]))
        line = rows.pop(row)
        if not line:
            continue
        column = min(line, key=lambda j: len(columns[j]))
        pivot = line.pop(column)
        yield row, column, pivot
        for j in line:
            columns[j].discard(row)
        for other in columns.pop(column) - {row}:
            changed = rows[other]
            factor = changed.pop(column)
            factor = factor * pivot if pivot in (1, -1) else Fraction(factor) / pivot
            for j, value in line.items():
                entry = changed.get(j, 0) - factor * value
                if entry:
                    changed[j] = entry
                    columns[j].add(other)
                elif j in changed:
                    del changed[j]
                    columns[j].discard(other)


def _sign(image: dict[int, int]) -> int:
    """1 for an even permutation, -1 for an odd one."""
    sign, seen = 1, set[int]()
    for index in image:
        length = 0
        while index not in seen:
            seen.add(index)
            index = image[index]
            length += 1
        if length and length % 2 == 0:
            sign = -sign
    return sign
