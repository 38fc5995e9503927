"""Convex quadratic programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Floats, finite
from formulations.errors import InvalidProblem
from formulations.forms.form import EPSILON, Form
from formulations.forms.linear_program import LinearProgram
from formulations.notation.program import Program

__all__ = ["QuadraticProgram"]


@dataclass(frozen=True, eq=False)
class QuadraticProgram(Form):
    """min ½ xᵀ hessian x + linear · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `hessian` is symmetric and positive semidefinite (the caller's promise: the bound below rests on it). A dual y
    holds a row price each, followed by a point z at which the objective is linearised.
    """

    hessian: csr_array
    linear: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats

    maximises = False

    def __post_init__(self) -> None:
        hessian = csr_array(self.hessian, dtype=np.float64, copy=True)
        finite("hessian entries", hessian.data, 1)
        for part in (hessian.data, hessian.indices, hessian.indptr):
            part.setflags(write=False)
        object.__setattr__(self, "hessian", hessian)
        rest = self._feasible_set
        for name in ("matrix", "row_lower", "row_upper", "lower", "upper"):
            object.__setattr__(self, name, getattr(rest, name))
        object.__setattr__(self, "linear", rest.objective)
        if hessian.shape != (self.linear.size, self.linear.size):
            raise InvalidProblem(f"hessian has shape {hessian.shape} for {self.linear.size} variables")

    @classmethod
    def of(cls, program: Program) -> QuadraticProgram:
        """The form of a program that minimises a convex objective of second degree."""
        if program.hessian is None or program.maximises:
            raise InvalidProblem("a quadratic program minimises and has a hessian; this program does not")
        limits = (program.row_lower, program.row_upper, program.lower, program.upper)
        return cls(program.hessian, program.objective, program.matrix, *limits)

    @property
    def program(self) -> Program:
        return replace(self._feasible_set.program, hessian=self.hessian)

    def linearised(self, objective: Floats) -> LinearProgram:
        """The linear program over the same feasible set with this objective."""
        limits = (self.row_lower, self.row_upper, self.lower, self.upper)
        return LinearProgram(objective, self.matrix, *limits, maximises=False)

    @cached_property
    def _feasible_set(self) -> LinearProgram:
        return self.linearised(self.linear)

    @property
    def extent(self) -> str:
        return f"{self.row_lower.size} rows × {self.linear.size} variables"

    @property
    def size(self) -> int:
        return int(self.matrix.nnz + self.hessian.nnz) + self.linear.size

    @property
    def scale(self) -> float:
        """Σ |objective|, every variable at its largest finite limit or at one."""
        reach = self._feasible_set.reach
        return float(np.abs(self.linear) @ reach + reach @ (abs(self.hessian) @ reach))

    @property
    def rounding(self) -> float:
        return 64.0 * EPSILON * self.scale

    @property
    def tolerance(self) -> float:
        return self._feasible_set.tolerance

    def value(self, x: NDArray[Any]) -> float:
        return float(0.5 * x @ (self.hessian @ x) + self.linear @ x)

    def violation(self, x: NDArray[Any]) -> float:
        return self._feasible_set.violation(x)

    def bound(self, y: Floats) -> float:
        """Convexity: f(x) >= ½ zᵀHz + qᵀz + ∇f(z)ᵀ(x - z) = -½ zᵀHz + ∇f(z)ᵀx for every z; then weak duality in x."""
        rows = self.row_lower.size
        prices, z = y[:rows], y[rows:]
        gradient = self.hessian @ z + self.linear
        return float(-0.5 * z @ (self.hessian @ z)) + self.linearised(gradient).bound(prices)
