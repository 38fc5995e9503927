"""Sets whose rows are nested groups of documents with whole limits over all positions: a tree of groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Ints, frozen
from formulations.sets.rows import SetRows

__all__ = ["GroupRows", "NestedGroups"]


@dataclass(frozen=True, eq=False)
class NestedGroups:
    """leaf[j]: the smallest group that holds document j; parent[g]: the next larger one, of a larger number; the number
    of groups stands for all documents. low[g] <= documents of g that are placed <= high[g]; allowed (k, n)."""

    leaf: Ints
    parent: Ints
    low: Ints
    high: Ints
    allowed: Bools

    @classmethod
    def of(cls, stated: SetRows) -> NestedGroups | None:
        """The groups of a set; None where a row speaks of single positions, or two groups cross. Kept with the rows."""
        return stated.kept("nested groups", lambda: cls._of(stated))

    @classmethod
    def _of(cls, stated: SetRows) -> NestedGroups | None:
        rows = GroupRows.of(stated)
        return None if rows is None else rows.tree(np.arange(rows.low.size))


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of a set that are limits on groups of documents over all positions: member (rows, n), low and high
    whole. Groups may cross; those that do not make a tree."""

    member: Bools
    low: Ints
    high: Ints
    allowed: Bools

    @classmethod
    def of(cls, stated: SetRows) -> GroupRows | None:
        """The rows of a set, small groups first; None where one speaks of single positions, or not of numbers. Kept."""
        return stated.kept("group rows", lambda: cls._of(stated))

    @classmethod
    def _of(cls, stated: SetRows) -> GroupRows | None:
        groups, index = cls.among(stated)
        return groups if index.size == stated.lower.size - stated.shape[0] - stated.own_row.size else None

    @classmethod
    def among(cls, stated: SetRows) -> tuple[GroupRows, Ints]:
        """Those rows of a set that are such limits and must hold, and which of its rows, beside positions and
        documents, each is."""
        k, n = stated.shape
        first = k + stated.own_row.size
        rows = csr_array(stated.matrix[first:])
        count = np.diff(rows.indptr)
        fits = stated.whole_limits[first:] & (count > 0)
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
        """(rows, rows) which groups have members in common and others beside them, both of them."""
        shared = self.member.astype(np.int64) @ self.member.T.astype(np.int64)
        size = np.diag(shared)
        return frozen((shared > 0) & (shared < np.minimum(size[:, None], size)))

    def held(self, order: Ints) -> Ints:
        """(rows,) how many documents of each group a ranking places."""
        return np.asarray(self.member[:, order].sum(axis=1))

    def tree(self, chosen: Ints) -> NestedGroups | None:
        """The tree of the chosen groups, in rising order; None where two of them cross."""
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
