"""Σ_e r_e other[column of e] of every row: the gradient of one side of the factors, without the other's shape."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.threads import share_ranges
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["pull_by_column", "pulled", "pulled_by_column"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

ENTRIES = 1 << 14
"""Entries of whole rows that one thread takes at a time."""


def pulled(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats) -> Floats:
    """(rows, d): for row i the sum of slopes[e] other[columns[e]] over its entries."""
    found = np.zeros((bounds.size - 1, other.shape[1]))
    given = (bounds, columns, slopes, np.ascontiguousarray(other))
    if columns.size and other.shape[1]:
        share_ranges(bounds, ENTRIES, lambda first, last: _pulled(*given, first, last, found))
    return found


def pulled_by_column(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, width: int) -> Floats:
    """(width, d): for column j the sum of slopes[e] other[row of e] over its entries, in their order."""
    found = np.zeros((width, other.shape[1]))
    pull_by_column(bounds, columns, slopes, other, found)
    return found


def pull_by_column(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, found: Floats) -> None:
    """The same added to `found`, so that rows may come some at a time."""
    if columns.size and other.shape[1]:
        _pulled_by_column(bounds, columns, slopes, np.ascontiguousarray(other), found)


@compiled(
    nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_TABLE, nb.int64, nb.int64, TABLE),
    reassociate=True,
)
def _pulled(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, first: int, last: int, found: Floats) -> None:
    d = other.shape[1]
    for i in range(first, last):
        line = found[i]
        for e in range(bounds[i], bounds[i + 1]):
            factor, row = slopes[e], other[columns[e]]
            for a in range(d):
                line[a] += factor * row[a]


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_TABLE, TABLE), reassociate=True)
def _pulled_by_column(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, found: Floats) -> None:
    d = other.shape[1]
    for i in range(bounds.size - 1):
        row = other[i]
        for e in range(bounds[i], bounds[i + 1]):
            factor, line = slopes[e], found[columns[e]]
            for a in range(d):
                line[a] += factor * row[a]
