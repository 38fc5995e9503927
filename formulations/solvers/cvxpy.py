"""Any solver that cvxpy reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from formulations.errors import Infeasible, SolverFailed, Unbounded, UnknownSolver
from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.quadratic_program import QuadraticProgram
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["Cvxpy"]


@dataclass(frozen=True)
class Cvxpy:
    """A cvxpy back end by its cvxpy name; "" leaves the choice to cvxpy. `options` go to the back end as they are."""

    backend: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    accepts: ClassVar[tuple[type[Form], ...]] = (LinearProgram, GroupedSimplexQP, QuadraticProgram)
    package: ClassVar[str] = "cvxpy"

    @classmethod
    def variant(cls, backend: str) -> Cvxpy:
        known = cls.variants()
        if backend.upper() not in known:
            raise UnknownSolver(f"cvxpy has no installed solver {backend!r}; installed are {', '.join(known)}")
        return cls(backend.upper())

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        import cvxpy

        return tuple(sorted(cvxpy.installed_solvers()))

    @property
    def spec(self) -> str:
        return f"cvxpy:{self.backend}" if self.backend else "cvxpy"

    def declines(self, problem: Form) -> str | None:
        return None

    def solve(self, problem: Any, start: Solution | None = None) -> Answer:
        import cvxpy

        from formulations.margin_dual import stated

        if isinstance(problem, GroupedSimplexQP):
            statement, x, rows = *stated(problem), None
        elif isinstance(problem, LinearProgram):
            statement, x, rows = _linear(problem)
        else:
            statement, x, rows = _quadratic(problem)
        if start is not None and start.x.shape == x.shape:
            x.value = start.x
        try:
            statement.solve(solver=self.backend or None, warm_start=start is not None, **self.options)
        except (cvxpy.error.SolverError, ArithmeticError) as error:
            raise SolverFailed(f"{self.spec!r} gave up: {error}") from error
        # cvxpy does not raise on a status that is no answer: it must be read.
        if statement.status in (cvxpy.INFEASIBLE, cvxpy.INFEASIBLE_INACCURATE):
            raise Infeasible(f"{self.spec!r} found no feasible point ({statement.status})")
        if statement.status in (cvxpy.UNBOUNDED, cvxpy.UNBOUNDED_INACCURATE):
            raise Unbounded(f"{self.spec!r} found the objective unbounded ({statement.status})")
        if x.value is None:
            raise SolverFailed(f"{self.spec!r} returned no point ({statement.status})")
        return Answer(np.asarray(x.value, dtype=np.float64), None if rows is None else rows(), str(statement.status))


def _linear(problem: LinearProgram) -> tuple[Any, Any, Any]:
    import cvxpy

    x = cvxpy.Variable(problem.objective.size, integer=bool(problem.integer is not None and problem.integer.all()))
    direction = cvxpy.Maximize if problem.maximises else cvxpy.Minimize
    constraints, rows = _limits(problem, x)
    return cvxpy.Problem(direction(problem.objective @ x), constraints), x, rows
