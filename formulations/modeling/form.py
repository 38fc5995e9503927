"""What every form knows of itself: value, feasibility and bound, from its data alone.

A form is a frozen record of arrays that states a problem. Solvers accept forms; bridges restate one form as another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.errors import Unsupported
from formulations.modeling.solution import Solution, judged

__all__ = ["Form"]

EPSILON = 2.0**-52


class Form(ABC):
    """A problem as data. `x` below is a point in the form's own shape, `y` a vector of its dual prices."""

    maximises: bool = True

    solvable: ClassVar[bool] = False
    """Whether every problem of this form, once made, has a solution: a solver that denies it has failed."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The magnitude of the objective: its largest terms, for points of ordinary size."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """An error that double precision may leave in a value or bound of this problem."""

    @property
    @abstractmethod
    def extent(self) -> str:
        """How large the problem is, in its own words."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers its objective and constraints hold."""

    def __str__(self) -> str:
        from formulations.modeling.algebra import algebra

        return algebra(self)

    @property
    def tolerance(self) -> float:
        """The violation up to which a point counts as feasible."""
        return 0.0

    @abstractmethod
    def value(self, x: NDArray[Any]) -> float:
        """The objective at x."""

    @abstractmethod
    def violation(self, x: NDArray[Any]) -> float:
        """By how much x breaks the worst of its constraints: 0 for a feasible point, infinity for what is no point."""

    @abstractmethod
    def bound(self, y: Floats) -> float:
        """A bound on the optimum from any dual vector y whatever (weak duality)."""

    def recovered_dual(self, x: NDArray[Any]) -> Floats | None:
        """Dual prices that prove x optimal if it is; None where this form has no such way."""
        return None

    def repaired(self, x: NDArray[Any]) -> NDArray[Any]:
        """A feasible point near x, for forms that have a cheap one; x itself for others."""
        return x

    def order_of(self, x: NDArray[Any]) -> Ints:
        """The document at each position, for forms that place documents."""
        raise Unsupported(f"{type(self).__name__} places no documents, so its solution has no order; read `primal`")

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"x": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"y": y}

    def solution(self, x: NDArray[Any], y: Floats | None = None) -> Solution:
        """The solution with this primal and dual, value and bound recomputed."""
        return judged(self, x, y)

    def write(self, path: str | Path) -> None:
        """Write the problem, restated as a linear or else a quadratic program, to an .mps or .lp file.

        A ranking under constraints is written in whole numbers. A margin dual is written as it is handed to solvers: a
        minimum, in variables and an objective of order one.
        """
        from formulations.modeling.bridges import chains, restated
        from formulations.modeling.linear_program import LinearProgram
        from formulations.modeling.quadratic_program import QuadraticProgram
        from formulations.modeling.writing import write

        if not chains(type(self), (LinearProgram,)):
            program = restated(self, QuadraticProgram)
            write(program.linearised(program.linear), Path(path), program.hessian)
        else:
            write(restated(self, LinearProgram), Path(path))
