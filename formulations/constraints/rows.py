"""The rows of a ranking set over its allowed cells, and its soft constraints.

A ranking may violate a soft constraint at a penalty per unit. The violation of a row lower <= a π <= upper is
max(lower - a π, a π - upper, 0), of forbidden cells the number of cells used. The program has a column for each side:

    maximize    Σ profit[i, j] π[i, j] - Σ price[r] (over[r] + under[r])
    subject to  lower <= a π - over + under <= upper,   0 <= over, under <= the largest violation of a ranking

A column with one entry does not change total unimodularity, and these limits are integral if the row's are: the widened
matrix is totally unimodular exactly if that of all rows is. Duals of soft rows are within ± penalty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from formulations.arrays import LARGEST, Bools, Floats, Ints, Memoized, frozen, memoized
from formulations.constraints.constraint import Constraint, row_rounding, violations
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.problems.program import Block, Program, name_at


@dataclass(frozen=True, eq=False)
class SetRows(Memoized, CompactReprMixin):
    """lower <= matrix π <= upper over the allowed cells (position[e], document[e]) in C order.

    The first k rows are the positions; `blocks` names all rows. A document's row is omitted if another row implies it
    (all its cells, at most 1); `own_row` lists the documents that have a row. price: the penalty per unit of each soft
    row, infinite for hard rows; None without soft rows.
    """

    shape: tuple[int, int]
    cell: Ints
    matrix: csr_array
    lower: Floats
    upper: Floats
    blocks: tuple[Block, ...]
    own_row: Ints
    price: Floats | None = None

    @classmethod
    def from_constraints(cls, constraints: Sequence[Constraint], shape: tuple[int, int]) -> SetRows:
        """The rows of the rankings of k of n documents that satisfy the constraints."""
        k, n = shape
        cell = np.flatnonzero(allowed_cells(constraints, shape).ravel())
        row, column = np.arange(cell.size), cell % n
        position = csr_array((np.ones(cell.size), (cell // n, row)), shape=(k, cell.size))
        document = csr_array((np.ones(cell.size), (column, row)), shape=(n, cell.size))
        added = [constraint for constraint in constraints if constraint.rows]
        parts = [constraint.matrix[:, cell] for constraint in added]
        low = np.concatenate([np.empty(0), *(constraint.lower for constraint in added)])
        high = np.concatenate([np.empty(0), *(constraint.upper for constraint in added)])
        extra = csr_array(vstack(parts)) if parts else csr_array((0, cell.size))
        remaining = np.flatnonzero(~implied_documents(extra, high, document))
        matrix = csr_array(vstack([position, document[remaining], extra]))
        matrix.sort_indices()
        names = Block("document", tuple(remaining.tolist()), by_label=True)
        return cls(
            shape=(k, n),
            cell=frozen(cell),
            matrix=matrix,
            lower=frozen(np.concatenate([np.ones(k), np.full(remaining.size, -np.inf), low])),
            upper=frozen(np.concatenate([np.ones(k + remaining.size), high])),
            blocks=(Block("position", (k,)), *([names] if remaining.size else []), *(c.block for c in added)),
            own_row=frozen(remaining),
        )

    @property
    def is_full(self) -> bool:
        """Whether every cell is allowed."""
        return self.cell.size == self.shape[0] * self.shape[1]

    def variables(self, needed: Bools | None = None) -> tuple[Block, ...]:
        """The names of the cells (or of the needed ones)."""
        if self.is_full and needed is None:
            return (Block("π", self.shape),)
        rows, columns = np.divmod(self.cell if needed is None else self.cell[needed], self.shape[1])
        return (Block("π", tuple(zip(rows.tolist(), columns.tolist(), strict=True)), by_label=True),)

    def program(self, profit: Floats, integer: bool = False, needed: Bools | None = None) -> Program:
        """maximize Σ profit[i, j] π[i, j] over the set (or its needed cells); relaxed, or the integer program."""
        cell = self.cell if needed is None else self.cell[needed]
        matrix = self.matrix if needed is None else self.matrix[:, needed]
        limits = self.lower, self.upper, np.zeros(cell.size), np.ones(cell.size)
        marked, names = np.ones(cell.size, dtype=bool) if integer else None, self.variables(needed)
        return Program(profit.ravel()[cell], matrix, *limits, integer=marked, variables=names, rows=self.blocks)

    @cached_property
    def integral_rows(self) -> Bools:
        """Which rows have integer coefficients and integer (or infinite) limits."""
        fractional = np.zeros(self.lower.size, dtype=bool)
        rows = np.repeat(np.arange(self.lower.size), np.diff(self.matrix.indptr))
        np.logical_or.at(fractional, rows, self.matrix.data != np.round(self.matrix.data))
        for limit in (self.lower, self.upper):
            fractional |= np.isfinite(limit) & (limit != np.round(limit))
        return frozen(~fractional)

    @cached_property
    def weights(self) -> csr_array:
        """(cells, rows after the positions) the coefficients of each cell."""
        return csr_array(self.matrix[self.shape[0] :].T)

    @cached_property
    def index(self) -> Ints:
        """(k n,) the index of each cell among the allowed ones, -1 for a forbidden cell."""
        index = np.full(self.shape[0] * self.shape[1], -1)
        index[self.cell] = np.arange(self.cell.size)
        return frozen(index)

    @cached_property
    def rounding(self) -> Floats:
        """Rounding errors of the sums of the rows after the positions."""
        k = self.shape[0]
        return frozen(row_rounding(csr_array(self.matrix[k:]), self.lower[k:], self.upper[k:], k))

    def excess(self, order: Ints) -> Floats:
        """The violation of each row after the positions by a ranking of allowed cells."""
        k, n = self.shape
        cell = self.index[np.arange(k) * n + order]
        starts, ends = self.weights.indptr[cell], self.weights.indptr[cell + 1]
        entries = np.concatenate([np.arange(a, b) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
        reached = np.bincount(self.weights.indices[entries], self.weights.data[entries], self.lower.size - k)
        off = np.maximum(self.lower[k:] - reached, reached - self.upper[k:])
        return np.where(off > self.rounding, off, 0.0)

    @cached_property
    def group(self) -> Ints | None:
        """The row, other than a position, of each cell, if each is in exactly one and all of these are "at most 1";
        else None. Then the set is a matching of positions and rows [ORM, Corollary 7]."""
        k = self.shape[0]
        if self.price is not None:
            return None
        others = self.matrix[k:]
        limits = (self.upper[k:] == 1.0).all() and (self.lower[k:] <= 0.0).all()
        if not limits or others.nnz != self.cell.size or not (others.data == 1.0).all():
            return None
        by_cell = others.tocsc()
        if not (np.diff(by_cell.indptr) == 1).all():
            return None
        return frozen(by_cell.indices.astype(np.int64))

    @cached_property
    def blocks_of(self) -> Ints | None:
        """(n,) the block of each document, from 0, where the set is Π(B, k) for some blocks; else None."""
        if self.group is None or not self.is_full:
            return None
        by_position = self.group.reshape(self.shape)
        if (by_position != by_position[0]).any():
            return None
        return frozen(np.unique(by_position[0], return_inverse=True)[1].astype(np.int64))


def allowed_cells(constraints: Iterable[Constraint], shape: tuple[int, int]) -> Bools:
    """(k, n) the cells that no constraint forbids."""
    allowed = np.ones(shape, dtype=bool)
    for constraint in constraints:
        if constraint.forbids is not None:
            allowed &= ~constraint.forbids
    return frozen(allowed)


def implied_documents(extra: csr_array, upper: Floats, document: csr_array) -> Bools:
    """(n,) whether a row of `extra` that is at most 1 holds all cells of a document (or the document has none)."""
    held = np.diff(document.indptr)
    row = np.repeat(np.arange(upper.size), np.diff(extra.indptr))
    below = np.zeros(upper.size, dtype=bool)
    np.logical_or.at(below, row, extra.data < 1.0)
    capping = np.flatnonzero(~below & (upper <= 1.0) & (np.diff(extra.indptr) > 0))
    if not capping.size:
        return np.asarray(held == 0)
    counted = csr_array(extra[capping].astype(bool).astype(np.float64) @ document.T).tocsc()
    most = np.zeros(held.size)
    seen = np.diff(counted.indptr) > 0
    most[seen] = np.maximum.reduceat(counted.data, counted.indptr[:-1][seen])
    return np.asarray(most == held)


@memoized
def reach(stated: SetRows) -> tuple[Floats, Floats]:
    """(rows,) the largest over and under of each soft row over all rankings; 0 for hard rows. Every position takes its
    cell of largest or smallest coefficient."""
    over, under = np.zeros(stated.lower.size), np.zeros(stated.lower.size)
    starts = np.searchsorted(stated.cell, np.arange(stated.shape[0]) * stated.shape[1])
    assert stated.price is not None
    for row in np.flatnonzero(np.isfinite(stated.price)).tolist():
        held = stated.matrix[[row]].toarray().ravel()
        over[row] = max(0.0, float(np.maximum.reduceat(held, starts).sum()) - stated.upper[row])
        under[row] = max(0.0, stated.lower[row] - float(np.minimum.reduceat(held, starts).sum()))
    return over, under


def widened(stated: SetRows, profit: Floats, integer: bool = False, needed: Bools | None = None) -> Program:
    """The program with violation columns, relaxed or integer; over the needed cells only, if passed."""
    plain = stated.program(profit, integer, needed)
    price = stated.price
    assert price is not None
    sides = reach(stated)
    over, under = (np.flatnonzero(side > 0.0) for side in sides)
    rows = np.concatenate([over, under])
    sign = np.repeat([-1.0, 1.0], [over.size, under.size])
    columns = csr_array((sign, (rows, np.arange(rows.size))), shape=(stated.lower.size, rows.size))
    count = plain.objective.size
    integral = np.concatenate([np.ones(count, dtype=bool), stated.integral_rows[rows]])
    violated = [
        Block(label, tuple(name_at(stated.blocks, row) for row in side.tolist()))
        for label, side in (("over", over), ("under", under))
        if side.size
    ]
    return Program(
        objective=np.concatenate([plain.objective, -price[rows]]),
        matrix=csr_array(hstack([plain.matrix, columns])),
        row_lower=plain.row_lower,
        row_upper=plain.row_upper,
        lower=np.zeros(count + rows.size),
        upper=np.concatenate([plain.upper, sides[0][over], sides[1][under]]),
        integer=integral if integer else None,
        variables=(*plain.variables, *violated),
        rows=plain.rows,
    )


@dataclass(frozen=True, eq=False)
class SoftConstraint(CompactReprMixin):
    """A constraint (of a set, or of cvxpy) and the penalty for a unit of violation."""

    constraint: Any
    penalty: float

    @property
    def name(self) -> str:
        return str(self.constraint.name)


def penalized(constraint: Any, *, penalty: float) -> SoftConstraint:
    """A cvxpy constraint that may be violated at a penalty per unit, for `RankingSet.from_cvxpy`.

    Sets have `RankingSet.penalized(name, penalty=...)`, as `Admissible` has, TOML files a key `penalty`. Raises
    InvalidProblemError for a penalty that is not a number from 0 to 1e150.
    """
    if isinstance(constraint, SoftConstraint | str) or not hasattr(constraint, "args"):
        raise InvalidProblemError(f"got {constraint!r}, no constraint of cvxpy; see RankingSet(...).penalized()")
    return SoftConstraint(constraint, valid_penalty(penalty))


def valid_penalty(penalty: Any, name: Any = "") -> float:
    """The penalty (of a constraint of this name) as a float, or InvalidProblemError."""
    number = penalty.item() if isinstance(penalty, np.generic) else penalty
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number <= LARGEST:
        whose = f" of {name!r}" if isinstance(name, str) and name else ""
        raise InvalidProblemError(f"The penalty{whose} must be a number from 0 to {LARGEST:g}; got {penalty!r}.")
    return float(number)


def charge_of(soft: Iterable[SoftConstraint], order: Ints, n: int) -> float:
    """The penalties of a ranking of n documents (the document at each position)."""
    return float(sum(one.penalty * sum(violations([one.constraint], order, n).values()) for one in soft))


def cell_penalties(soft: Iterable[SoftConstraint], shape: tuple[int, int]) -> Floats:
    """(k, n) the penalty of each cell that soft constraints forbid."""
    cost = np.zeros(shape)
    for one in soft:
        if one.constraint.forbids is not None:
            cost += one.penalty * one.constraint.forbids.reshape(shape)
    return frozen(cost)


def with_soft_rows(compiled: SetRows, soft: Iterable[SoftConstraint], charge: float = 1.0) -> SetRows:
    """The rows of a set, followed by those of its soft constraints at `charge` times their penalties."""
    rows = [one for one in soft if one.constraint.rows]
    held: list[Constraint] = [one.constraint for one in rows]
    count = compiled.lower.size
    matrix = csr_array(vstack([compiled.matrix, *(one.matrix[:, compiled.cell] for one in held)]))
    matrix.sort_indices()
    costs = [np.full(one.constraint.rows, charge * one.penalty) for one in rows]
    return replace(
        compiled,
        matrix=matrix,
        lower=frozen(np.concatenate([compiled.lower, *(one.lower for one in held)])),
        upper=frozen(np.concatenate([compiled.upper, *(one.upper for one in held)])),
        blocks=(*compiled.blocks, *(one.block for one in held)),
        price=frozen(np.concatenate([np.full(count, np.inf), *costs])),
    )
