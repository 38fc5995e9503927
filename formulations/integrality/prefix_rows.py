"""Rows that limit how many documents of disjoint groups stand in the first positions, read off a matrix.

Columns are the k × n cells (position, document) in C order. Every row must say one of these, with coefficients 1:

    position    all cells of a position                                = 1
    document    all cells of a document                               <= 1
    prefix      the cells of a group at positions 0 .. p              between whole limits, any p
    single      the cells of a group at one position                  between whole limits
    suffix      the cells of a group at positions p .. k - 1          the same, where k = n: then it is a prefix from
                                                                      the other side, every document being placed

Groups are the sets of documents that rows name; two of them are equal or share no document. Documents that no such row
names are one more group. A row over all documents counts positions and says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, frozen

__all__ = ["PrefixRows"]


@dataclass(frozen=True, eq=False)
class PrefixRows:
    """group (n,) numbers the groups from 0. lower, upper (groups, k): of group g at least and at most so many stand at
    positions 0 .. p; lower_row, upper_row: the row that says so, -1 where it is none. `turned` marks suffixes among the
    rows, whose lower limit is the upper one of a prefix. banned (groups, k): no document of g may stand at p; `singles`
    lists the rows (row, group, position) that say so, or that one of g must."""

    shape: tuple[int, int]
    group: Ints
    lower: Ints
    upper: Ints
    lower_row: Ints
    upper_row: Ints
    turned: Bools
    banned: Bools
    singles: tuple[tuple[int, int, int], ...]

    @property
    def groups(self) -> int:
        return int(self.lower.shape[0])

    @cached_property
    def whole_anyhow(self) -> bool:
        """Whether all limits that say something are on one position or on all: without the others the rows are two
        laminar families."""
        return not ((self.lower_row[:, 1:-1] >= 0) | (self.upper_row[:, 1:-1] >= 0)).any()

    @classmethod
    def of(cls, matrix: csr_array, low: Floats, high: Floats, k: int) -> PrefixRows | str:
        """What the rows say; or why they say something else."""
        n, left = divmod(matrix.shape[1], k)
        if left or n < k:
            return "some cells are forbidden"
        if (matrix.data != 1.0).any():
            return "a row has a coefficient other than 1"
        limits = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
        if (limits != np.round(limits)).any():
            return "a limit is not whole"
        matrix.sort_indices()
        size = np.diff(matrix.indptr)
        if (low[size == 0] > 0).any() or (high[size == 0] < 0).any():
            return "a row without cells cannot hold"
        held = np.flatnonzero(size)
        position, document = np.divmod(matrix.indices, n)
        starts = matrix.indptr[:-1][held]
        one_place, one_document = (
            np.minimum.reduceat(part, starts) == np.maximum.reduceat(part, starts) for part in (position, document)
        )
        is_position = one_place & (size[held] == n) & (low[held] == 1.0) & (high[held] == 1.0)
        is_document = one_document & (size[held] == k) & (low[held] <= 0.0) & (high[held] == 1.0) & ~is_position
        found = _Reader(k, n)
        for row in held[~(is_position | is_document)].tolist():
            cells = slice(matrix.indptr[row], matrix.indptr[row + 1])
            why = found.add(row, position[cells], document[cells], float(low[row]), float(high[row]))
            if why:
                return why
        return found.rows(size.size)


class _Reader:
    """Adds one row after the other."""

    def __init__(self, k: int, n: int) -> None:
        self.k, self.n = k, n
        self.group = np.full(n, -1, dtype=np.int64)
        self.sizes: list[int] = []
        self.limits: list[tuple[int, int, int, float, float, bool]] = []
        self.singles: list[tuple[int, int, int, float, float]] = []

    def add(self, row: int, position: Ints, document: Ints, low: float, high: float) -> str:
        """Why the row is none of those named above; "" where it is one."""
        wide = int(np.searchsorted(position, position[0], side="right"))
        first, last = int(position[0]), int(position[-1])
        documents = document[:wide]
        whole = (last - first + 1) * wide == position.size
        if not whole or (document.reshape(-1, wide) != documents).any():
            return "a row counts other documents at one position than at the next"
        if wide == self.n:
            counted = last - first + 1
            return "" if low <= counted <= high else "a row asks for more or fewer documents than it has positions"
        group = self._group(documents)
        if group < 0:
            return "two groups of documents overlap"
        if first == 0:
            self.limits.append((row, group, last, low, high, False))
        elif last == self.k - 1 and self.k == self.n:
            self.limits.append((row, group, first - 1, wide - high, wide - low, True))
        elif first == last:
            self.singles.append((row, group, first, low, high))
        else:
            return "a row limits positions that are no prefix"
        return ""

    def _group(self, documents: Ints) -> int:
        group = int(self.group[documents[0]])
        if (self.group[documents] != group).any():
            return -1
        if group < 0:
            self.group[documents] = len(self.sizes)
            self.sizes.append(documents.size)
            return len(self.sizes) - 1
        return group if documents.size == self.sizes[group] else -1

    def rows(self, count: int) -> PrefixRows:
        k, rest = self.k, self.group < 0
        if rest.any():
            self.group[rest] = len(self.sizes)
            self.sizes.append(int(rest.sum()))
        size = np.array(self.sizes)
        groups = size.size
        lower, upper = np.zeros((groups, k), dtype=np.int64), np.repeat(size[:, None], k, axis=1)
        lower_row, upper_row = np.full((groups, k), -1), np.full((groups, k), -1)
        turned = np.zeros(count, dtype=bool)
        for row, group, last, low, high, suffix in self.limits:
            turned[row] = suffix
            if low > lower[group, last]:
                lower[group, last], lower_row[group, last] = int(low), row
            if high <= upper[group, last]:
                upper[group, last], upper_row[group, last] = int(high), row
        banned, wanted = np.zeros((groups, k), dtype=bool), np.zeros((groups, k), dtype=bool)
        singles = []
        for row, group, at, low, high in self.singles:
            if low > 0.0 or high < 1.0:
                singles.append((row, group, at))
            banned[group, at] |= high < 1.0 or low > 1.0
            wanted[group, at] |= low > 0.0
        banned |= wanted.any(axis=0) & ~wanted
        return PrefixRows(
            (k, self.n), frozen(self.group), frozen(lower), frozen(upper), frozen(lower_row), frozen(upper_row),
            frozen(turned), frozen(banned), tuple(singles),
        )  # fmt: skip
