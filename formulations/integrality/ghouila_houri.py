"""All sets of rows: Ghouila-Houri's criterion.

A matrix is totally unimodular if and only if every set R of its rows has signs ±1 with which the rows of R add up to
-1, 0 or 1 in every column [Ghouila-Houri, 1962]. With m rows there are 3^m signed sets: this decides small m, for any
number of columns. If a smallest set R has no such signs, then a smallest set of columns C for which it still has none
gives a square submatrix R × C of determinant ±2 with no smaller one in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, frozen
from formulations.integrality.evidence import Signings, Signs

MOST_ROWS = 10
CHUNK = 2_000_000


def enumerate_signings(matrix: Signs) -> Signings | tuple[list[int], list[int]]:
    """Signs for all sets of rows, or rows and columns of a smallest submatrix that has none. 3^rows steps."""
    count = matrix.shape[0]
    signed = _sign_vectors(count)
    good = _equitable(signed, matrix)
    signs = np.zeros((2**count, count), dtype=np.int8)
    known = np.zeros(2**count, dtype=np.bool_)
    index = (signed[good] != 0) @ (1 << np.arange(count))
    signs[index] = signed[good]
    known[index] = True
    if known.all():
        return Signings(frozen(signs))
    sets = np.flatnonzero(~known)
    size = np.array([int(number).bit_count() for number in sets])
    rows = [row for row in range(count) if int(sets[size.argmin()]) >> row & 1]
    return rows, _minimal_columns(matrix[rows])


def _sign_vectors(count: int) -> NDArray[np.int8]:
    """All vectors of -1, 0, 1 whose first entry other than 0, from the right, is 1; and the zero vector."""
    sets = np.zeros((1, 0), dtype=np.int8)
    for _ in range(count):
        zero, one = (np.column_stack([sets, np.full(len(sets), value, dtype=np.int8)]) for value in (0, 1))
        minus = np.column_stack([sets, np.full(len(sets), -1, dtype=np.int8)])[1:]  # not after zeros only
        sets = np.concatenate([zero, one, minus])
    return sets


def _equitable(signed: NDArray[np.int8], matrix: Signs) -> Bools:
    """Which signed sets of rows add up to -1, 0 or 1 in every column."""
    good = np.ones(len(signed), dtype=np.bool_)
    entries = matrix.astype(np.float32)
    width = max(1, CHUNK // len(signed))
    for start in range(0, matrix.shape[1], width):
        left = np.flatnonzero(good)
        sums = signed[left].astype(np.float32) @ entries[:, start : start + width]
        good[left] = (np.abs(sums) <= 1).all(axis=1)
    return good


def _minimal_columns(matrix: Signs) -> list[int]:
    """A smallest set of columns for which all rows together still have no signs."""
    count = matrix.shape[0]
    signs = 1 - 2 * ((np.arange(2 ** (count - 1))[:, None] >> np.arange(count)) & 1)
    broken = np.abs(signs @ matrix.astype(np.int64)) > 1
    times = broken.sum(axis=1)
    needed = []
    for column in range(matrix.shape[1]):
        if (times > broken[:, column]).all():
            times = times - broken[:, column]
        else:
            needed.append(column)
    return needed
