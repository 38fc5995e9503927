"""The rows of a set beside positions and documents, as numbers at hand: what a ranking reaches in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.sets.nested_groups import GroupRows
from formulations.sets.rows import SetRows

__all__ = ["SideConstraintRows"]

MOST_NUMBERS = 1 << 21
"""Coefficients, zeros among them, beyond which the rows are not written out."""


@dataclass(frozen=True, eq=False)
class SideConstraintRows:
    """low <= Σ weight[r, i, j] π[i, j] <= high for every row r; weight (rows, k, n). price: of rows that may be broken,
    what a unit costs, infinite for the others; rounding: what it may leave in a sum. groups: the rows that limit groups
    over all positions and must hold; index: which row each of these is."""

    weight: Floats
    low: Floats
    high: Floats
    price: Floats
    rounding: Floats
    groups: GroupRows
    index: Ints

    @classmethod
    def of(cls, stated: SetRows) -> SideConstraintRows | None:
        """The rows of a set; None where they are too many numbers. Kept with the rows."""
        return stated.kept("side rows", lambda: cls._of(stated))

    @classmethod
    def _of(cls, stated: SetRows) -> SideConstraintRows | None:
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
        """(rows, k n) the weights, a ranking's cells one after the other."""
        return self.weight.reshape(self.low.size, -1)

    @cached_property
    def soft(self) -> Bools:
        """(rows,) which may be broken at a price."""
        return np.isfinite(self.price)

    @cached_property
    def any_soft(self) -> bool:
        """Whether one may be broken."""
        return bool(self.soft.any())

    def reached(self, order: Ints) -> Floats:
        """(rows,) the sum of each row at a ranking."""
        return np.asarray(self.weight[:, np.arange(order.size), order].sum(axis=1))

    def off(self, reached: Floats) -> Floats:
        """(rows,) by how much such sums break each row: above 0 where they do."""
        off = np.maximum(self.low - reached, reached - self.high)
        return np.where(off > self.rounding, off, 0.0)
