"""How far a variable goes by what one row leaves it, where it has no limit of its own."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Floats

__all__ = ["implied_reach"]

CARE = 1.0 + 1e-9
"""Limits are worked out in double precision, and taken a little wider."""


def implied_reach(matrix: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats) -> Floats:
    """(n,) at least |x[j]| of every x with row_lower <= matrix x <= row_upper and lower <= x <= upper, infinite where
    neither the limits of x[j] nor a row with those of all others hold it.

    >>> none = np.full(2, np.inf)
    >>> implied_reach(csr_array([[1.0, 2.0]]), np.array([-np.inf]), np.array([4.0]), np.zeros(2), none).round(6)
    array([4., 2.])
    """
    row = np.repeat(np.arange(row_lower.size), np.diff(matrix.indptr))
    column, weight = matrix.indices, matrix.data
    lowest, highest = lower.copy(), upper.copy()
    held = weight != 0.0
    row, column, weight = row[held], column[held], weight[held]
    for sign, limit in ((1.0, row_upper), (-1.0, -row_lower)):
        # sign * weight x <= limit: what the others take at least leaves room for so much.
        part = sign * weight
        least = part * np.where(part > 0.0, lower[column], upper[column])
        endless = ~np.isfinite(least)
        finite = np.where(endless, 0.0, least)
        count = np.bincount(row, endless, limit.size)
        total = np.bincount(row, finite, limit.size)
        size = np.bincount(row, np.abs(finite), limit.size)
        known = np.isfinite(limit[row]) & (count[row] - endless == 0)
        room = (limit[row] - (total[row] - finite) + (CARE - 1.0) * (size[row] + np.abs(limit[row])))[known]
        at, by = column[known], part[known]
        np.minimum.at(highest, at[by > 0.0], (room / by)[by > 0.0])
        np.maximum.at(lowest, at[by < 0.0], (room / by)[by < 0.0])
    return np.asarray(np.maximum(np.abs(lowest), np.abs(highest)) * CARE)
