"""Consecutive ones: interval matrices.

If the rows can be ordered so that the entries of every column are consecutive and of one sign, the matrix is totally
unimodular: it is a network matrix whose tree is a path [Fulkerson and Gross, 1965]. Only orders that are cheap to guess
are tried, as they are given and sorted; interval matrices that these miss are found as network matrices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Ints, frozen
from formulations.integrality.evidence import RowOrder

__all__ = ["consecutive_order"]


def consecutive_order(matrix: NDArray[np.int8]) -> RowOrder | None:
    """An order of the rows with the entries of each column consecutive, if one of the guesses is one."""
    if (np.abs(matrix.sum(axis=0, dtype=np.int64)) != np.count_nonzero(matrix, axis=0)).any():
        return None
    ones = matrix != 0
    for order in _guesses(ones):
        if _consecutive(ones[order]):
            return RowOrder(frozen(order))
    return None


def _guesses(ones: NDArray[np.bool_]) -> list[Ints]:
    """The given order; by the first, then the last entry of a row; by the mean place of its entries."""
    rows, columns = ones.shape
    first = ones.argmax(axis=1)
    last = columns - ones[:, ::-1].argmax(axis=1)
    mean = (ones @ np.arange(columns)) / np.maximum(ones.sum(axis=1), 1)
    orders = [np.arange(rows), np.lexsort((last, first)), np.lexsort((first, last)), np.argsort(mean, kind="stable")]
    return [np.asarray(order, dtype=np.int64) for order in orders]


def _consecutive(ones: NDArray[np.bool_]) -> bool:
    starts = ones[0].astype(np.int64) + (ones[1:] & ~ones[:-1]).sum(axis=0)
    return bool((starts <= 1).all())
