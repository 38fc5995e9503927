"""Reductions of a matrix that preserve total unimodularity: series-parallel rows and columns, blocks, 2-sums.

A row or column with at most one entry, or equal to another one up to sign, changes nothing (one expands the determinant
along it, or finds it 0); nor do blocks that share no rows and columns have more determinants than products of their
own. A matrix of which nothing remains is called series-parallel [Walter and Truemper, 2013].

A 2-sum joins two matrices in one row and one column:

    M = | A  a b |     R₁ rows, C₁ and C₂ columns; a is a column of A's height, b a row of B's width
        | 0   B  |     R₂ rows

M is totally unimodular if and only if [A a] and [b; B] are, which are parts of M itself: R₁ × C₁ + one column c of C₂,
and R₂ + one row r of R₁ × C₂, where M[r, c] = ±1 [Seymour, 1980; Schrijver, Theory of Linear and Integer Programming,
19.4]. To find such R₁ and C₁ fix r, c and let N = M - M[·, c] M[r, ·] / M[r, c]. A row i in R₁ draws all j with
N[i, j] ≠ 0 into C₁, a column j in C₁ all i with M[i, j] ≠ 0 into R₁; so R₁ and C₁ are what some element reaches, and
exist if and only if the graph of these draws, without r and c, is not strongly connected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Bools, Ints, frozen
from formulations.integrality.evidence import Removal, Signs


def reduce_matrix(matrix: Signs) -> tuple[list[Removal], Ints, Ints]:
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
    key = np.abs(lines.astype(np.float64) @ weights)  # integers below 2^53: exact in any order of summation
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


MOST_ENTRIES = 5000  # in larger matrices no r, c are tried: each costs a search of the entire graph


def separation(matrix: Signs) -> tuple[Ints, Ints, int, int] | None:
    """R₁, C₁, r and c of a 2-sum; None where the matrix is none, or too large."""
    entries = np.argwhere(matrix)
    if len(entries) > MOST_ENTRIES:
        return None
    rows, columns = matrix.shape
    back = csr_array(matrix.T != 0)
    for r, c in entries.tolist():
        drawn = matrix - np.outer(matrix[:, c], matrix[r]) * matrix[r, c]
        graph = csr_array(block_array([[None, csr_array(drawn != 0)], [back, None]]))
        others = np.delete(np.arange(rows + columns), [r, rows + c])
        graph = graph[others][:, others]
        count, label = connected_components(graph, directed=True, connection="strong")
        if count > 1:
            closed = others[label == _sink(graph, label, count)]
            first = np.sort(np.append(closed[closed < rows], r))
            return first.astype(np.int64), (closed[closed >= rows] - rows).astype(np.int64), r, c
    return None


def _sink(graph: csr_array, label: Ints, count: int) -> int:
    """A component that draws nothing of the others."""
    held = graph.tocoo()
    source, target = (label[part] for part in held.coords)
    leaves = np.bincount(source, source != target, count)
    return int(np.flatnonzero(leaves == 0)[0])
