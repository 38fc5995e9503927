"""Convex quadratic programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import lsqr

from formulations.arrays import Floats
from formulations.errors import InvalidProblemError
from formulations.problems.directed_rounding import Pair, above, added, below, difference, products, weighted
from formulations.problems.linear_program import LinearProgram, finite_matrix, rounding_of_terms
from formulations.problems.problem import EPSILON, Problem, checked_dual
from formulations.problems.program import Program

TRIES = 4  # maximum number of corrections of duals without a bound


@dataclass(frozen=True, eq=False)
class QuadraticProgram(Problem):
    """min ½ xᵀ hessian x + linear · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `hessian` is symmetric and positive semidefinite (not checked; the bound requires it). A dual y has
    one entry per row, followed by a point z at which the objective is linearised.
    """

    hessian: csr_array
    linear: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats

    is_maximization = False

    def __post_init__(self) -> None:
        hessian = finite_matrix("hessian entries", self.hessian)
        object.__setattr__(self, "hessian", hessian)
        rest = self._feasible_set
        for name in ("matrix", "row_lower", "row_upper", "lower", "upper"):
            object.__setattr__(self, name, getattr(rest, name))
        object.__setattr__(self, "linear", rest.objective)
        if hessian.shape != (self.linear.size, self.linear.size):
            raise InvalidProblemError(f"hessian has shape {hessian.shape}, but there are {self.linear.size} variables")

    @classmethod
    def from_program(cls, program: Program) -> QuadraticProgram:
        """The quadratic program of a `Program` that minimises a convex quadratic objective."""
        if program.hessian is None or program.is_maximization:
            raise InvalidProblemError("a quadratic program must minimise and have a hessian")
        limits = (program.row_lower, program.row_upper, program.lower, program.upper)
        return cls(program.hessian, program.objective, program.matrix, *limits)

    @property
    def program(self) -> Program:
        return replace(self._feasible_set.program, hessian=self.hessian)

    def linearised(self, objective: Floats) -> LinearProgram:
        """The linear program over the same feasible set with this objective."""
        limits = (self.row_lower, self.row_upper, self.lower, self.upper)
        return LinearProgram(objective, self.matrix, *limits, is_maximization=False)

    @cached_property
    def _feasible_set(self) -> LinearProgram:
        return self.linearised(self.linear)

    @property
    def shape_text(self) -> str:
        return f"{self.row_lower.size} rows × {self.linear.size} variables"

    @property
    def size(self) -> int:
        return int(self.matrix.nnz + self.hessian.nnz) + self.linear.size

    @property
    def scale(self) -> float:
        """Σ |objective|, every variable at its largest finite limit, at least one."""
        reach = self._feasible_set.reach
        return float(np.abs(self.linear) @ reach + reach @ (abs(self.hessian) @ reach))

    @property
    def rounding(self) -> float:
        return 64.0 * EPSILON * self.scale

    def rounding_at(self, x: NDArray[Any]) -> float:
        size = np.abs(x)
        terms = np.abs(self.linear) @ size + size @ (abs(self.hessian) @ size)
        return min(self.rounding, rounding_of_terms(np.append(self.hessian.data, self.linear), terms))

    @property
    def tolerance(self) -> float:
        return self._feasible_set.tolerance

    def value(self, x: NDArray[Any]) -> float:
        return float(0.5 * x @ (self.hessian @ x) + self.linear @ x)

    def violation(self, x: NDArray[Any]) -> float:
        return self._feasible_set.violation(x)

    def repair(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._feasible_set.repair(x)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        point = np.asarray(x, dtype=np.float64)
        terms, digits, off = products(self.linear, point)
        bent, lost = weighted(0.5 * point, self._bent(point))
        return above(terms, digits, *bent, off + lost)

    def bound(self, y: Floats) -> float:
        """Convexity: f(x) >= ½ zᵀHz + qᵀz + ∇f(z)ᵀ(x - z) = -½ zᵀHz + ∇f(z)ᵀx for every z; then weak duality in x.

        Every z and every row dual give a bound. If that of y is infinite, as with a reduced cost of -1e-9 of an
        unbounded variable, nearby duals with the right sign are tried.
        """
        rows, size = self.row_lower.size, self.linear.size
        prices, z = np.split(checked_dual(y, rows + size, f"entries ({rows} rows, {size} variables)"), [rows])
        found = self._bound_at(prices, z)
        for _ in range(TRIES):
            if found > -np.inf or not (np.isfinite(prices).all() and np.isfinite(z).all()):
                break
            prices, z = self._turned(prices, z)
            found = self._bound_at(prices, z)
        return found

    def _turned(self, prices: Floats, z: Floats) -> tuple[Floats, Floats]:
        """Nearby duals and point, by least squares, whose reduced costs do not point in an unbounded direction. Only
        nonzero duals change; their sign does not."""
        prices = self._feasible_set.active_dual(prices)
        with np.errstate(all="ignore"):
            reduced = self.hessian @ z + self.linear - self.matrix.T @ prices
        wrong = np.where(np.isinf(self.upper), np.minimum(reduced, 0.0), 0.0)
        wrong += np.where(np.isinf(self.lower), np.maximum(reduced, 0.0), 0.0)
        free = np.isinf(self.upper) & np.isinf(self.lower)
        endless = np.flatnonzero(wrong)
        used = np.flatnonzero(prices)
        if not endless.size or not np.isfinite(reduced).all():
            return prices, z
        moved = hstack([self.hessian[endless], -self.matrix[used].T[endless]], format="csr")
        aim = -np.where(free, 1.0, 2.0)[endless] * wrong[endless]
        step = lsqr(moved, aim, atol=1e-15, btol=1e-15)[0]
        turned = prices.copy()
        turned[used] += step[z.size :]
        return np.where(turned * prices > 0.0, turned, 0.0), z + step[: z.size]

    def _bound_at(self, prices: Floats, z: Floats) -> float:
        bent = self._bent(z)
        curved, lost = weighted(-0.5 * z, bent)
        cost, digits = added(self.linear, bent.high)
        off = bent.off + EPSILON**2 * (np.abs(cost) + np.abs(digits) + np.abs(bent.high)) * (bent.low != 0.0)
        return below(self._feasible_set.least(cost, digits + bent.low, prices, off), *curved, -lost)

    def _bent(self, x: Floats) -> Pair:
        """hessian x."""
        bent = difference(np.zeros(x.size), self.hessian, x)
        return Pair(-bent.high, -bent.low, bent.off)

    def active_dual(self, y: Floats) -> Floats:
        rows = self.row_lower.size
        return np.concatenate([self._feasible_set.active_dual(y[:rows]), y[rows:]])
