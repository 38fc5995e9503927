"""Paths in a directed tree: network matrices.

A network matrix has one row for each arc of a directed tree, and each column is a path in the tree: +1 for arcs along
the way, -1 for arcs against it. It is totally unimodular, and its linear program is a minimum cost flow [Tutte, 1965].

The tree is found by recursion on the rows [Schrijver, Theory of Linear and Integer Programming, section 20.1]. Where
every column has two entries at most, the tree is a star (Heller and Tompkins). Else the middle arc of a longer path
parts the tree: rows j, k are joined in the graph of arc i when some path uses both and not i; if no row i has a graph
in several components, the matrix is no network matrix. Each component C makes with i a smaller matrix, whose tree has i
for a leaf; the trees are put together at the ends of i. Let U(C) be the columns that use i and C, W(j) those that
use i and j. Component D can lie behind C, seen from i, if every W(j), j in C, contains U(D) or misses it. Components
neither of which can lie behind the other go to different ends of i, so the graph of these pairs must be bipartite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import frozen
from formulations.integrality.evidence import Tree

Arcs = dict[int, tuple[int, int]]  # tail and head of the arc of each row


def tree_of(matrix: NDArray[np.int8]) -> Tree | None:
    """The directed tree of a network matrix; None for other matrices."""
    if not matrix.shape[0]:
        return None
    search = _Search(matrix)
    arcs = search.tree(list(range(matrix.shape[0])))
    if arcs is None:
        return None
    ends = np.array([arcs[row] for row in range(matrix.shape[0])], dtype=np.int64)
    _, ends = np.unique(ends, return_inverse=True)
    ends = ends.reshape(-1, 2)
    return Tree(frozen(ends[:, 0].copy()), frozen(ends[:, 1].copy()))


def bits(chosen: NDArray[np.bool_]) -> int:
    """A set as the bits of a number."""
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


@dataclass
class _Component:
    """Rows joined without arc i. `behind`: the union U of their columns that use i; `shares`: the sets W, unequal."""

    rows: list[int]
    shares: set[int]
    behind: int

    def clears(self, other: _Component) -> bool:
        """Whether `other` can lie behind this component."""
        return all(share & other.behind in (0, other.behind) for share in self.shares)

    @property
    def depth(self) -> tuple[int, bool]:
        """Sorts components at one end of i, the nearest first."""
        return -self.behind.bit_count(), any(share not in (0, self.behind) for share in self.shares)


class _Search:
    """Columns as sets of rows, rows as sets of columns, and a supply of nodes."""

    def __init__(self, matrix: NDArray[np.int8]) -> None:
        self.matrix = matrix
        self.row_sets = [bits(row) for row in matrix != 0]
        self.column_sets = [bits(column) for column in matrix.T != 0]
        self.nodes = 0

    def node(self) -> int:
        self.nodes += 1
        return self.nodes

    def tree(self, rows: list[int]) -> Arcs | None:
        """The arcs of a tree for these rows and all columns."""
        chosen = once = twice = 0
        for row in rows:
            chosen |= 1 << row
            twice |= once & self.row_sets[row]
            once |= self.row_sets[row]
        columns = [(column, self.column_sets[column] & chosen) for column in members(twice)]
        long = sorted({path for _, path in columns}, key=lambda path: (-path.bit_count(), -path))
        if not long or long[0].bit_count() == 2:
            return self._star(rows, columns)
        for row in sorted(rows, key=lambda row: -self.row_sets[row].bit_count()):
            parts = _components(chosen & ~(1 << row), (path for path in long if not path >> row & 1))
            if len(parts) > 1:
                return self._join_trees(row, [self._component(row, part) for part in parts])
        return None

    def _star(self, rows: list[int], columns: list[tuple[int, int]]) -> Arcs | None:
        """Arcs into the center (class 0) or out of it (class 1), by the classes of Heller and Tompkins."""
        links: dict[int, list[tuple[int, bool]]] = {row: [] for row in rows}
        for column, path in columns:
            if path.bit_count() == 2:
                first, second = members(path)
                differ = bool(self.matrix[first, column] == self.matrix[second, column])
                links[first].append((second, differ))
                links[second].append((first, differ))
        side = two_sides(links)
        if side is None:
            return None
        center = self.node()
        return {row: (center, self.node()) if side[row] else (self.node(), center) for row in rows}

    def _component(self, arc: int, part: int) -> _Component:
        rows = members(part)
        shares = {self.row_sets[row] & self.row_sets[arc] for row in rows}
        behind = 0
        for share in shares:
            behind |= share
        return _Component(rows, shares, behind)

    def _join_trees(self, arc: int, parts: list[_Component]) -> Arcs | None:
        """The trees of all components, each with `arc`, put together at the ends of `arc`."""
        clash: dict[int, list[tuple[int, bool]]] = {index: [] for index in range(len(parts))}
        for index, part in enumerate(parts):
            for other in range(index):
                if not part.clears(parts[other]) and not parts[other].clears(part):
                    clash[index].append((other, True))
                    clash[other].append((index, True))
        side = two_sides(clash)
        if side is None:
            return None
        joined: Arcs = {arc: (self.node(), self.node())}
        assigned: tuple[list[_Component], list[_Component]] = ([], [])
        for index in sorted(range(len(parts)), key=lambda index: parts[index].depth):
            part, end = parts[index], side[index]
            arcs = self.tree([arc, *part.rows])
            if arcs is None:
                return None
            self._attach(joined, arcs, arc, part, end, self._attachment(joined, arc, part, assigned[end], end))
            assigned[end].append(part)
        return joined

    def _attachment(self, joined: Arcs, arc: int, part: _Component, nearer: list[_Component], end: bool) -> int:
        """The node at which the columns through `part` leave the components that are nearer to this end of `arc`."""
        node = joined[arc][end]
        if part.behind:
            column = (part.behind & -part.behind).bit_length() - 1
            for other in nearer:
                for row in other.rows:
                    if self.row_sets[row] >> column & 1:
                        tail, head = joined[row]
                        node ^= tail ^ head  # along a path every inner node is met twice
        return node

    def _attach(self, joined: Arcs, arcs: Arcs, arc: int, part: _Component, end: bool, target: int) -> None:
        """Hang the tree of a component, without `arc`, on a node. At the other end of `arc` its arcs turn round."""
        tail, head = arcs[arc]
        at_head = any(head in arcs[row] for row in part.rows)
        root = head if at_head else tail
        for row in part.rows:
            a, b = (target if node == root else node for node in arcs[row])
            joined[row] = (a, b) if at_head == end else (b, a)


def _components(chosen: int, paths: Iterable[int]) -> list[int]:
    """The components of the rows in `chosen`, two of them joined when they are on one path."""
    parts: list[int] = []
    for path in paths:
        apart = []
        for part in parts:
            if part & path:
                path |= part
            else:
                apart.append(part)
        parts = [*apart, path]
        if path == chosen:
            return parts
    for part in parts:
        chosen &= ~part
    return [*parts, *(1 << row for row in members(chosen))]


LONG = 500  # binary digits of a number from which numpy lists them faster


def members(number: int) -> list[int]:
    """The indices of the bits of a number."""
    if number.bit_length() > LONG:
        held = np.frombuffer(number.to_bytes(number.bit_length() // 8 + 1, "little"), dtype=np.uint8)
        listed: list[int] = np.flatnonzero(np.unpackbits(held, bitorder="little")).tolist()
        return listed
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def two_sides(links: dict[int, list[tuple[int, bool]]]) -> dict[int, bool] | None:
    """A side for each key, different across links marked unequal and equal across the others; None if impossible."""
    side: dict[int, bool] = {}
    for start in links:
        if start in side:
            continue
        side[start] = False
        queue = [start]
        for item in queue:
            for other, differ in links[item]:
                if other not in side:
                    side[other] = side[item] ^ differ
                    queue.append(other)
                elif side[other] != side[item] ^ differ:
                    return None
    return side
