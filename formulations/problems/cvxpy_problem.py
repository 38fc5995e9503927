"""A user's `cvxpy.Problem` that is no linear or quadratic program as a problem class; models of other tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.problems.problem import EPSILON, Problem
from formulations.registry import load

AnyProblem: TypeAlias = Problem | Any  # what can be solved: a problem, or a model of another tool

TOOLS = ("cvxpy", "linopy", "pulp", "ortools", "highspy", "gurobipy")
"""Packages whose models `as_problem` reads."""


@dataclass(frozen=True, eq=False)
class CvxpyProblem(Problem):
    """Any `cvxpy.Problem`. Objective and violations are recomputed at the returned point; no bound is proven.

    A point x is the values of all variables, one after the other in C order. Evaluating its value or violation writes
    it into the variables of `statement`, as cvxpy's own solve does.
    """

    statement: Any
    is_maximization: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_maximization", self.statement.objective.NAME == "maximize")

    @property
    def shape_text(self) -> str:
        return f"{sum(v.size for v in self.statement.variables())} variables"

    @property
    def size(self) -> int:
        return int(sum(v.size for v in self.statement.variables()))

    def __str__(self) -> str:
        return str(self.statement)

    @property
    def scale(self) -> float:
        """The magnitude of the objective at the current values of the variables, at least one."""
        value = self.statement.objective.value
        return max(1.0, 0.0 if value is None else abs(float(value)))

    @property
    def rounding(self) -> float:
        return 64.0 * EPSILON * self.scale

    @property
    def tolerance(self) -> float:
        return 1e-6

    def point(self) -> Floats:
        """The current values of the variables, NaN where there is none."""
        parts = [np.full(v.size, np.nan) if v.value is None else _flat(v.value) for v in self.statement.variables()]
        return np.concatenate([np.empty(0), *parts])

    def value(self, x: NDArray[Any]) -> float:
        self._assume(x)
        return float(self.statement.objective.value)

    def violation(self, x: NDArray[Any]) -> float:
        """The worst violation of a constraint, or of an attribute of a variable (nonnegative, integer, ...)."""
        if np.shape(x) != (self.size,) or not np.isfinite(x).all():
            return float("inf")
        self._assume(x)
        worst = [float(np.max(constraint.violation(), initial=0.0)) for constraint in self.statement.constraints]
        for variable in self.statement.variables():
            worst.append(float(np.max(np.abs(_flat(variable.project(variable.value)) - _flat(variable.value)))))
        return max(worst, default=0.0)

    def bound(self, y: Floats) -> float:
        return float("inf") if self.is_maximization else -float("inf")

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {variable.name(): part for variable, part in self.split_point(x)}

    def _assume(self, x: NDArray[Any]) -> None:
        for variable, part in self.split_point(x):
            variable.save_value(part)

    def split_point(self, x: NDArray[Any]) -> list[tuple[Any, NDArray[Any]]]:
        ends = np.cumsum([0, *(v.size for v in self.statement.variables())])
        variables = self.statement.variables()
        return [(v, x[ends[i] : ends[i + 1]].reshape(v.shape)) for i, v in enumerate(variables)]


def as_form(problem: Any) -> Problem:
    """The problem itself, or that of a model of another tool."""
    form: Problem = problem if isinstance(problem, Problem) else load("formulations.solvers.models:as_problem")(problem)
    return form


def is_model(value: Any) -> bool:
    """Whether it is a model that `as_problem` reads, the path of a program, or arguments of linprog."""
    if isinstance(value, str | PathLike):
        return str(value).endswith((".mps", ".lp", ".mps.gz", ".lp.gz"))
    return (isinstance(value, dict) and "c" in value) or any(
        base.__module__.partition(".")[0] in TOOLS for base in type(value).__mro__
    )


def _flat(values: Any) -> Floats:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64).ravel()
