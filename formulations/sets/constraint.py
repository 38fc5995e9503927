"""One named constraint on the cells of a ranking: rows over them, or cells that must stay empty."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.brevity import CompactReprMixin
from formulations.notation.names import Block

__all__ = ["Constraint", "broken", "row_rounding", "rows_of_cells"]

EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class Constraint(CompactReprMixin):
    """lower <= matrix π <= upper, π the k n cells in C order; or π = 0 where `forbids`.

    `labels` names the rows; None for a single row, which has the constraint's own name. `says` is what an error says of
    it, "at most 1 of 3 documents", or of each of its rows.
    """

    name: str
    says: str | tuple[str, ...]
    matrix: csr_array
    lower: Floats
    upper: Floats
    labels: tuple[Hashable, ...] | None = None
    forbids: Bools | None = None

    def __post_init__(self) -> None:
        for part in (self.matrix.data, self.matrix.indices, self.matrix.indptr):
            part.setflags(write=False)
        for name in ("lower", "upper", "forbids"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, frozen(array))

    @property
    def rows(self) -> int:
        return int(self.lower.size)

    @property
    def block(self) -> Block:
        """The names of its rows."""
        return Block(self.name, ()) if self.labels is None else Block(self.name, self.labels, by_label=True)

    def said(self, row: int) -> str:
        """What an error says of a row."""
        return self.says if isinstance(self.says, str) else self.says[row]

    @classmethod
    def mask(cls, name: str, says: str, forbids: Bools) -> Constraint:
        """A constraint that only forbids cells."""
        return cls(name, says, csr_array((0, forbids.size)), np.empty(0), np.empty(0), None, forbids)


def broken(constraints: Iterable[Constraint], order: Ints, n: int) -> dict[str, float]:
    """What a ranking of n documents (the document at each position) breaks: name of a row, pin or ban → by how much."""
    cells = np.arange(order.size) * n + order
    found: dict[str, float] = {}
    for constraint in constraints:
        if constraint.forbids is not None and constraint.forbids.ravel()[cells].any():
            found[constraint.name] = float(constraint.forbids.ravel()[cells].sum())
        if constraint.rows:
            reached = np.asarray(constraint.matrix[:, cells].sum(axis=1)).ravel()
            off = np.maximum(constraint.lower - reached, reached - constraint.upper)
            over = off > row_rounding(constraint.matrix, constraint.lower, constraint.upper, order.size)
            found.update({constraint.block.name(r): float(off[r]) for r in np.flatnonzero(over).tolist()})
    return found


def row_rounding(matrix: csr_array, lower: Floats, upper: Floats, terms: int) -> Floats:
    """(rows,) by how much rounding may put a sum of `terms` coefficients beyond a limit: 0.1 + 0.2 is not 0.3."""
    largest = np.zeros(lower.size)
    np.maximum.at(largest, np.repeat(np.arange(lower.size), np.diff(matrix.indptr)), np.abs(matrix.data))
    limit = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (lower, upper)))
    return 4.0 * EPSILON * terms * (terms * largest + limit)


def rows_of_cells(rows: list[tuple[Ints, Ints]], k: int, n: int) -> csr_array:
    """(r, k n) ones: row r on the cells positions × documents that entry r names."""
    cells = [(positions[:, None] * n + documents).ravel() for positions, documents in rows]
    indptr = np.cumsum([0, *(part.size for part in cells)])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *cells])
    return csr_array((np.ones(columns.size), columns, indptr), shape=(len(rows), k * n))
