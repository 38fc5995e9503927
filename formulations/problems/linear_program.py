"""Linear programs, with or without integers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, check_no_mask, finite, frozen, numbers
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.directed_rounding import Pair, above, below, difference, products, weighted
from formulations.problems.problem import EPSILON, Problem, checked_dual, row_units
from formulations.problems.program import Block, Program, name_at, named, split_by_block

CARE = 1.0 + 1e-9  # limits are worked out in double precision, and taken a little wider


def implied_reach(matrix: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats) -> Floats:
    """(n,) at least |x[j]| of every x with row_lower <= matrix x <= row_upper and lower <= x <= upper, infinite where
    neither its own limits nor a row with the limits of the other variables bound it.

    >>> none = np.full(2, np.inf)
    >>> implied_reach(csr_array([[1.0, 2.0]]), np.array([-np.inf]), np.array([4.0]), np.zeros(2), none).round(6)
    array([4., 2.])
    """
    row = np.repeat(np.arange(row_lower.size), np.diff(matrix.indptr))
    column, weight = matrix.indices, matrix.data
    lowest, highest = lower.copy(), upper.copy()
    held = weight != 0.0
    row, column, weight = row[held], column[held], weight[held]
    for sign, limit in ((1.0, row_upper), (-1.0, -row_lower)):
        # sign * weight x <= limit: the least activity of the other variables bounds this one.
        part = sign * weight
        least = part * np.where(part > 0.0, lower[column], upper[column])
        endless = ~np.isfinite(least)
        finite = np.where(endless, 0.0, least)
        count = np.bincount(row, endless, limit.size)
        total = np.bincount(row, finite, limit.size)
        size = np.bincount(row, np.abs(finite), limit.size)
        known = np.isfinite(limit[row]) & (count[row] - endless == 0)
        allowance = (limit[row] - (total[row] - finite) + (CARE - 1.0) * (size[row] + np.abs(limit[row])))[known]
        at, by = column[known], part[known]
        np.minimum.at(highest, at[by > 0.0], (allowance / by)[by > 0.0])
        np.maximum.at(lowest, at[by < 0.0], (allowance / by)[by < 0.0])
    return np.asarray(np.maximum(np.abs(lowest), np.abs(highest)) * CARE)


def finite_matrix(name: str, matrix: Any) -> csr_array:
    """A read-only copy of a sparse matrix in double precision, duplicates summed; errors as `finite`."""
    check_no_mask(name, matrix)
    try:
        copied = csr_array(matrix, dtype=np.float64, copy=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name} must be numbers; got {type(matrix).__name__} ({error}).") from None
    if copied.ndim != 2:
        raise InvalidProblemError(f"{name} must have 2 dimensions; got shape {copied.shape}.")
    copied.sum_duplicates()
    finite(name, copied.data, 1)
    for part in (copied.data, copied.indices, copied.indptr):
        part.setflags(write=False)
    return copied


def _limits(name: str, values: Floats, size: int) -> Floats:
    array = np.array(numbers(name, values))
    if array.shape != (size,) or np.isnan(array).any():
        raise InvalidProblemError(f"{name} must have {size} entries without NaN, infinite ones for no limit.")
    return frozen(array)


def row_sides(lower: Floats, upper: Floats) -> tuple[Ints, Ints, Ints]:
    """The rows that are equations, those with a lower limit, and those with an upper one."""
    equal = lower == upper
    sides = equal, ~equal & np.isfinite(lower), ~equal & np.isfinite(upper)
    equations, floors, ceilings = (np.flatnonzero(side) for side in sides)
    return equations, floors, ceilings


@dataclass(frozen=True, eq=False, repr=False)
class LinearProgram(Problem):
    """maximise (or minimise) objective · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `integer` marks integer variables. `variables` and `rows` name columns and rows by block. A dual y has one entry per
    row, with the sign of a minimum: y > 0 is the dual of row_lower, y < 0 of row_upper.
    """

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    is_maximization: bool = True
    integer: Bools | None = None
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        matrix = finite_matrix("matrix entries", self.matrix)
        count, size = matrix.shape
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "objective", finite("objective", self.objective, 1))
        if self.objective.size != size:
            raise InvalidProblemError(f"objective has {self.objective.size} entries, but matrix has {size} columns")
        for name, length in (("row_lower", count), ("row_upper", count), ("lower", size), ("upper", size)):
            object.__setattr__(self, name, _limits(name, getattr(self, name), length))
        if self.integer is not None:
            marked = np.array(numbers("integer", self.integer), dtype=np.bool_)
            if marked.shape != (size,):
                raise InvalidProblemError(f"integer has shape {marked.shape}, but matrix has {size} columns")
            object.__setattr__(self, "integer", frozen(marked) if marked.any() else None)
        object.__setattr__(self, "variables", named(self.variables, "x", size))
        object.__setattr__(self, "rows", named(self.rows, "row", count))
        for low, high, blocks in (
            (self.row_lower, self.row_upper, self.rows),
            (self.lower, self.upper, self.variables),
        ):
            crossed = np.flatnonzero(low > high)
            if crossed.size:
                index = int(crossed[0])
                raise InfeasibleError(f"{name_at(blocks, index)} must be at least {low[index]}, at most {high[index]}")

    @classmethod
    def from_program(cls, program: Program) -> LinearProgram:
        """The linear program of a `Program` with a linear objective."""
        return cls(**{name: getattr(program, name) for name in FIELDS})

    @property
    def program(self) -> Program:
        return Program(**{name: getattr(self, name) for name in FIELDS})

    @property
    def shape_text(self) -> str:
        return f"{self.row_lower.size} rows × {self.objective.size} variables"

    @property
    def size(self) -> int:
        return int(self.matrix.nnz) + self.objective.size

    @property
    def scale(self) -> float:
        """Σ |objective|, every variable at its largest finite limit, at least one."""
        return float(np.abs(self.objective) @ self.reach)

    @cached_property
    def reach(self) -> Floats:
        """The largest finite limit of each variable, at least one."""
        finite_limits = [np.where(np.isfinite(limit), np.abs(limit), 1.0) for limit in (self.lower, self.upper)]
        return np.maximum(1.0, np.maximum(*finite_limits))

    @property
    def rounding(self) -> float:
        return 64.0 * EPSILON * self.scale

    @property
    def tolerance(self) -> float:
        """The feasibility tolerance: 1e-6 of the largest limit, at least of one."""
        limits = (self.row_lower / self.row_units, self.row_upper / self.row_units, self.lower, self.upper)
        return 1e-6 * max(1.0, *(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part in limits))

    @cached_property
    def row_units(self) -> Floats:
        """The scale of each row for its violation: 1 if its numbers are of order one."""
        return row_units(self.matrix)

    def value(self, x: NDArray[Any]) -> float:
        return float(self.objective @ x)

    def violation(self, x: NDArray[Any]) -> float:
        """The largest violation of rows (badly scaled ones in their own unit), limits and integrality."""
        if np.shape(x) != self.objective.shape:
            return float("inf")
        rows = self.matrix @ x
        parts = [(self.row_lower - rows) / self.row_units, (rows - self.row_upper) / self.row_units]
        parts += [self.lower - x, x - self.upper]
        if self.integer is not None:
            parts.append(np.abs(x - np.round(x))[self.integer])
        worst = [float(np.max(part, initial=0.0)) for part in parts]
        return float("inf") if np.isnan(worst).any() else max(worst)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        terms, digits, off = products(self.objective, np.asarray(x, dtype=np.float64))
        return below(terms, digits, -off) if self.is_maximization else above(terms, digits, off)

    def bound(self, y: Floats) -> float:
        """Weak duality: the least of yᵀ(row limits) + (reduced cost)ᵀ(variable limits), in the sense of a minimum.

        A dual of an infinite limit counts as 0. A reduced cost within rounding uses the limit that rows imply for an
        unlimited variable, and counts as 0 if there is none; `certify(exact=True)` does not use this.
        """
        sign = -1.0 if self.is_maximization else 1.0
        prices = checked_dual(y, self.row_lower.size, "rows")
        return sign * self.least(sign * self.objective, np.zeros(self.objective.size), prices)

    def least(self, cost: Floats, digits: Floats, y: Floats, off: Floats | float = 0.0) -> float:
        """A lower bound of the least (cost + digits) · x over feasible points, from duals y, rounded down; the error of
        the cost is at most `off`."""
        prices = self.active_dual(y)
        reduced = difference(cost, self._columns, prices, digits)
        lost = reduced.off + off
        noise = np.maximum(8.0 * EPSILON * (np.abs(cost) + abs(self._columns) @ np.abs(prices)), lost)
        limit = np.where(reduced.high > 0.0, self.lower, self.upper)
        unsure = (np.abs(reduced.high) <= lost) & (lost > 0.0)
        endless = ~np.isfinite(limit) & (reduced.high != 0.0)
        open_ = unsure | endless
        if (endless & (np.abs(reduced.high) > noise)).any():
            return -np.inf
        sure = np.flatnonzero(~open_ & (reduced.high != 0.0))
        pair = Pair(reduced.high[sure], reduced.low[sure], lost[sure])
        parts, wrong = weighted(limit[sure], pair)
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        if np.isinf(reach[open_]).any():
            reach = self._implied
        doubtful = open_ & np.isfinite(reach)
        wrong += CARE * float(((np.abs(reduced.high) + lost)[doubtful] * reach[doubtful]).sum())
        side = np.where(prices > 0.0, self.row_lower, self.row_upper)
        used = prices != 0.0
        terms, row_digits, dropped = products(prices[used], side[used])
        return below(terms, row_digits, *parts, -(wrong + dropped) if wrong + dropped else 0.0)

    @cached_property
    def _columns(self) -> csr_array:
        """The matrix in column format."""
        return csr_array(self.matrix.T)

    @cached_property
    def _implied(self) -> Floats:
        """A bound on each |x[j]| from its limits or from one row; infinite if there is none."""
        return implied_reach(self.matrix, self.row_lower, self.row_upper, self.lower, self.upper)

    def active_dual(self, y: Floats) -> Floats:
        there = np.where(np.asarray(y) > 0, np.isfinite(self.row_lower), np.isfinite(self.row_upper))
        return np.where(there, y, 0.0)

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return split_by_block(self.variables, x)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return split_by_block(self.rows, self.active_dual(y))

    def variable_name(self, column: int) -> str:
        return name_at(self.variables, column)

    def row_name(self, row: int) -> str:
        return name_at(self.rows, row)


FIELDS = tuple(field.name for field in fields(LinearProgram))
