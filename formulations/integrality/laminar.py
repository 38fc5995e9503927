"""Two laminar families of rows.

A family of sets is laminar when any two of them are nested or disjoint. A matrix whose rows are, up to the sign of a
whole row, the incidence vectors of two laminar families of sets of columns is totally unimodular: it is the network
matrix of the two trees that inclusion makes of the families, joined at their roots [Edmonds, 1970; Schrijver,
Combinatorial Optimization, Theorem 41.11].

Two sets cross when they meet and neither contains the other. Crossing sets must lie in different families, so two
families exist if and only if the graph of crossings is bipartite.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_array, coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Ints

__all__ = ["Signs", "laminar_families", "leaf_of_columns", "tree_parents"]

Signs: TypeAlias = NDArray[np.int8]


def laminar_families(matrix: csr_array | ArrayLike) -> Signs | None:
    """The family, 0 or 1, of each row; None where the rows are no two laminar families of sets."""
    rows = csr_array(matrix)
    members = _members(rows)
    if members is None:
        return None
    size, (left, right, common) = _meetings(members)
    crossing = common < np.minimum(size[left], size[right])
    count = rows.shape[0]
    graph = csr_array((np.ones(int(crossing.sum())), (left[crossing], right[crossing])), (count, count))
    graph = graph + graph.T
    cover = block_array([[None, graph], [graph, None]])  # two sheets: each edge leads from one to the other
    _, sheet = connected_components(cover, directed=False)
    lower, upper = sheet[:count], sheet[count:]
    if (lower == upper).any():  # a closed walk of odd length
        return None
    return np.asarray(lower > upper, dtype=np.int8)


def tree_parents(matrix: csr_array | ArrayLike, families: Signs) -> Ints:
    """The smallest row of the same family that contains each row, -1 where there is none. Of equal rows the later one
    contains the earlier. A row without entries has no parent."""
    rows = csr_array(matrix)
    members = _members(rows)
    assert members is not None
    size, (left, right, common) = _meetings(members)
    left, right, common = np.r_[left, right], np.r_[right, left], np.r_[common, common]
    larger = (size[right] > size[left]) | ((size[right] == size[left]) & (right > left))
    inside = (families[left] == families[right]) & (common == size[left]) & larger
    return _smallest(left[inside], right[inside], size, rows.shape[0])


def leaf_of_columns(matrix: csr_array | ArrayLike, families: Signs, family: int) -> Ints:
    """The smallest row of one family that contains each column, -1 where there is none; of equal rows the first.

    The column uses this row and all its tree parents, and no other row of the family.
    """
    rows = csr_array(matrix)
    rows.eliminate_zeros()
    size = np.diff(rows.indptr)
    entries = coo_array(rows)
    row, column = entries.coords
    held = families[row] == family
    return _smallest(column[held], row[held], size, rows.shape[1])


def _members(rows: csr_array) -> csr_array | None:
    """The rows as sets: ones where they have entries; None where a row is no ±1 multiple of an incidence vector."""
    held = rows.copy()
    held.sum_duplicates()
    held.eliminate_zeros()
    place = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    sums = np.bincount(place, held.data, held.shape[0])
    if (np.abs(held.data) != 1).any() or (np.abs(sums) != np.diff(held.indptr)).any():
        return None
    held.data = np.ones(held.nnz, dtype=np.float64)
    return held


def _meetings(members: csr_array) -> tuple[Ints, tuple[Ints, Ints, Ints]]:
    """The size of each set, and for each pair of sets that meet: both, and how many columns they share."""
    meetings = coo_array(members @ members.T)
    left, right = meetings.coords
    once = left < right
    size = np.diff(members.indptr).astype(np.int64)
    return size, (left[once], right[once], meetings.data[once].astype(np.int64))


def _smallest(item: NDArray[Any], holder: NDArray[Any], size: Ints, count: int) -> Ints:
    """For each of `count` items the first of its smallest holders, -1 where it has none."""
    best = np.full(count, -1, dtype=np.int64)
    order = np.lexsort((-holder, -size[holder]))  # the best comes last, and stays
    best[item[order]] = holder[order]
    return best
