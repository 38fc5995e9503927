"""A part of the rankings of a set: on some cells, with some documents; what is known of it, and how it is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.brevity import CompactReprMixin

__all__ = ["Subproblem"]

SURE = 1e-6
"""Parts of documents below this are rounding."""


@dataclass(frozen=True, eq=False)
class Subproblem(CompactReprMixin):
    """The rankings on these cells that place these documents. orders (t, k): those that are known, value (t,) and
    reached (t, rows) theirs."""

    allowed: Bools
    placed: Ints
    orders: Ints
    value: Floats
    reached: Floats

    def some(self, which: Bools) -> Subproblem:
        """The same part, of whose rankings these are known."""
        return Subproblem(self.allowed, self.placed, self.orders[which], self.value[which], self.reached[which])

    def within(self, allowed: Bools, placed: Ints) -> Subproblem:
        """A part of it."""
        here = allowed[np.arange(self.orders.shape[1]), self.orders].all(axis=1)
        for document in placed.tolist():
            here &= (self.orders == document).any(axis=1)
        return Subproblem(allowed, placed, self.orders[here], self.value[here], self.reached[here])

    def cut(self, weight: Floats) -> list[Subproblem] | None:
        """Two parts, with and without what the weighted rankings hold in part: a document, else a cell; the one of
        which they hold more comes last. None where they hold nothing in part."""
        held = np.zeros(self.allowed.shape)
        for share, order in zip(weight.tolist(), self.orders, strict=True):
            held[np.arange(order.size), order] += share
        without, inside, placed = self.allowed.copy(), self.allowed, self.placed
        shares = held.sum(axis=0)
        if np.abs(shares - 0.5).min() < 0.5 - SURE:
            document = int(np.round(np.abs(shares - 0.5), 6).argmin())
            share = shares[document]
            without[:, document] = False
            placed = np.append(placed, document)
        elif np.abs(held - 0.5).min() < 0.5 - SURE:
            i, j = divmod(int(np.round(np.abs(held - 0.5), 6).argmin()), shares.size)
            share = held[i, j]
            without[i, j] = False
            inside = inside.copy()
            inside[i], inside[:, j] = False, False
            inside[i, j] = True
        else:
            return None
        parts = [self.within(inside, placed), self.within(without, self.placed)]
        return parts if share < 0.5 else parts[::-1]
