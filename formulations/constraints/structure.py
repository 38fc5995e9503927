"""Structures of ranking sets that have fast solvers: a matching, a flow, nested groups, limits on prefixes; and the
cells that a best ranking needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.argmax.group_limits import prefix_argmax
from formulations.arrays import Bools, Floats, Ints, frozen, memoized
from formulations.constraints.rows import SetRows
from formulations.integrality.prefix_limits import PrefixRows
from formulations.integrality.recognition import laminar_families, leaf_of_columns, tree_parents
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import EPSILON
from formulations.problems.program import Block


@dataclass(frozen=True, eq=False)
class BlockCollapse:
    """The set is an assignment of positions to rows (Π(B, k) and generalizations): each cell is in exactly one row
    apart from its position's, and these rows are "at most 1". Cells sorted by position and row: run t of `cell`, from
    starts[t] on, is entry index[t] of the k × rows assignment."""

    shape: tuple[int, int]
    rows: int
    cell: Ints
    starts: Ints
    index: Ints
    group: Ints
    allowed: Bools | None

    @classmethod
    @memoized
    def from_rows(cls, stated: SetRows) -> BlockCollapse | None:
        """The collapse of a set, None if it has none."""
        group = stated.group
        if group is None:
            return None
        k, n = stated.shape
        rows = stated.lower.size - k
        key = stated.cell // n * rows + group
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        reached = np.zeros(k * rows, dtype=bool)
        reached[key[starts]] = True
        allowed = None if reached.all() else frozen(reached.reshape(k, rows))
        by_cell = np.full(k * n, -1)
        by_cell[stated.cell] = group
        return cls((k, n), rows, frozen(stated.cell[order]), starts, frozen(key[starts]), frozen(by_cell), allowed)

    def assignment(self, profit: Floats) -> tuple[Assignment, Ints]:
        """The assignment of positions to rows, and the first best cell of each run."""
        worth = profit.ravel()[self.cell]
        highest = np.maximum.reduceat(worth, self.starts)
        lengths = np.diff(np.append(self.starts, self.cell.size))
        hits = np.flatnonzero(worth == np.repeat(highest, lengths))
        best = self.cell[hits[np.searchsorted(hits, self.starts)]]
        narrow = np.zeros(self.shape[0] * self.rows)
        narrow[self.index] = highest
        return Assignment(frozen(narrow.reshape(self.shape[0], self.rows)), self.allowed), best

    def order(self, best: Ints, rows: NDArray[Any]) -> Ints:
        """The document at each position, from the row at each position."""
        keys = np.arange(self.shape[0]) * self.rows + np.asarray(rows, dtype=np.int64)
        return np.asarray(best[np.searchsorted(self.index, keys)] % self.shape[1])

    def rows_of(self, order: Ints) -> Ints:
        """The row at each position, from the document at each position."""
        return np.asarray(self.group[np.arange(self.shape[0]) * self.shape[1] + order])


@dataclass(frozen=True, eq=False)
class LaminarNetwork:
    """A set whose rows are two laminar families: one unit of flow per position runs down the tree of the first family
    (one arc per row, which carries the row's sum), along one cell, and up the tree of the second. Arcs: the cells, then
    the rows. Nodes: the rows, then the two roots. Limits are integers; lower limits are shifted into the supplies,
    `floor` stores them."""

    stated: SetRows
    tail: Ints
    head: Ints
    capacity: Ints
    supply: Ints
    floor: Ints
    sign: Floats

    @classmethod
    @memoized
    def from_rows(cls, stated: SetRows) -> LaminarNetwork | None:
        """The network of a set, None if it has none."""
        families = laminar_families(stated.matrix) if stated.integral_rows.all() else None
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
        """The minimum-cost flow with costs -profit; over the needed cells only, if passed."""
        rows, cells = self.floor.size, self.stated.cell.size
        cell = self.stated.cell if needed is None else self.stated.cell[needed]
        columns = slice(None) if needed is None else np.append(needed, np.ones(self.tail.size - cells, dtype=bool))
        return MinCostFlow(
            tail=self.tail[columns],
            head=self.head[columns],
            capacity=self.capacity[columns],
            cost=np.concatenate([-profit.ravel()[cell], np.zeros(rows)]),
            supply=self.supply,
            arcs=(*self.stated.variables(needed), Block("row", (rows,))),
            nodes=(Block("row", (rows,)), Block("first root", ()), Block("second root", ())),
        )

    def integral_flow(self, order: Ints) -> Floats:
        """The flow of a ranking."""
        k, n = self.stated.shape
        ranked = np.searchsorted(self.stated.cell, np.arange(k) * n + order)
        held = np.zeros(self.stated.cell.size)
        held[ranked] = 1.0
        return np.concatenate([held, self.sign * (self.stated.matrix @ held) - self.floor])

    def prices(self, potential: Floats) -> Floats:
        """The dual of each row after the positions, from node potentials: minus the reduced cost of its arc."""
        cells = self.stated.cell.size
        reduced = -potential[self.tail[cells:]] + potential[self.head[cells:]]
        return np.asarray((-self.sign * reduced)[self.stated.shape[0] :] + 0.0)


@dataclass(frozen=True, eq=False)
class NestedGroups:
    """leaf[j]: the smallest group that contains document j; parent[g] > g: the next larger one; the number of groups
    denotes all documents. low[g] <= number of ranked documents of g <= high[g]; allowed (k, n)."""

    leaf: Ints
    parent: Ints
    low: Ints
    high: Ints
    allowed: Bools

    @classmethod
    @memoized
    def from_rows(cls, stated: SetRows) -> NestedGroups | None:
        """The groups of a set; None if a row is not a group over all positions, or two groups cross."""
        groups, index = GroupRows.among(stated)
        complete = index.size == stated.lower.size - stated.shape[0] - stated.own_row.size
        return groups.tree(np.arange(index.size)) if complete else None

    @property
    def network(self) -> tuple[Bools, Ints, Ints, Ints, Ints]:
        """The arrays that kernels read."""
        return self.allowed, self.leaf, self.parent, self.low, self.high


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of a set that limit groups of documents over all positions: member (rows, n), integer low and high.
    Groups may cross; those that do not form a tree."""

    member: Bools
    low: Ints
    high: Ints
    allowed: Bools

    @classmethod
    @memoized
    def among(cls, stated: SetRows) -> tuple[GroupRows, Ints]:
        """The hard rows of a set that limit groups, small groups first, and their indices among the rows after
        positions and documents."""
        k, n = stated.shape
        first = k + stated.own_row.size
        rows = csr_array(stated.matrix[first:])
        count = np.diff(rows.indptr)
        fits = stated.integral_rows[first:] & (count > 0)
        if stated.price is not None:
            fits &= np.isinf(stated.price[first:])
        sign = np.zeros(count.size)
        sign[count > 0] = rows.data[rows.indptr[:-1][count > 0]]
        of = np.repeat(np.arange(count.size), count)
        fits[of[(rows.data != sign[of]) | (np.abs(rows.data) != 1.0)]] = False
        document = stated.cell % n
        cells = np.bincount(document, minlength=n)
        held = np.zeros((count.size, n), dtype=np.int64)
        np.add.at(held, (of, document[rows.indices]), 1)
        member = held > 0
        fits &= (held == np.where(member, cells, 0)).all(axis=1)  # no position is left out
        low, high = stated.lower[first:], stated.upper[first:]
        low, high = np.where(sign > 0, low, -high), np.where(sign > 0, high, -low)
        size = member.sum(axis=1)
        order = np.lexsort((np.arange(sign.size), size))
        order = order[fits[order]]
        allowed = np.zeros(k * n, dtype=bool)
        allowed[stated.cell] = True
        groups = cls(
            frozen(member[order]), frozen(np.maximum(low, 0.0)[order].astype(np.int64)),
            frozen(np.clip(high, 0.0, size)[order].astype(np.int64)), frozen(allowed.reshape(k, n)),
        )  # fmt: skip
        return groups, frozen(order)

    @cached_property
    def crossing(self) -> Bools:
        """(rows, rows) which groups cross: they intersect and neither contains the other."""
        shared = self.member.astype(np.int64) @ self.member.T.astype(np.int64)
        size = np.diag(shared)
        return frozen((shared > 0) & (shared < np.minimum(size[:, None], size)))

    def tree(self, chosen: Ints) -> NestedGroups | None:
        """The tree of the chosen groups, in ascending order; None if two of them cross."""
        if self.crossing[np.ix_(chosen, chosen)].any():
            return None
        member, groups = self.member[chosen], chosen.size
        inside = (member[:, None] <= member[None]).all(axis=2)  # inside[g, h]: all of g are in h
        later = np.triu(inside, 1)
        parent = np.where(later.any(axis=1), later.argmax(axis=1), groups) if groups else np.zeros(0)
        leaf = np.where(member.any(axis=0), member.argmax(axis=0), groups) if groups else np.zeros(member.shape[1])
        return NestedGroups(
            frozen(leaf.astype(np.int64)), frozen(parent.astype(np.int64)), frozen(self.low[chosen]),
            frozen(self.high[chosen]), self.allowed,
        )  # fmt: skip


@memoized
def kinds(stated: SetRows) -> Ints:
    """(n,) the kind of each document, counted from 0."""
    k, n = stated.shape
    others = stated.matrix.shape[0] - k - stated.own_row.size
    # Row j: the coefficients of document j at each position in each row that is not its own, and where it is allowed.
    entries = csr_array(stated.weights[:, stated.own_row.size :]).tocoo()
    cell, row = entries.coords
    position, document = np.divmod(stated.cell[cell], n)
    allowed, holder = np.divmod(stated.cell, n)
    width = others + 1
    columns = np.concatenate([position * width + row, allowed * width + others])
    values = np.concatenate([entries.data, np.ones(stated.cell.size)])
    table = csr_array((values, (np.concatenate([document, holder]), columns)), shape=(n, k * width))
    return frozen(equal_rows(table))


def equal_rows(table: csr_array) -> Ints:
    """A number for each row of a matrix, the same for equal rows, counted from 0."""
    table.sort_indices()
    seen: dict[tuple[bytes, bytes], int] = {}
    found = np.empty(table.shape[0], dtype=np.int64)
    for row in range(found.size):
        part = slice(table.indptr[row], table.indptr[row + 1])
        found[row] = seen.setdefault((table.indices[part].tobytes(), table.data[part].tobytes()), len(seen))
    return found


def candidates(stated: SetRows, profit: Floats) -> Bools | None:
    """The allowed cells that are needed for this profit (k, n); None if all may be.

    Documents are of one kind if their columns and forbidden cells are equal. Of a kind, the k documents of largest
    profit at each position suffice, by exchange. One more makes the duals of the smaller program prove the larger one:
    it is not ranked, so its dual is 0, and its position earns at least as much as any removed document could.
    """
    k, n = stated.shape
    kind = kinds(stated)
    large = np.flatnonzero(np.bincount(kind) > k + 1)
    if not large.size:
        return None
    needed = np.ones((k, n), dtype=bool)
    for one in large.tolist():
        members = np.flatnonzero(kind == one)
        best = np.argpartition(-profit[:, members], k, axis=1)[:, : k + 1]
        needed[:, members] = False
        needed[np.arange(k)[:, None], members[best]] = True
    return np.asarray(needed.ravel()[stated.cell])


NEAR = 8.0 * EPSILON  # relative rounding error of one or two products of a weight and a score


@dataclass(frozen=True, eq=False)
class PrefixNetwork:
    """Limits on prefixes, where the profits of each group fall in one order of its documents
    (`integrality.prefix_limits`). Only the group at each position is free.

    rows: the limits. sizes (groups,): how many documents of each group can be needed. taken: their indices once the
    documents are sorted by group. own: (n,) the row with a document's dual, counted from the first after the positions.
    short: the groups in a small integer type, which sorts fast."""

    rows: PrefixRows
    sizes: Ints
    taken: Ints
    own: Ints
    short: NDArray[np.integer[Any]]

    @classmethod
    def beyond_flows(cls, stated: SetRows) -> PrefixNetwork | str:
        """The network of a set that is neither a matching nor a flow for all profits; or the reason why it has none."""
        network = cls.from_rows(stated)
        if isinstance(network, str) or not network.rows.is_always_integral or LaminarNetwork.from_rows(stated) is None:
            return network
        return "its limits are on one position or on all: a matching or a flow, whatever the profits"

    @classmethod
    @memoized
    def from_rows(cls, stated: SetRows) -> PrefixNetwork | str:
        """The network of a set, or the reason why it has none."""
        if not stated.is_full:
            return "some cells are forbidden"
        k, n = stated.shape
        rows = PrefixRows.from_matrix(stated.matrix, stated.lower, stated.upper, k)
        if isinstance(rows, str):
            return rows
        members = np.bincount(rows.group, minlength=rows.groups)
        sizes = np.minimum(members, k + 1)
        first = np.concatenate([[0], np.cumsum(members)[:-1]])
        rank = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        own = np.full(n, -1)
        own[stated.own_row] = np.arange(stated.own_row.size)
        capped = own < 0  # by a row of its group over all positions that is at most 1
        own[capped] = rows.upper_row[rows.group[capped], -1] - k
        if (own < 0).any():
            return "a document has no row of its own"
        short = rows.group.astype(np.int16) if rows.groups < 2**15 else rows.group
        return cls(rows, frozen(sizes), frozen(np.repeat(first, sizes) + rank), frozen(own), frozen(short))

    def chosen(self, key: Floats) -> Ints:
        """The documents that can be needed, by group, each in descending order of the key."""
        by_key = np.argsort(-key, kind="stable")
        return np.asarray(by_key[np.argsort(self.short[by_key], kind="stable")[self.taken]])

    def ranking(self, ranked: Floats) -> GroupSequence:
        """The sequences of groups for the profits (k, chosen) of the chosen documents."""
        k, n = self.rows.shape
        worth = ranked.copy()
        worth[:-1] -= ranked[1:]
        if k == n:  # every document is ranked: what it earns at the last position is no choice
            worth[-1] = 0.0
        bounds = np.cumsum(self.sizes)
        rises = np.diff(worth, axis=1) > 0.0
        rises[:, bounds[:-1] - 1] = False
        if rises.any():  # by rounding
            for end, size in zip(bounds.tolist(), self.sizes.tolist(), strict=True):
                worth[:, end - size : end] = np.minimum.accumulate(worth[:, end - size : end], axis=1)
        rows = self.rows
        return GroupSequence(frozen(worth), self.sizes, rows.lower, rows.upper, rows.banned)

    def sequences(self, profit: Floats) -> tuple[GroupSequence, Floats, Ints]:
        """The sequences of groups for profits (k, n) that fall in groups; the chosen documents and their profits."""
        k, n = self.rows.shape
        chosen = self.chosen(profit[0] - profit[-1] if k == n else profit[0])
        ranked = profit[:, chosen]
        return self.ranking(ranked), ranked, chosen

    def proof(self, profit: Floats) -> Floats:
        """(rows after the positions,) duals that prove the best ranking for profits (k, n) that fall in groups."""
        problem, ranked, chosen = self.sequences(profit)
        group, passing = prefix_argmax(problem)
        return self.prices(problem, ranked, chosen, group, passing)

    def order(self, chosen: Ints, group: Ints) -> Ints:
        """The document at each position: the next best of its group."""
        by_group = np.argsort(group, kind="stable")
        starts = np.cumsum(self.sizes) - self.sizes
        ranked = np.bincount(group, minlength=self.rows.groups)
        rank = np.arange(group.size) - np.repeat(np.cumsum(ranked) - ranked, ranked)
        order = np.empty(group.size, dtype=np.int64)
        order[by_group] = chosen[starts[group[by_group]] + rank]
        return order

    def prices(self, problem: GroupSequence, ranked: Floats, chosen: Ints, group: Ints, passing: Floats) -> Floats:
        """The dual of each row after the positions, from `passing` (groups, k), the duals of passing a position.

        τ is a document's threshold: between the profit of the last one that passes and of the next. If it differs from
        ρ, a limit is active, and the difference is its dual. A document's dual is its profit above τ.
        """
        rows = self.rows
        k, n = rows.shape
        held, start = problem.counts(group), problem.start
        padded = np.hstack([problem.worth, np.zeros((k, 1))]).T
        at = np.arange(k)
        after = np.where(
            held < self.sizes[:, None], padded[start[:, None] + np.minimum(held, self.sizes[:, None]), at], -np.inf
        )
        before = np.where(held > 0, padded[start[:, None] + np.maximum(held, 1) - 1, at], np.inf)
        pressed = np.minimum(np.maximum(passing, after), before) - passing
        above = (pressed > 0.0) & (rows.upper_row >= 0) & (held == rows.upper)
        below = (pressed < 0.0) & (rows.lower_row >= 0) & (held == rows.lower)
        limit = np.where(above | below, pressed, 0.0)
        threshold = passing + limit
        of_group = problem.group
        worth = np.maximum(problem.worth.T - threshold[of_group], 0.0).sum(axis=1)
        y = np.zeros(rows.turned.size - k)
        row = np.where(above, rows.upper_row, rows.lower_row)
        turned = np.where(above | below, rows.turned[row], False)
        np.add.at(y, row[above | below] - k, np.where(turned, -limit, limit)[above | below])
        if k == n:
            worth += ranked[-1] + np.where(turned, limit, 0.0).sum(axis=1)[of_group]
            worth -= min(0.0, float(worth.min()))
        np.add.at(y, self.own[chosen], worth)
        left = np.cumsum(passing[:, ::-1], axis=1)[:, ::-1]
        allowed = np.where(rows.banned, -np.inf, left).max(axis=0)
        for single, g, p in rows.singles:
            y[single - k] += max(0.0, left[g, p] - allowed[p]) if rows.banned[g, p] else allowed[p] - left[:, p].max()
        return y


def falls_in_groups(profit: Floats, group: Ints) -> bool:
    """Whether the documents of each group have an order in which no profit[p, ·] - profit[p + 1, ·] rises, up to
    rounding. Profits of rank one are seen at once."""
    k, n = profit.shape
    top = profit[0]
    best = int(np.abs(top).argmax())
    if k < n and top[best] != 0.0:
        weight = profit[:, best] / top[best]
        if weight[-1] >= 0.0 and (np.diff(weight) <= 0.0).all():
            off = np.outer(weight, top)
            off -= profit
            if (np.abs(off, out=off) <= NEAR * np.abs(profit)).all():
                return True
    order = np.lexsort((profit[-1] - top if k == n else -top, group))
    ranked = profit[:, order]
    together = group[order][1:] == group[order][:-1]
    steps = ranked - np.vstack([ranked[1:], np.zeros(n)])
    steps = steps[:-1] if k == n else steps
    rises = np.diff(steps, axis=1)[:, together]
    size = np.abs(ranked).max(axis=0)
    return bool((rises <= NEAR * np.maximum(size[:-1], size[1:])[together]).all())


MOST_NUMBERS = 1 << 21  # largest number of coefficients, zeros included, of dense rows


@dataclass(frozen=True, eq=False)
class SideConstraintRows:
    """low <= Σ weight[r, i, j] π[i, j] <= high for every row r; weight (rows, k, n). price: the penalty per unit of
    soft rows, infinite for hard rows; rounding: the rounding error of each sum. groups: the hard rows that limit groups
    over all positions; index: their row numbers."""

    weight: Floats
    low: Floats
    high: Floats
    price: Floats
    rounding: Floats
    groups: GroupRows
    index: Ints

    @classmethod
    @memoized
    def from_rows(cls, stated: SetRows) -> SideConstraintRows | None:
        """The rows of a set; None above `MOST_NUMBERS` coefficients."""
        k, n = stated.shape
        first, rows = k + stated.own_row.size, stated.lower.size
        if (rows - first) * k * n > MOST_NUMBERS:
            return None
        weight = np.zeros((rows - first, k * n))
        weight[:, stated.cell] = stated.matrix[first:].toarray()
        groups, index = GroupRows.among(stated)
        price = np.full(rows, np.inf) if stated.price is None else stated.price
        return cls(
            frozen(weight.reshape(-1, k, n)), frozen(stated.lower[first:].copy()), frozen(stated.upper[first:].copy()),
            frozen(price[first:].copy()), frozen(stated.rounding[first - k :].copy()), groups, index,
        )  # fmt: skip

    @cached_property
    def flat(self) -> Floats:
        """(rows, k n) the weights, a row per constraint."""
        return self.weight.reshape(self.low.size, -1)

    @cached_property
    def soft(self) -> Bools:
        """(rows,) which rows are soft."""
        return np.isfinite(self.price)

    def reached(self, order: Ints) -> Floats:
        """(rows,) the sum of each row at a ranking."""
        return np.asarray(self.weight[:, np.arange(order.size), order].sum(axis=1))

    def off(self, reached: Floats) -> Floats:
        """(rows,) the violation of each row for such sums."""
        off = np.maximum(self.low - reached, reached - self.high)
        return np.where(off > self.rounding, off, 0.0)
