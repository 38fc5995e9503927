"""SciPy's assignment solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from formulations.errors import SolverError
from formulations.problems.assignment import Assignment
from formulations.problems.problem import Solution
from formulations.solvers.solver import Solver, SolverResult


@dataclass(frozen=True)
class Scipy(Solver):
    """`scipy.optimize.linear_sum_assignment` (shortest augmenting paths): exact in floats, rectangular; no duals."""

    accepts = (Assignment,)
    package: ClassVar[str] = "scipy"
    spec = "scipy"

    def solve(self, problem: Assignment, warm_start: Solution | None = None) -> SolverResult:
        from scipy.optimize import linear_sum_assignment

        try:
            _, order = linear_sum_assignment(problem.masked_profit(), maximize=True)
        except ValueError as error:
            raise SolverError(f"scipy refused an assignment that is feasible: {error}") from error
        return SolverResult(order, message="linear_sum_assignment returned")
