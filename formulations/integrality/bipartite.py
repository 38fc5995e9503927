"""At most two entries a column: Heller and Tompkins' two classes of rows.

A {0, ±1} matrix with at most two entries a column is totally unimodular if and only if its rows fall into two classes
such that entries of equal sign in a column are in different classes, and entries of unequal sign in the same class
[Heller and Tompkins, 1956]. Otherwise the graph of rows (one edge a column) has a cycle that no two classes satisfy:
its rows and columns have two entries each and determinant ±2.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy.sparse import block_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Ints, frozen
from formulations.integrality.evidence import Colouring

__all__ = ["odd_cycle", "row_classes"]

STARTS = 20
"""How many cycles are looked at for a short one."""


def row_classes(matrix: csr_array) -> Colouring | None:
    """The two classes; None where there are none, or a column has three entries."""
    edges = _edges(matrix)
    if edges is None:
        return None
    count = matrix.shape[0]
    left, right, equal, _ = edges
    apart, together = (
        csr_array((np.ones(int(chosen.sum())), (left[chosen], right[chosen])), (count, count))
        for chosen in (equal, ~equal)
    )
    apart, together = apart + apart.T, together + together.T
    _, sheet = connected_components(block_array([[together, apart], [apart, together]]), directed=False)
    lower, upper = sheet[:count], sheet[count:]
    if (lower == upper).any():
        return None
    return Colouring(frozen(np.asarray(lower > upper, dtype=np.int8)))


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
        walk = _walk_round(ways, start)
        if walk is not None:
            found.append(_simple(walk, ways))
            if len(found) == STARTS:
                break
    if not found:
        return None
    best = min(found, key=len)
    return [row for row, _ in best], [column for _, column in best]


def _walk_round(ways: list[list[tuple[int, bool, int]]], start: int) -> list[tuple[int, int]] | None:
    """A shortest walk from `start`, on sheet False, to `start` on sheet True, as (row, column that leaves it)."""
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
                walk = []
                while state != (start, False):
                    state, used = came[state]
                    walk.append((state[0], used))
                return walk[::-1]
            queue.append(state)
    return None


def _simple(walk: list[tuple[int, int]], ways: list[list[tuple[int, bool, int]]]) -> list[tuple[int, int]]:
    """The part of a closed walk that is a cycle and satisfied by no two classes."""
    flips = {column: equal for row, _ in walk for _, equal, column in ways[row]}
    kept: list[tuple[int, int]] = []
    place: dict[int, int] = {}
    for row, column in [*walk, walk[0]]:
        at = place.get(row)
        if at is not None:
            if sum(flips[used] for _, used in kept[at:]) % 2:
                return kept[at:]
            for left, _ in kept[at:]:
                del place[left]
            del kept[at:]
        place[row] = len(kept)
        kept.append((row, column))
    raise AssertionError("a closed walk that changes sheets contains a cycle that does")


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
