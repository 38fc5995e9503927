"""Determinants in integers of submatrices with few entries, of any size where they come down to cycles.

A line with one entry is expanded. Where every line has two entries, rows and columns form cycles: one of k rows has the
determinant ∏a - (-1)^k ∏b, a and b its entries by turns. What is left is written out.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from scipy.sparse import csr_array

from formulations.integrality.determinant import determinant, exactly

__all__ = ["Entries", "entries_of", "sparse_determinant"]

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


def _sign(image: dict[int, int], places: Iterable[int]) -> int:
    """1 for an even permutation, -1 for an odd one."""
    sign, seen = 1, set[int]()
    for place in places:
        length = 0
        while place not in seen:
            seen.add(place)
            place = image[place]
            length += 1
        if length and length % 2 == 0:
            sign = -sign
    return sign
