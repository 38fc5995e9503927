"""Sets whose rows are nested groups of documents with whole limits over all positions: a tree of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Ints, frozen
from formulations.sets.rows import SetRows

__all__ = ["NestedGroups"]


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
        k, n = stated.shape
        rows = csr_array(stated.matrix[k + stated.own_row.size :])
        first = k + stated.own_row.size
        filled = np.diff(rows.indptr) > 0
        if not stated.whole_limits.all() or not filled.all():
            return None
        sign = rows.data[rows.indptr[:-1]]
        if (np.abs(sign) != 1.0).any() or (rows.data != np.repeat(sign, np.diff(rows.indptr))).any():
            return None
        document = stated.cell % n
        cells = np.bincount(document, minlength=n)
        row = np.repeat(np.arange(sign.size), np.diff(rows.indptr))
        held = np.zeros((sign.size, n), dtype=np.int64)
        np.add.at(held, (row, document[rows.indices]), 1)
        member = held > 0
        if (held != np.where(member, cells, 0)).any():  # some position is left out
            return None
        low, high = stated.lower[first:], stated.upper[first:]
        low, high = np.where(sign > 0, low, -high), np.where(sign > 0, high, -low)
        order = np.lexsort((np.arange(sign.size), member.sum(axis=1)))
        member, low, high = member[order], low[order], high[order]
        shared = member.astype(np.int64) @ member.T.astype(np.int64)
        size = np.diag(shared)
        inside = shared == size[:, None]  # inside[g, h]: all of g are in h
        if not (inside | inside.T | (shared == 0)).all():
            return None
        later = np.triu(inside, 1)
        groups = sign.size
        parent = np.where(later.any(axis=1), later.argmax(axis=1), groups) if groups else np.zeros(0)
        leaf = np.where(member.any(axis=0), member.argmax(axis=0), groups) if groups else np.zeros(n)
        allowed = np.zeros(k * n, dtype=bool)
        allowed[stated.cell] = True
        return cls(
            frozen(leaf.astype(np.int64)), frozen(parent.astype(np.int64)),
            frozen(np.maximum(low, 0.0).astype(np.int64)), frozen(np.clip(high, 0.0, size).astype(np.int64)),
            frozen(allowed.reshape(k, n)),
        )  # fmt: skip
