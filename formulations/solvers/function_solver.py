"""A function as a solver.

>>> from formulations import RankTwoAssignment, ranking, solve
>>> def by_score(problem):
...     return np.argsort(-problem.scores, kind="stable")[: problem.positions]
>>> problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
>>> solution = solve(problem, function_solver(by_score, accepts=RankTwoAssignment))
>>> solution.solver, solution.status.name, solution.order
('own:by_score', 'BOUNDED_GAP', array([0, 1]))
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import check_type, each
from formulations.errors import InvalidSolutionError, UnknownSolverError
from formulations.problems.assignment import Assignment, OrderProblem
from formulations.problems.cvxpy_problem import is_model
from formulations.problems.problem import Problem, Solution
from formulations.solvers.cvxpy_models import solve_statement
from formulations.solvers.solver import Solver, SolverResult


@dataclass(frozen=True)
class FunctionSolver:
    """A function as a solver; see `function_solver`."""

    function: Callable[[Any], Any]
    accepts: tuple[type[Problem], ...]
    name: str
    package: str = ""
    declining: Callable[[Any], str | None] | None = None

    @property
    def spec(self) -> str:
        return f"own:{self.name}"

    def cure_of(self, error: BaseException, problem: Problem) -> str:
        """Where the data are, after an error of a function that may have taken the problem for its matrix."""
        own = "costs, to minimize, or problem.masked_profit(), to maximize"
        data = own if isinstance(problem, Assignment) else "program.objective, problem.program.matrix"
        is_misread = isinstance(error, AttributeError | TypeError | ValueError)
        return f". The function receives this {type(problem).__name__}; read problem.{data}" if is_misread else ""

    def reason_unsupported(self, problem: Problem) -> str | None:
        return None if self.declining is None else self.declining(problem)

    def solve(self, problem: Any, warm_start: Solution | None = None) -> SolverResult:
        """The function's answer; the claims of a `Solution` are stored for comparison with what is proved."""
        answer = self.function(problem)
        if isinstance(answer, Solution):
            claims = {"reported_value": float(answer.value), "reported_bound": float(answer.bound)}
            details = {**answer.details, **claims, "reported_status": answer.status.name}
            return SolverResult(answer.x, answer.y, answer.message, details)
        if isinstance(answer, SolverResult):
            return answer
        if is_model(answer):
            return solve_statement(answer, problem)
        if isinstance(problem, OrderProblem):
            return SolverResult(order_from(answer, problem))
        point = _array(answer)
        if not point.ndim:
            raise InvalidSolutionError(
                f"a solver function must return a point of {type(problem).__name__} ({problem.shape_text}) as an array "
                f"of numbers, a SolverResult, a Solution or a cvxpy.Problem; got {answer!r:.80}."
            )
        return SolverResult(point)


def _array(answer: Any) -> NDArray[Any]:
    """The answer as an array of numbers; one without dimensions if it is none."""
    try:
        point = np.asarray(answer)
    except ValueError:
        point = np.asarray(None)
    if point.dtype.kind not in "biuf":
        return np.asarray(np.nan)
    return point.astype(np.int64) if point.dtype.kind == "b" else point


def order_from(answer: Any, problem: OrderProblem) -> NDArray[Any]:
    """The document at each position, from such an order, a 0/1 matrix (positions, documents), or a pair
    (rows, columns) as `scipy.optimize.linear_sum_assignment` returns it."""
    k, n = problem.positions, problem.documents
    if isinstance(answer, tuple) and len(answer) == 2 and all(np.shape(one) == (k,) for one in answer):
        rows, columns = map(_array, answer)
        if (np.sort(rows) == np.arange(k)).all():
            return columns[np.argsort(rows)]
    point = _array(answer)
    if point.shape == (k, n) and ((point == 0) | (point == 1)).all() and (point.sum(axis=1) == 1).all():
        return np.asarray(point.argmax(axis=1))
    if point.shape == (k,) and (point == np.floor(point)).all():
        return point.astype(np.int64)
    raise InvalidSolutionError(
        f"for {k} positions and {n} documents a solver function must return the document at each position, shape "
        f"({k},), a 0/1 matrix of shape ({k}, {n}) with one 1 in each row, or a pair (rows, columns) of shape ({k},); "
        f"got {answer!r:.80}{f' of shape {point.shape}' if point.ndim else ''}."
    )


def function_solver(
    function: Callable[[Any], Any],
    *,
    accepts: type[Problem] | Iterable[type[Problem]] = (),
    name: str | None = None,
    package: str = "",
    rejects: Callable[[Any], str | None] | None = None,
) -> FunctionSolver:
    """A function as a solver, accepted wherever a solver is: `solve`, rankers, `SolverSwap`.

    Args:
        function: maps a problem to a point, a `SolverResult(x, y)` with duals, a `Solution`, or a cvxpy.Problem made
            by changing `problem.to_cvxpy()`, which cvxpy then solves. An `Assignment` has its matrix in `costs`, to
            minimize, and in `masked_profit()`, to maximize. The point of a ranking or an assignment is the document at
            each position, a 0/1 matrix, or a pair (rows, columns). Value, feasibility and bound are recomputed for the
            unchanged problem; without duals the bound is recovered from the point.
        accepts: the problem classes that the function accepts, one at least; bridges restate others, such as a ranking
            as an `Assignment` or a `LinearProgram`, and map the answer back.
        name: its name in results, after "own:"; by default the function's name.
        package: the distribution whose version is reported.
        rejects: the reason why a problem of an accepted class cannot be solved ("integers only"); None if it can.

    `formulations.testing.check_solver(function_solver(...))` runs the checks that our own solvers pass.
    """
    forms = each("accepts", accepts, UnknownSolverError) if hasattr(accepts, "__iter__") else (accepts,)
    wrong = [form for form in forms if not (isinstance(form, type) and issubclass(form, Problem))]
    if wrong or not forms:
        got = wrong or "none"
        raise UnknownSolverError(f"accepts must be problem classes, such as Assignment or LinearProgram; got {got}.")
    if not callable(function):
        raise UnknownSolverError(f"function must be a function of a problem; got {function!r:.80}.")
    check_type("name", name, str, type(None), error=UnknownSolverError)
    label = str(name or getattr(function, "__name__", type(function).__name__))
    return FunctionSolver(function, forms, label, package, rejects)


def imported(location: str) -> Solver:
    """The solver at "module:attribute": an object, such as `function_solver` makes, or a class with its defaults."""
    module, _, attribute = location.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownSolverError(f"no solver at {location!r}: {error}; pass an installed module:attribute") from error
    solver = found() if isinstance(found, type) else found
    if not isinstance(solver, Solver):
        kind = type(solver).__name__
        cure = f" Wrap it, as in MINE = function_solver({attribute}, accepts=Assignment), and name {module}:MINE"
        raise UnknownSolverError(f"{location!r} must be a solver; got a {kind}.{cure if callable(solver) else ''}")
    if isinstance(solver, FunctionSolver) and solver.name == "<lambda>":
        return replace(solver, name=attribute)
    return solver
