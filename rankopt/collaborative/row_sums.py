"""Sums of one number an entry over rows and over columns, without a temporary an entry."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled

__all__ = ["column_sums", "row_sums", "squared_loss"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


def row_sums(bounds: Ints, values: Floats) -> Floats:
    """(rows,) the sum over the entries of each row, one after the other."""
    found = np.zeros(bounds.size - 1)
    _by_row(bounds, values, found)
    return found


def column_sums(columns: Shorts, values: Floats, size: int) -> Floats:
    """(size,) the sum over the entries of each column, in the order of the entries."""
    found = np.zeros(size)
    _by_column(columns, values, found)
    return found


def squared_loss(bounds: Ints, values: Floats, weights: Floats, slopes: Floats) -> tuple[float, Floats]:
    """Σ (w/2)(f - y)² of scores f, and (rows,) -Σ (ψ²/(2w) + ψ y), ψ = w (f - y). slopes: f, and ψ afterwards."""
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


@compiled(nb.float64(READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS))
def _squared(bounds: Ints, values: Floats, weights: Floats, slopes: Floats, heights: Floats) -> float:
    loss = 0.0
    for i in range(bounds.size - 1):
        square, product = 0.0, 0.0
        for e in range(bounds[i], bounds[i + 1]):
            away = slopes[e] - values[e]
            w = weights[e] if weights.size else 1.0
            slopes[e] = w * away
            square += 0.5 * w * away * away
            product += w * away * values[e]
        heights[i] = -square - product
        loss += square
    return loss
