"""Determinants in integers: no rounding, and no fractions on the way.

Bareiss: in Gaussian elimination by cross-multiplication every entry after step k is a minor of order k + 1, once it is
divided by the pivot before; so that division leaves no rest [Bareiss, 1968].

>>> determinant([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
2
>>> determinant([[0.5]])
Fraction(1, 2)

Determinants in integers of submatrices with few entries, of any size where they come down to cycles.

A line with one entry is expanded. Where every line has two entries, rows and columns form cycles: one of k rows has the
determinant ∏a - (-1)^k ∏b, a and b its entries by turns. What is left is written out.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array


def exactly(value: Any) -> int | Fraction:
    """The number itself: an int where it is integral."""
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


def _eliminate(rows: list[list[int]], index: int, column: int, previous: int) -> None:
    top = rows[index]
    pivot = top[column]
    for row in rows[index + 1 :]:
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


Number: TypeAlias = int | Fraction
Entries: TypeAlias = tuple[tuple[int, int, Number], ...]
"""Entries other than 0: row, column and value, row by row."""

Lines: TypeAlias = dict[int, dict[int, Number]]


def entries_of(matrix: csr_array) -> Entries:
    """The entries of a sparse matrix, exactly."""
    held = matrix.tocoo()
    cells = zip(*(part.tolist() for part in held.coords), held.data.tolist(), strict=True)
    return tuple(sorted((i, j, exactly(value)) for i, j, value in cells if value))


def sparse_determinant(entries: Entries, size: int) -> Number:
    """The determinant of the square matrix with these entries."""
    rows: Lines = {i: {} for i in range(size)}
    columns: Lines = {j: {} for j in range(size)}
    for i, j, value in entries:
        rows[i][j] = columns[j][i] = value
    product: Number = 1
    pairs: list[tuple[int, int]] = []  # row and column taken together: their permutation gives the sign
    short = [(rows, columns, i) for i in rows if len(rows[i]) < 2]
    short += [(columns, rows, j) for j in columns if len(columns[j]) < 2]
    while short:
        own, others, line = short.pop()
        if line not in own:
            continue
        if not own[line]:
            return 0
        ((across, value),) = own.pop(line).items()
        product *= value
        pairs.append((line, across) if own is rows else (across, line))
        for crossed in others.pop(across):
            if crossed != line:
                del own[crossed][across]
                if len(own[crossed]) < 2:
                    short.append((own, others, crossed))
    if all(len(line) == 2 for line in (*rows.values(), *columns.values())):
        while rows:
            product *= _cycle(rows, columns, pairs)
    else:
        left, across_ = sorted(rows), sorted(columns)
        pairs += zip(left, across_, strict=True)
        product *= determinant([[rows[i].get(j, 0) for j in across_] for i in left])
    return _sign(dict(pairs), range(size)) * product


def _cycle(rows: Lines, columns: Lines, pairs: list[tuple[int, int]]) -> Number:
    """Take one cycle out; its determinant, rows paired with columns as they are walked."""
    start = row = next(iter(rows))
    column = next(iter(rows[row]))
    straight: Number = 1
    turned: Number = -1
    while True:
        straight, turned = straight * rows[row][column], -turned
        pairs.append((row, column))
        following = next(i for i in columns[column] if i != row)
        turned *= rows[following][column]
        next_column = next(j for j in rows[following] if j != column)
        if row != start:
            del rows[row]
        del columns[column]
        row, column = following, next_column
        if row == start:
            del rows[start]
            return straight + turned


def _sign(image: dict[int, int], permutation: Iterable[int]) -> int:
    """1 for an even permutation, -1 for an odd one."""
    sign, seen = 1, set[int]()
    for index in permutation:
        length = 0
        while index not in seen:
            seen.add(index)
            index = image[index]
            length += 1
        if length and length % 2 == 0:
            sign = -sign
    return sign
