"""Σ_e r_e other[column of e] of every row: the gradient of one side of the factors, without the other's shape."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.threads import share_ranges
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["pulled"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

ENTRIES = 1 << 14
"""Entries of whole rows that one thread takes at a time."""


def pulled(bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, order: Ints | Shorts | None = None) -> Floats:
    """(rows, d): for row i the sum of slopes[e] other[columns[e]] over its entries; of slopes[order[e]] if given."""
    found = np.zeros((bounds.size - 1, other.shape[1]))
    order = np.zeros(0, dtype=np.int32) if order is None else order
    given: tuple[Any, ...] = (bounds, columns, slopes, np.ascontiguousarray(other), order)
    if columns.size and other.shape[1]:
        share_ranges(bounds, ENTRIES, lambda first, last: _pulled(*given, first, last, found))  # type: ignore[call-arg]
    return found


@compiled(
    [
        nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_TABLE, order, nb.int64, nb.int64, TABLE)
        for order in (READ_SHORTS, READ_INTS)
    ],
    reassociate=True,
)
def _pulled(
    bounds: Ints, columns: Shorts, slopes: Floats, other: Floats, order: Ints, first: int, last: int, found: Floats
) -> None:
    d = other.shape[1]
    for i in range(first, last):
        line = found[i]
        for e in range(bounds[i], bounds[i + 1]):
            factor, row = slopes[order[e] if order.size else e], other[columns[e]]
            for a in range(d):
                line[a] += factor * row[a]
