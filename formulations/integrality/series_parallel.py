"""What may be left out of a matrix before asking whether it is totally unimodular.

A row or column with at most one entry, or equal to another one up to sign, changes nothing (one expands the determinant
along it, or finds it 0); nor do blocks that share no rows and columns have more determinants than products of their
own. A matrix of which nothing remains is called series-parallel [Walter and Truemper, 2013].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Bools, Ints, frozen
from formulations.integrality.evidence import Removal, Signs

__all__ = ["components", "reduced"]


def reduced(matrix: Signs) -> tuple[list[Removal], Ints, Ints]:
    """What is left out, in order, and the rows and columns that remain."""
    removals: list[Removal] = []
    rows, columns = np.arange(matrix.shape[0]), np.arange(matrix.shape[1])
    idle = 0
    axis = 1
    while idle < 2 and rows.size and columns.size:
        current = matrix[np.ix_(rows, columns)]
        lines, names = (current.T, columns) if axis else (current, rows)
        dropped, partner = _spare(lines)
        if dropped.any():
            idle = 0
            removals.append(
                Removal(axis, frozen(names[dropped]), frozen(np.where(partner < 0, -1, names[partner])[dropped]))
            )
            rows, columns = (rows, columns[~dropped]) if axis else (rows[~dropped], columns)
        else:
            idle += 1
        axis = 1 - axis
    return removals, rows, columns


def _spare(lines: NDArray[np.int8]) -> tuple[Bools, Ints]:
    """Which lines have one entry at most or repeat an earlier one up to sign, and which one (-1: none)."""
    count, width = lines.shape
    weights = np.random.default_rng(0).integers(1, 2**40, width).astype(np.float64)
    key = np.abs(lines.astype(np.float64) @ weights)  # whole and below 2^53: exact, whatever the order of summing
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    partner = first[group].astype(np.int64)
    twin = lines[partner]
    repeats = (partner != np.arange(count)) & ((lines == twin).all(axis=1) | (lines == -twin).all(axis=1))
    few = np.count_nonzero(lines, axis=1) <= 1
    return few | repeats, np.where(few, -1, partner)


def components(matrix: Signs) -> list[tuple[Ints, Ints]]:
    """Rows and columns of each block."""
    rows, columns = matrix.shape
    held = np.argwhere(matrix)
    graph = csr_array((np.ones(len(held)), (held[:, 0], rows + held[:, 1])), (rows + columns, rows + columns))
    count, label = connected_components(graph, directed=False)
    return [(np.flatnonzero(label[:rows] == block), np.flatnonzero(label[rows:] == block)) for block in range(count)]
