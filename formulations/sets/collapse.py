"""Π(B, k) and its like as an assignment of positions to rows: per position and row, the best document.

A set collapses when each cell is in exactly one row beside its position's and all these rows are "at most 1".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.forms.assignment import Assignment
from formulations.sets.rows import SetRows

__all__ = ["BlockCollapse"]


@dataclass(frozen=True, eq=False)
class BlockCollapse:
    """Cells sorted by position and row: run t of `cell`, from starts[t] on, is place[t] of the k × rows assignment."""

    shape: tuple[int, int]
    rows: int
    cell: Ints
    starts: Ints
    place: Ints
    group: Ints
    allowed: Bools | None

    @classmethod
    def of(cls, stated: SetRows) -> BlockCollapse | None:
        """The collapse of a set, None where it has none; kept with the rows."""
        return stated.kept("collapse", lambda: cls._of(stated))

    @classmethod
    def _of(cls, stated: SetRows) -> BlockCollapse | None:
        group = stated.group
        if group is None:
            return None
        k, n = stated.shape
        rows = stated.lower.size - k
        place = stated.cell // n * rows + group
        order = np.argsort(place, kind="stable")
        place = place[order]
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        reached = np.zeros(k * rows, dtype=bool)
        reached[place[starts]] = True
        allowed = None if reached.all() else frozen(reached.reshape(k, rows))
        by_cell = np.full(k * n, -1)
        by_cell[stated.cell] = group
        return cls((k, n), rows, frozen(stated.cell[order]), starts, frozen(place[starts]), frozen(by_cell), allowed)

    def assignment(self, profit: Floats) -> tuple[Assignment, Ints]:
        """The narrow problem, and the cell that each run offers (the first of its best)."""
        worth = profit.ravel()[self.cell]
        highest = np.maximum.reduceat(worth, self.starts)
        lengths = np.diff(np.append(self.starts, self.cell.size))
        hits = np.flatnonzero(worth == np.repeat(highest, lengths))
        best = self.cell[hits[np.searchsorted(hits, self.starts)]]
        narrow = np.zeros(self.shape[0] * self.rows)
        narrow[self.place] = highest
        return Assignment(frozen(narrow.reshape(self.shape[0], self.rows)), self.allowed), best

    def order(self, best: Ints, rows: NDArray[Any]) -> Ints:
        """The document at each position, from the row at each position."""
        asked = np.arange(self.shape[0]) * self.rows + np.asarray(rows, dtype=np.int64)
        return np.asarray(best[np.searchsorted(self.place, asked)] % self.shape[1])

    def rows_of(self, order: Ints) -> Ints:
        """The row at each position, from the document at each position."""
        return np.asarray(self.group[np.arange(self.shape[0]) * self.shape[1] + order])
