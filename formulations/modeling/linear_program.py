"""Linear programs, with or without integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, finite, frozen
from formulations.errors import Infeasible, InvalidProblem
from formulations.modeling.form import EPSILON, Form
from formulations.modeling.names import Block, name_at, split_by_block

__all__ = ["LinearProgram"]


def _limits(name: str, values: Floats, size: int) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.shape != (size,) or np.isnan(array).any():
        raise InvalidProblem(f"{name} needs {size} numbers (infinite where there is no limit), none of them NaN")
    return frozen(array)


@dataclass(frozen=True, eq=False)
class LinearProgram(Form):
    """maximise (or minimise) objective · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `integer` marks the variables that must be whole. `variables` and `rows` name columns and rows by block. A dual y
    holds one price a row, with the sign of a minimum: y > 0 presses on row_lower, y < 0 on row_upper.
    """

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    maximises: bool = True
    integer: Bools | None = None
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        matrix = csr_array(self.matrix, dtype=np.float64)
        count, size = matrix.shape
        finite("matrix entries", matrix.data, 1)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "objective", finite("objective", self.objective, 1))
        if self.objective.size != size:
            raise InvalidProblem(f"objective has {self.objective.size} entries for {size} columns")
        for name, length in (("row_lower", count), ("row_upper", count), ("lower", size), ("upper", size)):
            object.__setattr__(self, name, _limits(name, getattr(self, name), length))
        if not self.variables:
            object.__setattr__(self, "variables", (Block("x", (size,)),))
        if not self.rows:
            object.__setattr__(self, "rows", (Block("row", (count,)),))
        for low, high, blocks in (
            (self.row_lower, self.row_upper, self.rows),
            (self.lower, self.upper, self.variables),
        ):
            crossed = np.flatnonzero(low > high)
            if crossed.size:
                place = int(crossed[0])
                raise Infeasible(f"{name_at(blocks, place)} must be at least {low[place]} and at most {high[place]}")

    @property
    def rounding(self) -> float:
        reach = np.where(np.isfinite(self.upper), np.abs(self.upper), np.where(np.isfinite(self.lower), 1.0, 1.0))
        return 64.0 * EPSILON * float(np.abs(self.objective) @ np.maximum(reach, 1.0) + np.abs(self.objective).max())

    def value(self, x: NDArray[Any]) -> float:
        return float(self.objective @ x)

    def violation(self, x: NDArray[Any]) -> float:
        rows = self.matrix @ x
        worst = max(
            float(np.max(part, initial=0.0))
            for part in (self.row_lower - rows, rows - self.row_upper, self.lower - x, x - self.upper)
        )
        if self.integer is not None:
            worst = max(worst, float(np.abs(x - np.round(x))[self.integer].max(initial=0.0)))
        return worst

    def bound(self, y: Floats) -> float:
        """Weak duality: the least of yᵀ(row limits) + (reduced cost)ᵀ(variable limits), in the sense of a minimum."""
        sign = -1.0 if self.maximises else 1.0
        reduced = sign * self.objective - self.matrix.T @ y
        return sign * (_pressed(y, self.row_lower, self.row_upper) + _pressed(reduced, self.lower, self.upper))

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return split_by_block(self.variables, x)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return split_by_block(self.rows, y)

    def variable_name(self, column: int) -> str:
        return name_at(self.variables, column)

    def row_name(self, row: int) -> str:
        return name_at(self.rows, row)

    def __str__(self) -> str:
        from formulations.modeling.algebra import algebra

        return algebra(self)


def _pressed(price: Floats, lower: Floats, upper: Floats) -> float:
    """Σ price · limit, the limit that each price presses on; prices of zero press on nothing."""
    limit = np.where(price > 0, lower, upper)
    used = price != 0
    return float((price[used] * limit[used]).sum())
