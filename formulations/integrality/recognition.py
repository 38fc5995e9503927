"""Recognition of bipartite, interval and laminar matrices, and of all totally unimodular ones with few rows.

Bipartite: a {0, ±1} matrix with at most two entries per column is totally unimodular if and only if its rows fall into
two classes such that entries of equal sign in a column are in different classes, and entries of unequal sign in the
same class [Heller and Tompkins, 1956]. Otherwise the graph of rows (one edge per column) has a cycle that no two
classes satisfy: its submatrix has two entries per row and column and determinant ±2.

Interval: if the rows can be ordered so that the entries of every column are consecutive and of one sign, the matrix is
a network matrix whose tree is a path [Fulkerson and Gross, 1965]. Only cheap guesses of the order are tried; other
interval matrices are recognized as network matrices.

Laminar: a family of sets is laminar if any two of them are nested or disjoint. A matrix whose rows are, up to sign,
incidence vectors of two laminar families of sets of columns is totally unimodular: it is the network matrix of the two
inclusion trees, joined at their roots [Edmonds, 1970; Schrijver, Combinatorial Optimization, Theorem 41.11]. Two sets
cross if they intersect and neither contains the other. Crossing sets are in different families, so two families exist
if and only if the graph of crossings is bipartite.

Enumeration: a matrix is totally unimodular if and only if every set R of its rows has signs ±1 with which the rows of R
add up to -1, 0 or 1 in every column [Ghouila-Houri, 1962]. With m rows there are 3^m signed sets: this decides small m,
for any number of columns. If a smallest set R has no such signs, then a smallest set of columns C for which it still
has none gives a square submatrix R × C of determinant ±2 with no smaller one in it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_array, coo_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Bools, Ints, frozen
from formulations.integrality.evidence import Coloring, RowOrder, Signings, Signs

STARTS = 20  # how many cycles are looked at for a short one


def row_classes(matrix: csr_array) -> Coloring | None:
    """The two classes; None where there are none, or a column has three entries."""
    edges = _edges(matrix)
    if edges is None:
        return None
    left, right, equal, _ = edges
    apart, together = (_graph(left[chosen], right[chosen], matrix.shape[0]) for chosen in (equal, ~equal))
    side = _two_sides(apart, together)
    return None if side is None else Coloring(frozen(side))


def _graph(left: Ints, right: Ints, count: int) -> csr_array:
    """The symmetric adjacency matrix of these edges."""
    graph = csr_array((np.ones(left.size), (left, right)), (count, count))
    return csr_array(graph + graph.T)


def _two_sides(apart: csr_array, together: csr_array | None = None) -> Signs | None:
    """A side, 0 or 1, for each node: different along `apart`, equal along `together`; None if there is none. Two sheets
    of the graph are connected where a closed path changes sides."""
    count = apart.shape[0]
    _, sheet = connected_components(block_array([[together, apart], [apart, together]]), directed=False)
    lower, upper = sheet[:count], sheet[count:]
    return None if (lower == upper).any() else np.asarray(lower > upper, dtype=np.int8)


def odd_cycle(matrix: csr_array) -> tuple[list[int], list[int]] | None:
    """Rows and columns of a short cycle that no two classes satisfy, if columns have two entries at most."""
    edges = _edges(matrix)
    if edges is None:
        return None
    left, right, equal, column = (part.tolist() for part in edges)
    ways: list[list[tuple[int, bool, int]]] = [[] for _ in range(matrix.shape[0])]
    for a, b, flips, j in zip(left, right, equal, column, strict=True):
        ways[a].append((b, flips, j))
        ways[b].append((a, flips, j))
    found: list[list[tuple[int, int]]] = []
    for start in range(matrix.shape[0]):
        path = _closed_path(ways, start)
        if path is not None:
            found.append(_simple(path, ways))
            if len(found) == STARTS:
                break
    if not found:
        return None
    best = min(found, key=len)
    return [row for row, _ in best], [column for _, column in best]


def _closed_path(ways: list[list[tuple[int, bool, int]]], start: int) -> list[tuple[int, int]] | None:
    """A shortest closed path from `start` on sheet False to `start` on sheet True, as (row, column that leaves it)."""
    came: dict[tuple[int, bool], tuple[tuple[int, bool], int]] = {}
    queue = deque([(start, False)])
    while queue:
        row, sheet = queue.popleft()
        for other, flips, column in ways[row]:
            state = (other, sheet ^ flips)
            if state in came or state == (start, False):
                continue
            came[state] = ((row, sheet), column)
            if state == (start, True):
                path = []
                while state != (start, False):
                    state, used = came[state]
                    path.append((state[0], used))
                return path[::-1]
            queue.append(state)
    return None


def _simple(path: list[tuple[int, int]], ways: list[list[tuple[int, bool, int]]]) -> list[tuple[int, int]]:
    """A cycle within a closed path that no two classes satisfy."""
    flips = {column: equal for row, _ in path for _, equal, column in ways[row]}
    steps: list[tuple[int, int]] = []
    first_at: dict[int, int] = {}
    for row, column in [*path, path[0]]:
        at = first_at.get(row)
        if at is not None:
            if sum(flips[used] for _, used in steps[at:]) % 2:
                return steps[at:]
            for left, _ in steps[at:]:
                del first_at[left]
            del steps[at:]
        first_at[row] = len(steps)
        steps.append((row, column))
    raise AssertionError("a closed traversal that changes sheets contains a cycle that does")


def _edges(matrix: csr_array) -> tuple[Ints, Ints, Ints, Ints] | None:
    """For columns with two entries: both rows, whether the signs are equal, and the column."""
    columns = csc_array(matrix)
    columns.sort_indices()
    count = np.diff(columns.indptr)
    if count.max(initial=0) > 2:
        return None
    chosen = np.flatnonzero(count == 2)
    first = columns.indptr[chosen]
    equal = columns.data[first] == columns.data[first + 1]
    return columns.indices[first], columns.indices[first + 1], equal, chosen


def consecutive_order(matrix: NDArray[np.int8]) -> RowOrder | None:
    """An order of the rows with the entries of each column consecutive, if one of the guesses is one."""
    if (np.abs(matrix.sum(axis=0, dtype=np.int64)) != np.count_nonzero(matrix, axis=0)).any():
        return None
    ones = matrix != 0
    for order in _guesses(ones):
        assigned = ones[order]
        if (assigned[0] + (assigned[1:] & ~assigned[:-1]).sum(axis=0) <= 1).all():
            return RowOrder(frozen(order))
    return None


def _guesses(ones: NDArray[np.bool_]) -> list[Ints]:
    """Orders to try: the input order; by the first, then the last entry of a row; by the mean index of its entries."""
    rows, columns = ones.shape
    first = ones.argmax(axis=1)
    last = columns - ones[:, ::-1].argmax(axis=1)
    mean = (ones @ np.arange(columns)) / np.maximum(ones.sum(axis=1), 1)
    orders = [np.arange(rows), np.lexsort((last, first)), np.lexsort((first, last)), np.argsort(mean, kind="stable")]
    return [np.asarray(order, dtype=np.int64) for order in orders]


def laminar_families(matrix: csr_array | ArrayLike) -> Signs | None:
    """The family, 0 or 1, of each row; None if the rows are not two laminar families of sets."""
    rows = csr_array(matrix)
    members = _members(rows)
    if members is None:
        return None
    size, (left, right, common) = _meetings(members)
    crossing = common < np.minimum(size[left], size[right])
    return _two_sides(_graph(left[crossing], right[crossing], rows.shape[0]))


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
    """The smallest row of one family that contains each column, -1 where there is none; of equal rows the first. The
    column uses this row and all its tree parents, and no other row of the family."""
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
    row = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    sums = np.bincount(row, held.data, held.shape[0])
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
