"""The integrality gap of one optimum, which is a question apart from total unimodularity.

The relaxation (every variable real) bounds the best integral point; the difference is the integrality gap. It can be 0
without total unimodularity. For a problem whose own variables are real, it is the cost of requiring integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.constraints.constrained_ranking import PenalizedRanking
from formulations.display import CompactReprMixin
from formulations.errors import UnsupportedProblemError
from formulations.integrality.statement import stated
from formulations.problems.cvxpy_problem import AnyProblem
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve

OPEN = 1e-6  # differences below this part of the largest objective coefficient may be solver errors


@dataclass(frozen=True, eq=False)
class IntegralityGap(CompactReprMixin):
    """The relaxation's optimum against the best integral point, values and bounds recomputed from the data.

    integral   whether the gap is within rounding; None if it is larger, but within solver tolerance
    absolute   by how much the relaxation overestimates a maximum (underestimates a minimum)
    relative   the same relative to the integral point's value, or to 1 if that is smaller
    """

    relaxed: Solution
    whole: Solution
    integral: bool | None
    absolute: float
    relative: float

    def __str__(self) -> str:
        if self.integral:
            return f"This optimum is integral: {self.whole.value:g} with and without integrality"
        found = "This optimum is not integral" if self.integral is False else "This optimum may be integral (undecided)"
        return (
            f"{found}: {self.relaxed.value:g} without integers, {self.whole.value:g} with them, "
            f"{self.absolute:g} ({self.relative:.2%}) apart"
            + ("" if self.integral is False else ", which is within solver tolerance")
        )


def integrality_gap(problem: AnyProblem, solver: Solver | str = "highs") -> IntegralityGap:
    """Solve a problem with real and with integer variables, and compare.

    problem  a problem class, or anything that has a linear `program` with an objective
    solver   one that accepts linear programs with integers

    Raises what `solve` raises; `UnsupportedProblemError` for a bare matrix, which has no objective.
    """
    said = stated(problem).program
    if said is None:
        raise UnsupportedProblemError("a matrix has no objective. Give a problem, or use verify_integrality().")
    program = LinearProgram.from_program(said)
    relaxed = solve(replace(program, integer=None), solver)
    every = np.ones(program.objective.size, dtype=np.bool_)
    # What soft rows of fractional coefficients are broken by is no integer.
    marked = problem.linear_program(integer=True).integer if isinstance(problem, PenalizedRanking) else every
    mixed = replace(program, integer=marked)
    best = _better(mixed, solve(mixed, solver), relaxed)
    absolute = max(0.0, (relaxed.value - best.value) * (1.0 if program.is_maximization else -1.0))
    slack = 1e-7 * max(1.0, abs(best.value)) + program.rounding
    near = OPEN * float(np.abs(program.objective).max(initial=0.0))
    integral = True if absolute <= slack else None if absolute <= near else False
    return IntegralityGap(relaxed, best, integral, absolute, absolute / max(1.0, abs(best.value)))


def _better(mixed: LinearProgram, integral: Solution, relaxed: Solution) -> Solution:
    """The integral point found, or the relaxation's if that is integral and better within solver tolerance."""
    assert mixed.integer is not None
    near = np.where(mixed.integer, np.round(relaxed.x), relaxed.x)
    if np.abs(near - relaxed.x).max(initial=0.0) > mixed.tolerance:
        return integral
    found = mixed.solution(near, relaxed.y)
    ahead = (found.value - integral.value) * (1.0 if mixed.is_maximization else -1.0)
    if found.violation > mixed.tolerance or ahead <= 0.0:
        return integral
    return found.with_metadata(solver=relaxed.solver, version=relaxed.version, seconds=integral.seconds)
