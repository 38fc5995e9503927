"""From a square submatrix of determinant other than -1, 0, 1 to one in which no smaller one is left.

An entry of the adjugate is the determinant of the submatrix without one row and one column, so one inverse shows all
submatrices of the next size. When none of these will do, all signed sets of rows are gone through (Ghouila-Houri), up
to twelve rows. A cycle, two entries in each row and column, is minimal: less of it is a forest.
"""

from __future__ import annotations

import numpy as np

from formulations.integrality.confirmation_of_witness import LARGEST_ENUMERATED
from formulations.integrality.evidence import Signings, Signs
from formulations.integrality.ghouila_houri import enumerated
from formulations.integrality.series_parallel import components

__all__ = ["shrunk"]


def shrunk(matrix: Signs, rows: list[int], columns: list[int]) -> tuple[list[int], list[int], bool]:
    """Rows and columns of a submatrix that is at most as large, and whether it is known to be minimal."""
    chosen, across = np.array(rows), np.array(columns)
    while True:
        part = matrix[np.ix_(chosen, across)]
        smaller = _block(part) or _without_single_entries(part)
        if smaller is None and _is_cycle(part):
            return chosen.tolist(), across.tolist(), True
        smaller = smaller or _minor(part)
        if smaller is None and len(part) > LARGEST_ENUMERATED:
            return chosen.tolist(), across.tolist(), False
        if smaller is None:
            found = enumerated(part)
            assert not isinstance(found, Signings), "a determinant other than -1, 0, 1 allows no signs"
            return chosen[found[0]].tolist(), across[found[1]].tolist(), True
        chosen, across = chosen[smaller[0]], across[smaller[1]]


Kept = tuple[list[int], list[int]]


def _is_cycle(part: Signs) -> bool:
    return bool((np.count_nonzero(part, axis=0) == 2).all() and (np.count_nonzero(part, axis=1) == 2).all())


def _block(part: Signs) -> Kept | None:
    """A smaller block of a matrix that falls into blocks: the determinant is the product of theirs."""
    blocks = components(part)
    if len(blocks) == 1:
        return None
    sizes = [abs(np.linalg.det(part[np.ix_(*block)].astype(np.float64))) for block in blocks]
    rows, columns = blocks[int(np.argmax(sizes))]
    return rows.tolist(), columns.tolist()


def _without_single_entries(part: Signs) -> Kept | None:
    """Expanded along a row or column with one entry."""
    size = len(part)
    for axis in (0, 1):
        alone = np.flatnonzero(np.count_nonzero(part, axis=1 - axis) == 1)
        if alone.size:
            line = int(alone[0])
            other = int((part[line] if axis == 0 else part[:, line]).nonzero()[0][0])
            row, column = (line, other) if axis == 0 else (other, line)
            return [i for i in range(size) if i != row], [j for j in range(size) if j != column]
    return None


def _minor(part: Signs) -> Kept | None:
    """All but a row and a column, if some such determinant is not -1, 0 or 1."""
    size = len(part)
    entries = part.astype(np.float64)
    adjugate = np.abs(np.linalg.inv(entries) * np.linalg.det(entries))
    column, row = np.unravel_index(int(adjugate.argmax()), adjugate.shape)
    if adjugate[column, row] < 1.5:
        return None
    return [i for i in range(size) if i != row], [j for j in range(size) if j != column]
