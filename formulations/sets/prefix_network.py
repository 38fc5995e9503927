"""A ranking under limits on prefixes as a sequence of groups: the best of each group, and the way back.

Where the profits of each group fall in one order of its documents, as those of rank one do
(`integrality.prefix_groups`), only which group stands at each position is left to choose; of each group the k best
documents can be needed, and one more for the prices. Prices of the positions that a group passes are prices of the
set's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.argmax.prefix_groups import prefix_argmax
from formulations.arrays import Floats, Ints, frozen
from formulations.forms.form import EPSILON
from formulations.forms.prefix_group_ranking import PrefixGroupRanking
from formulations.integrality.prefix_rows import PrefixRows
from formulations.sets.laminar_flow import LaminarNetwork
from formulations.sets.rows import SetRows

__all__ = ["PrefixNetwork", "falls_in_groups"]

NEAR = 8.0 * EPSILON
"""What rounding leaves in a product of a weight and a score, or in two of them, to its size."""


@dataclass(frozen=True, eq=False)
class PrefixNetwork:
    """rows: the limits. sizes (groups,): how many of each group can be needed. first: where a group begins once the
    documents are sorted by group; taken: the places of those needed then. own: (n,) the row that holds a document's
    price, counted from the first beside the positions. short: the groups as few bytes, which sort fast."""

    rows: PrefixRows
    sizes: Ints
    taken: Ints
    own: Ints
    short: NDArray[np.integer[Any]]

    @classmethod
    def of(cls, stated: SetRows) -> PrefixNetwork | str:
        """The network of a set, or why it has none; kept with the rows."""
        return stated.kept("prefixes", lambda: cls._of(stated))

    @classmethod
    def beyond_flows(cls, stated: SetRows) -> PrefixNetwork | str:
        """The network of a set that is no matching and no flow whatever the profits; or why it is none."""
        network = cls.of(stated)
        if isinstance(network, str) or not network.rows.whole_anyhow or LaminarNetwork.of(stated) is None:
            return network
        return "its limits are on one position or on all: a matching or a flow, whatever the profits"

    @classmethod
    def _of(cls, stated: SetRows) -> PrefixNetwork | str:
        if not stated.whole_cells:
            return "some cells are forbidden"
        k, n = stated.shape
        rows = PrefixRows.of(stated.matrix, stated.lower, stated.upper, k)
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
        """The documents that can be needed, group after group, each from the largest key on."""
        by_key = np.argsort(-key, kind="stable")
        return np.asarray(by_key[np.argsort(self.short[by_key], kind="stable")[self.taken]])

    def ranking(self, placed: Floats) -> PrefixGroupRanking:
        """The sequences of groups for the profits (k, chosen) of the chosen documents."""
        k, n = self.rows.shape
        worth = placed.copy()
        worth[:-1] -= placed[1:]
        if k == n:  # every document is placed: what it earns at the last position is no choice
            worth[-1] = 0.0
        bounds = np.cumsum(self.sizes)
        rises = np.diff(worth, axis=1) > 0.0
        rises[:, bounds[:-1] - 1] = False
        if rises.any():  # by rounding
            for end, size in zip(bounds.tolist(), self.sizes.tolist(), strict=True):
                worth[:, end - size : end] = np.minimum.accumulate(worth[:, end - size : end], axis=1)
        rows = self.rows
        return PrefixGroupRanking(frozen(worth), self.sizes, rows.lower, rows.upper, rows.banned)

    def proof(self, profit: Floats) -> Floats:
        """(rows beside the positions,) prices that prove the best ranking for profits (k, n) that fall in groups."""
        k, n = self.rows.shape
        chosen = self.chosen(profit[0] - profit[-1] if k == n else profit[0])
        placed = profit[:, chosen]
        problem = self.ranking(placed)
        group, passing = prefix_argmax(problem)
        return self.prices(problem, placed, chosen, group, passing)

    def order(self, chosen: Ints, group: Ints) -> Ints:
        """The document at each position: of its group the next best."""
        by_group = np.argsort(group, kind="stable")
        starts = np.cumsum(self.sizes) - self.sizes
        placed = np.bincount(group, minlength=self.rows.groups)
        rank = np.arange(group.size) - np.repeat(np.cumsum(placed) - placed, placed)
        order = np.empty(group.size, dtype=np.int64)
        order[by_group] = chosen[starts[group[by_group]] + rank]
        return order

    def prices(self, problem: PrefixGroupRanking, placed: Floats, chosen: Ints, group: Ints, passing: Floats) -> Floats:
        """The price of each row beside the positions, from those of passing (groups, k) a position.

        τ is what a document must bring to pass: between what the last that passes brings and what the next would. Where
        it is not ρ, a limit holds there, and the difference is its price. A document's price is what it brings above τ.
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
            worth += placed[-1] + np.where(turned, limit, 0.0).sum(axis=1)[of_group]
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
    placed = profit[:, order]
    together = group[order][1:] == group[order][:-1]
    steps = placed - np.vstack([placed[1:], np.zeros(n)])
    steps = steps[:-1] if k == n else steps
    rises = np.diff(steps, axis=1)[:, together]
    size = np.abs(placed).max(axis=0)
    return bool((rises <= NEAR * np.maximum(size[:-1], size[1:])[together]).all())
