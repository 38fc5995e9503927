"""Matrices that meet in one row and one column: 2-sums.

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
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Ints
from formulations.integrality.evidence import Signs

__all__ = ["separation"]

MOST_ENTRIES = 5000
"""In larger matrices no r, c are tried: each costs a search of the whole graph."""


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
