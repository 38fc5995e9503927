"""Better bounds of linear and quadratic programs than the duals of a solver prove.

An assignment is solved by SciPy, and the duals that are recovered from its answer prove the optimum.

A solver without duals, or with duals that are off by its tolerance, leaves a gap. The duals of HiGHS for the linear
program (of the relaxation, if it has integers) close most. Where a reduced cost is 0 up to rounding for a variable
without a limit, a small step towards duals with the largest reduced costs there makes it positive: the cost of the step
is part of the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack

from formulations.arrays import Floats
from formulations.errors import FormulationError
from formulations.problems.assignment import Assignment
from formulations.problems.dual_enclosure import unit_each
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution, Status
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.highs import Highs, rescaled
from formulations.solvers.scipy import Scipy
from formulations.time_limit import seconds_left

TABLE = 1 << 20  # the largest number of cells of an assignment that is solved again for its duals
TIGHT = 1e-9  # the relative gap that needs no better bound
STEPS = (1e-11, 1e-8)  # towards duals inside, as a part of the way
FAR = 10.0  # how far away these may be, in the largest dual


def tighten_bound(solution: Solution) -> Solution:
    """The solution with the best of its own bound and those of nearby duals."""
    problem = solution.problem
    if isinstance(problem, Assignment | RankTwoAssignment) and problem.size <= TABLE:
        return _assignment_bound(solution, problem)
    if not isinstance(problem, LinearProgram | QuadraticProgram) or solution.status is Status.INACCURATE:
        return solution
    candidates = _candidates(solution)
    while not _is_closed(solution):
        duals = next(candidates, None)
        if duals is None:
            break
        if np.isfinite(duals).all():
            better = problem.solution(solution.x, duals)
            if better.gap < solution.gap or solution.y is None:
                solution = replace(solution, y=better.y, bound=better.bound, status=better.status)
    return solution


def _assignment_bound(solution: Solution, problem: Assignment | RankTwoAssignment) -> Solution:
    """The solution with the duals of an optimal assignment, if its own leave a gap."""
    if solution.status is Status.OPTIMAL or solution.gap <= TIGHT * abs(solution.value):
        return solution
    table = problem if isinstance(problem, Assignment) else problem.assignment()
    better = problem.solution(solution.x, table.recover_dual(Scipy().solve(table).x))
    if better.gap >= solution.gap:
        return solution
    return replace(solution, y=better.y, bound=better.bound, status=better.status)


def _is_closed(solution: Solution) -> bool:
    """Whether the gap is closed, or finite for a program with integers: its bound is that of the relaxation."""
    searched = isinstance(solution.problem, LinearProgram) and solution.problem.integer is not None
    close = searched or solution.gap <= TIGHT * abs(solution.value)
    return bool(np.isfinite(solution.gap)) and (close or solution.status is Status.OPTIMAL)


def _candidates(solution: Solution) -> Iterator[Floats]:
    """Duals, the cheapest first; in the shape of the problem."""
    problem, duals, tail = solution.problem, solution.y, np.empty(0)
    if isinstance(problem, QuadraticProgram):
        tail = np.asarray(solution.x, dtype=np.float64)
        linear = problem.linearized(problem.hessian @ tail + problem.linear)
        duals = None if duals is None else duals[: problem.row_lower.size]
    else:
        assert isinstance(problem, LinearProgram)
        linear = replace(problem, integer=None)
    with suppress(FormulationError):
        seconds = seconds_left()
        solver = Highs(time_limit=seconds)
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
