"""Two laminar families of rows as a network: a tree splits the positions into cells, another joins the cells.

One unit enters at the root of the first family for each position, runs down its tree (an arc a row, which carries what
the row holds), along one cell, up the tree of the second family, and leaves at its root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.integrality.laminar import laminar_families, leaf_of_columns, tree_parents
from formulations.notation.names import Block
from formulations.sets.rows import SetRows

__all__ = ["LaminarNetwork"]


@dataclass(frozen=True, eq=False)
class LaminarNetwork:
    """Arcs: the cells, then the rows. Nodes: the rows, then the two roots. A row's limits are whole: lower is shifted
    into the supplies, `floor` is what it was."""

    stated: SetRows
    tail: Ints
    head: Ints
    capacity: Ints
    supply: Ints
    floor: Ints
    sign: Floats

    @classmethod
    def of(cls, stated: SetRows) -> LaminarNetwork | None:
        """The network of a set, None where it has none; kept with the rows."""
        return stated.kept("network", lambda: cls._of(stated))

    @classmethod
    def _of(cls, stated: SetRows) -> LaminarNetwork | None:
        families = laminar_families(stated.matrix) if stated.whole_limits.all() else None
        if families is None:
            return None
        rows, cells = stated.matrix.shape
        size = np.diff(stated.matrix.indptr)
        sign = np.ones(rows)
        sign[size > 0] = stated.matrix.data[stated.matrix.indptr[:-1][size > 0]]
        low = np.where(sign > 0, stated.lower, -stated.upper)
        high = np.where(sign > 0, stated.upper, -stated.lower)
        floor = np.maximum(low, 0.0).astype(np.int64)
        ceiling = np.maximum(np.minimum(high, size), floor).astype(np.int64)
        first = families == 0
        root = np.where(first, rows, rows + 1)
        parent = tree_parents(stated.matrix, families)
        parent = np.where(parent < 0, root, parent)
        leaves = [leaf_of_columns(stated.matrix, families, family) for family in (0, 1)]
        down, up = (np.where(leaf < 0, rows + family, leaf) for family, leaf in enumerate(leaves))
        row = np.arange(rows)
        tail = np.concatenate([down, np.where(first, parent, row)])
        head = np.concatenate([up, np.where(first, row, parent)])
        supply = np.zeros(rows + 2, dtype=np.int64)
        supply[rows], supply[rows + 1] = stated.shape[0], -stated.shape[0]
        np.subtract.at(supply, tail[cells:], floor)
        np.add.at(supply, head[cells:], floor)
        capacity = np.concatenate([np.ones(cells, dtype=np.int64), ceiling - floor])
        return cls(stated, tail, head, capacity, supply, floor, sign)

    def flow(self, profit: Floats, needed: Bools | None = None) -> MinCostFlow:
        """The least cost is minus the most profit; over the needed cells only, if these are said."""
        rows, cells = self.floor.size, self.stated.cell.size
        cell = self.stated.cell if needed is None else self.stated.cell[needed]
        kept = slice(None) if needed is None else np.append(needed, np.ones(self.tail.size - cells, dtype=bool))
        return MinCostFlow(
            tail=self.tail[kept],
            head=self.head[kept],
            capacity=self.capacity[kept],
            cost=np.concatenate([-profit.ravel()[cell], np.zeros(rows)]),
            supply=self.supply,
            arcs=(*self.stated.variables(needed), Block("row", (rows,))),
            nodes=(Block("row", (rows,)), Block("first root", ()), Block("second root", ())),
        )

    def whole_flow(self, order: Ints) -> Floats:
        """The flow of a ranking."""
        k, n = self.stated.shape
        placed = np.searchsorted(self.stated.cell, np.arange(k) * n + order)
        held = np.zeros(self.stated.cell.size)
        held[placed] = 1.0
        return np.concatenate([held, self.sign * (self.stated.matrix @ held) - self.floor])

    def prices(self, potential: Floats) -> Floats:
        """The price of each row but the positions, from a potential a node: minus the reduced cost of its arc."""
        cells = self.stated.cell.size
        reduced = -potential[self.tail[cells:]] + potential[self.head[cells:]]
        return np.asarray((-self.sign * reduced)[self.stated.shape[0] :] + 0.0)
