"""Sums of one number an entry over rows and over columns, without a temporary an entry, and what rounding takes."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled

__all__ = ["UNIT", "add_columns", "add_sizes", "column_sums", "row_sums", "squared_loss"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

UNIT = 2.0**-53
"""What rounding takes from a number at most, as a part of it; a sum of n terms loses n times that of their sizes."""


def row_sums(bounds: Ints, values: Floats) -> Floats:
    """(rows,) the sum over the entries of each row, one after the other."""
    found = np.zeros(bounds.size - 1)
    _by_row(bounds, values, found)
    return found


def column_sums(columns: Shorts, values: Floats, size: int) -> Floats:
    """(size,) the sum over the entries of each column, in the order of the entries."""
    found = np.zeros(size)
    add_columns(columns, values, found)
    return found


def add_columns(columns: Shorts, values: Floats, found: Floats) -> None:
    """The same added to `found`, so that entries may come some at a time."""
    _by_column(columns, values, found)


def add_sizes(bounds: Ints, columns: Shorts, values: Floats, found: Floats) -> Floats:
    """(rows,) the sum of |values| over the entries of each row; that of each column is added to `found`."""
    rows = np.zeros(bounds.size - 1)
    _sized(bounds, columns, values, rows, found)
    return rows


def squared_loss(bounds: Ints, values: Floats, weights: Floats, slopes: Floats) -> tuple[float, Floats]:
    """Σ (w/2)(f - y)² of scores f, and (rows,) -Σ (ψ²/(2w) + ψ y), ψ = w (f - y), rounded down by more than the sum may
    have lost. slopes: f, and ψ afterwards."""
    heights = np.zeros(bounds.size - 1)
    return float(_squared(bounds, values, weights, slopes, heights)), heights


@compiled(nb.void(READ_INTS, READ_FLOATS, FLOATS))
def _by_row(bounds: Ints, values: Floats, found: Floats) -> None:
    for i in range(bounds.size - 1):
        total = 0.0
        for e in range(bounds[i], bounds[i + 1]):
            total += values[e]
        found[i] = total


@compiled(nb.void(READ_SHORTS, READ_FLOATS, FLOATS))
def _by_column(columns: Shorts, values: Floats, found: Floats) -> None:
    for e in range(columns.size):
        found[columns[e]] += values[e]


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, FLOATS, FLOATS))
def _sized(bounds: Ints, columns: Shorts, values: Floats, rows: Floats, found: Floats) -> None:
    for i in range(bounds.size - 1):
        total = 0.0
        for e in range(bounds[i], bounds[i + 1]):
            total += abs(values[e])
            found[columns[e]] += abs(values[e])
        rows[i] = total


@compiled(nb.float64(READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS))
def _squared(bounds: Ints, values: Floats, weights: Floats, slopes: Floats, heights: Floats) -> float:
    loss = 0.0
    for i in range(bounds.size - 1):
        square, product, size = 0.0, 0.0, 0.0
        for e in range(bounds[i], bounds[i + 1]):
            away = slopes[e] - values[e]
            w = weights[e] if weights.size else 1.0
            slopes[e] = w * away
            square += 0.5 * w * away * away
            product += w * away * values[e]
            size += abs(w * away * values[e])
        heights[i] = -square - product - UNIT * (bounds[i + 1] - bounds[i] + 8) * (square + size)
        loss += square
    return loss
