"""Verdicts of solvers, "infeasible" and "unbounded", checked against the problem's data.

A point that satisfies all constraints contradicts "infeasible". "Unbounded" is contradicted if no variable can improve
the objective without reaching a limit (its own, or one that rows imply), if duals prove a bound, or if no direction
that keeps all constraints improves it, which is a linear program.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import Floats
from formulations.errors import FormulationError, InfeasibleError, InvalidSolutionError, UnboundedError
from formulations.problems.linear_program import LinearProgram, implied_limits
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem, Solution
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.solvers.highs import Highs, feasible_point, rescaled
from formulations.time_limit import seconds_left

SECONDS = 10.0  # the longest search for a point or a direction
STILL = 1e-9  # an improvement of this part of the least cost is none
SATISFIED = 1e-12  # a violation, in the units of its row, that is rounding


def verified_verdict(
    solver: str, problem: Problem, verdict: FormulationError, start: Solution | None, seconds: float
) -> FormulationError:
    """The error to raise for the verdict that took a solver `seconds`: the verdict, or what the data say instead."""
    if isinstance(problem, MinCostFlow):
        program, hessian = LinearProgram.from_program(problem.program), None
    elif isinstance(problem, QuadraticProgram):
        program, hessian = problem.linearized(problem.linear), problem.hessian
    elif isinstance(problem, LinearProgram):
        program, hessian = problem, None
    else:
        return verdict
    limit = min(SECONDS, seconds_left() or np.inf, max(1.0, 3.0 * seconds))
    try:
        if isinstance(verdict, UnboundedError):
            dual = np.zeros(program.row_lower.size + program.lower.size)
            with suppress(InfeasibleError):
                feasible_point(program, limit)
                dual_bound = problem.bound(dual) if isinstance(problem, QuadraticProgram) else np.inf
                if np.isfinite(dual_bound):
                    return _refuted(solver, f"a bound is proved, {dual_bound:.9g}", verdict)
                why = _bounded(program, hessian, limit)
                return verdict if why is None else _refuted(solver, why, verdict)
            empty = InfeasibleError(f"{solver!r} reports an unbounded objective, but no point meets the constraints")
            return _named(program, empty)
        why = _feasible(program, limit, start)
        if why is not None and _steepest(program, hessian, limit)[1] < -STILL:
            return UnboundedError(f"{solver!r} found no optimum: {why}, and a direction improves it without end")
    except FormulationError:
        return _named(program, verdict)
    return _named(program, verdict) if why is None else _refuted(solver, why, verdict)


def _refuted(solver: str, why: str, verdict: FormulationError) -> InvalidSolutionError:
    return InvalidSolutionError(f"{solver!r} is wrong, {why}: {verdict}")


def _named(program: LinearProgram, verdict: FormulationError) -> FormulationError:
    """The verdict "infeasible" with the rows that conflict, as HiGHS finds them; other verdicts unchanged."""
    if not isinstance(verdict, InfeasibleError) or "onflict" in str(verdict):
        return verdict
    try:
        Highs(time_limit=seconds_left()).solve(replace(program, objective=np.zeros(program.objective.size)))
    except InfeasibleError as found:
        return InfeasibleError(f"{verdict}. {str(found).partition('. ')[2]}")
    except FormulationError:
        return verdict
    return verdict


def _feasible(program: LinearProgram, seconds: float, start: Solution | None) -> str | None:
    if start is not None and np.shape(start.x) == program.objective.shape and _satisfies(program, start.x):
        return "the warm start satisfies all constraints"
    found = program.repair(feasible_point(program, seconds))
    return "a point satisfies all constraints" if _satisfies(program, found) else None


def _satisfies(program: LinearProgram, x: Floats) -> bool:
    """Whether x satisfies all constraints up to rounding: a tolerance would hide that they conflict by less."""
    return program.violation(x) <= SATISFIED


def _bounded(program: LinearProgram, hessian: csr_array | None, seconds: float) -> str | None:
    cost = -program.objective if program.is_maximization else program.objective
    lower, upper = implied_limits(program.matrix, program.row_lower, program.row_upper, program.lower, program.upper)
    if hessian is None and np.isfinite(np.where(cost > 0.0, lower, np.where(cost < 0.0, upper, 0.0))).all():
        return "every variable that could improve the objective has a limit"
    if hessian is None:
        relaxed = replace(program, integer=None)
        with suppress(FormulationError):
            y = Highs(time_limit=seconds).solve(rescaled(relaxed)[0]).y
            if y is not None and np.isfinite(relaxed.bound(y)):
                return f"a bound is proved, {relaxed.bound(y):.9g}"
    least = _steepest(program, hessian, seconds)[0]
    return "no direction improves the objective without end" if least >= -STILL else None


def _steepest(program: LinearProgram, hessian: csr_array | None, seconds: float) -> tuple[float, float]:
    """The improvement by the best direction, of at most 1 in each variable, that keeps all constraints and has no
    curvature: a proven bound, and that of the direction found. In units of the least cost; infinite if unknown."""
    cost = -program.objective if program.is_maximization else program.objective
    matrix = program.matrix if hessian is None else csr_array(vstack([program.matrix, hessian]))
    rest = np.zeros(matrix.shape[0] - program.row_lower.size)
    directions = LinearProgram(
        objective=cost,
        matrix=matrix,
        row_lower=np.concatenate([np.where(np.isfinite(program.row_lower), 0.0, -np.inf), rest]),
        row_upper=np.concatenate([np.where(np.isfinite(program.row_upper), 0.0, np.inf), rest]),
        lower=np.where(np.isfinite(program.lower), 0.0, -1.0),
        upper=np.where(np.isfinite(program.upper), 0.0, 1.0),
        is_maximization=False,
    )
    found = Highs(time_limit=seconds).solve(directions)
    least = float(np.abs(cost[cost != 0.0]).min(initial=np.inf))
    if directions.violation(found.x) > STILL:
        return -np.inf, np.inf
    return -np.inf if found.y is None else directions.bound(found.y) / least, directions.value(found.x) / least
