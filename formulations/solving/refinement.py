"""Answers of solvers, improved and checked by the data: better bounds than the duals prove, and verdicts.

An assignment is solved by SciPy, and the duals that are recovered from its answer prove the optimum.

A solver without duals, or with duals that are off by its tolerance, leaves a gap. The duals of HiGHS for the linear
program (of the relaxation, if it has integers) close most. Where a reduced cost is 0 up to rounding for a variable
without a limit, a small step towards duals with the largest reduced costs there makes it positive: the cost of the step
is part of the bound.

A point that satisfies all constraints contradicts the verdict "infeasible". "Unbounded" is contradicted if no variable
can improve the objective without reaching a limit (its own, or one that rows imply), if duals prove a bound, or if no
direction that keeps all constraints improves it, which is a linear program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, vstack

from formulations.arrays import Floats
from formulations.errors import FormulationError, InfeasibleError, InvalidSolutionError, UnboundedError
from formulations.problems.assignment import Assignment
from formulations.problems.dual_enclosure import unit_each
from formulations.problems.linear_program import LinearProgram, implied_limits
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.highs import Highs, feasible_point, rescaled
from formulations.solvers.scipy import Scipy
from formulations.time_limit import seconds_left

TABLE = 1 << 20  # the largest number of cells of an assignment that is solved again for its duals
TIGHT = 1e-9  # the relative gap that needs no better bound
STEPS = (1e-11, 1e-8)  # towards duals inside, as a part of the way
FAR = 10.0  # how far away these may be, in the largest dual


GRACE = 1.0  # seconds for the duals of a program whose solver has used up the time limit


def tighten_bound(solution: Solution, has_duals: bool) -> Solution:
    """The solution with the best of its own bound and those of nearby duals. has_duals: whether its own bound is from
    duals of the relaxation, if there are integers."""
    problem = solution.problem
    is_table = isinstance(problem, Assignment | RankTwoAssignment) and problem.size <= TABLE
    is_program = isinstance(problem, LinearProgram | QuadraticProgram) and solution.status is not Status.INACCURATE
    if not is_table and not is_program:
        return solution
    candidates = _candidates(solution)
    while not _is_closed(solution, has_duals):
        duals = next(candidates, None)
        if duals is None:
            break
        if np.isfinite(duals).all():
            has_duals = True
            better = problem.solution(solution.x, duals)
            if better.gap < solution.gap or solution.y is None:
                solution = replace(solution, y=better.y, bound=better.bound, status=better.status)
    return solution


def _is_closed(solution: Solution, has_duals: bool) -> bool:
    """Whether the gap is closed. That of a program with integers may stay open: the bound is that of the relaxation."""
    searched = isinstance(solution.problem, LinearProgram) and solution.problem.integer is not None
    close = (searched and has_duals) or solution.gap <= TIGHT * abs(solution.value)
    return bool(np.isfinite(solution.gap)) and (close or solution.status is Status.OPTIMAL)


def _candidates(solution: Solution) -> Iterator[Floats]:
    """Duals, the cheapest first; in the shape of the problem."""
    problem, duals, tail = solution.problem, solution.y, np.empty(0)
    if isinstance(problem, Assignment | RankTwoAssignment):
        table = problem if isinstance(problem, Assignment) else problem.assignment()
        yield table.recover_dual(Scipy().solve(table).x)
        return
    if isinstance(problem, QuadraticProgram):
        tail = np.asarray(solution.x, dtype=np.float64)
        linear = problem.linearized(problem.hessian @ tail + problem.linear)
        duals = None if duals is None else duals[: problem.row_lower.size]
    else:
        assert isinstance(problem, LinearProgram)
        linear = replace(problem, integer=None)
    with suppress(FormulationError):
        left = seconds_left()
        solver = Highs(time_limit=None if left is None else max(left, GRACE))
        linear = rescaled(linear)[0]
        if solver.reason_unsupported(linear) is None:
            found = solver.solve(linear).y
            if found is not None:
                duals = found
                yield np.concatenate([duals, tail])
    if duals is None or not duals.size or not np.isfinite(duals).all():
        return
    with suppress(FormulationError):
        inside = _inside(linear, duals)
        for step in STEPS:
            yield np.concatenate([duals + step * (inside - duals), tail])


def _inside(problem: LinearProgram, duals: Floats) -> Floats:
    """Duals with large reduced costs at the variables without a limit, by a linear program."""
    sign = -1.0 if problem.is_maximization else 1.0
    open_ = np.flatnonzero(np.isinf(problem.lower) | np.isinf(problem.upper))
    up, down = np.isinf(problem.upper[open_]), np.isinf(problem.lower[open_])
    columns = csr_array(problem.matrix.T[open_])
    length = unit_each(np.asarray(abs(columns).max(axis=1).toarray()).ravel())
    cost = sign * problem.objective[open_]
    # columns duals + length slack <= cost for x >= 0, columns duals - length slack >= cost for x <= 0.
    slack = length * np.where(up & down, 0.0, np.where(up, 1.0, -1.0))
    reach = FAR * max(1.0, float(np.abs(duals).max(initial=0.0)))
    floor = np.where(np.isfinite(problem.row_upper), duals - reach, np.maximum(duals - reach, 0.0))
    ceiling = np.where(np.isfinite(problem.row_lower), duals + reach, np.minimum(duals + reach, 0.0))
    free = np.concatenate([np.zeros(duals.size), np.ones(open_.size)])
    program = LinearProgram(
        objective=free,
        matrix=csr_array(hstack([columns, diags_array(slack)])),
        row_lower=np.where(down, cost, -np.inf),
        row_upper=np.where(up, cost, np.inf),
        lower=np.concatenate([np.minimum(floor, ceiling), np.zeros(open_.size)]),
        upper=np.concatenate([np.maximum(floor, ceiling), np.ones(open_.size)]),
    )
    return Highs(time_limit=seconds_left()).solve(program).x[: duals.size]


SECONDS = 10.0  # the longest search for a point or a direction
STILL = 1e-9  # an improvement of this part of the least cost is none
SATISFIED = 1e-12  # a violation, in the units of its row, that is rounding: more would hide that rows conflict by less


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
    known = None if start is None or np.shape(start.x) != program.objective.shape else start.x
    if known is not None and program.violation(known) <= SATISFIED:
        return "the warm start satisfies all constraints"
    found = program.repair(feasible_point(program, seconds))
    return "a point satisfies all constraints" if program.violation(found) <= SATISFIED else None


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
