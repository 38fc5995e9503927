"""solve(): find a chain of bridges to the solver, restate, solve, map the answer back and verify it. Solver options.

solve_batch(): many problems, at once if the solver accepts batches, else one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from time import perf_counter
from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, check_positive, check_type, numbers
from formulations.bridges import Chain, crossings
from formulations.bridges.widening import Back
from formulations.errors import (
    FormulationError,
    FractionalSolutionError,
    InfeasibleError,
    InvalidProblemError,
    InvalidSolutionError,
    SolverCrashError,
    SolverError,
    UnboundedError,
    UnknownSolverError,
    UnsupportedProblemError,
)
from formulations.problems.assignment import OrderProblem
from formulations.problems.cvxpy_problem import AnyProblem, as_form, is_model
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.solvers import as_solver, compatible_solvers, default_solvers, get_solver, version_of
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.function_solver import FunctionSolver, function_solver
from formulations.solvers.highs import Highs, refit
from formulations.solvers.solver import BatchSolver, Solver, SolverResult, check_limits
from formulations.solving.refinement import tighten_bound, verified_verdict
from formulations.solving.split_costs import solve_in_steps
from formulations.time_limit import is_used_up, limited_time, restored_interruptions, seconds_left

WORDS = {"time_limit": "limit of time", "threads": "choice of threads", "verbose": "log", "options": "further options"}


def supports_option(solver: Solver | str, option: str) -> bool:
    """Whether a solver has this option. "auto" accepts all but `options` and omits what a solver lacks. Solvers with
    several back ends define `supports_time_limit` and the like."""
    if isinstance(solver, str):
        return option != "options" if solver == "auto" else supports_option(get_solver(solver), option)
    one: Any = solver
    known = is_dataclass(one) and any(entry.name == option for entry in fields(one) if entry.init)
    return known and bool(getattr(one, f"supports_{option}", True))


@dataclass(frozen=True)
class SolveOptions:
    """Solver options passed to `solve()`; None leaves the choice to the solver. Raises UnknownSolverError for values
    that no solver accepts, because solvers report these differently, or read them as no limit."""

    precision: float | None = None
    time_limit: float | None = None
    threads: int | None = None
    verbose: bool | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.precision is not None:
            check_positive(rel_gap=self.precision)
        check_limits(self.time_limit, self.threads, self.verbose, self.options)

    def for_solver(self, solver: Solver, strict: bool) -> Solver:
        """The solver with these options. A tolerance is a request; any other option that the solver lacks raises
        UnknownSolverError if `strict`, and is omitted otherwise."""
        aimed: Any = solver
        for name in ("tolerance", "rel_gap"):
            if self.precision is not None and supports_option(solver, name):
                aimed = replace(aimed, **{name: self.precision})
        for name, word in WORDS.items():
            value = getattr(self, name)
            if value is None:
                continue
            if supports_option(solver, name):
                own = getattr(aimed, name)
                if name == "time_limit":  # the shorter one
                    value = min(value, np.inf if own is None else own)
                aimed = replace(aimed, **{name: {**own, **value} if name == "options" else value})
            elif strict:
                such = "" if name == "options" else ", such as 'auto'"
                raise UnknownSolverError(
                    f"{solver.spec!r} has no {word}; leave out {name}={value!r}, or choose another solver{such}"
                )
        return cast("Solver", aimed)


log = logging.getLogger("formulations")

SHORTEST = 0.01  # seconds that a further solver needs
LOOSE = 1e-6  # the relative gap above which "auto" tries the next solver


def solve(
    problem: AnyProblem,
    solver: Solver | str | Callable[[Any], Any] = "auto",
    warm_start: Solution | None = None,
    *,
    rel_gap: float | None = None,
    directed_rounding: bool = True,
    time_limit: float | None = None,
    threads: int | None = None,
    verbose: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """The solution of `problem`, its value and bound recomputed from the data.

    Args:
        problem: a problem, as a function of the gallery returns it, or a model that `as_problem` reads. The variables
            of a `cvxpy.Problem` get their values, as by its own `solve`; for others see `Solution.assign_to`.
        solver: a solver or its name, such as "ortools", "highs" or "cvxpy:CLARABEL", or a function of the
            problem, as in `function_solver`. A named solver is never replaced.
            "auto" tries the exact solvers for the problem class, the cheapest first, until one closes the gap, and
            returns the best answer with the best bound; it logs its choices.
        warm_start: a solution of a similar problem. "highs" starts from its basis, also after rows or columns were
            added, or from its point, if it is a feasible vertex; integer searches of "highs" and "cp_sat" from any
            point; "active_set" from its weights; "cvxpy" solvers where a `cvxpy.Problem` is solved again. Others ignore
            it, as all do a point of another class of problem, such as the order of an assignment.
        rel_gap: a sufficient relative gap, for solvers with a `tolerance` or `rel_gap`; value and bound are proved in
            any case. By default integer programs are solved to a gap of 0.
        directed_rounding: whether value and bound are rounded outward, so that the optimum lies between them. Without
            it they have rounding errors, for loops with their own margins.
        time_limit: seconds for the solver, the bound and, if there is no solution, the search for a conflict; a shorter
            one of the solver's own stays. "auto" passes what is left of it to each solver that has one.
        threads: of the solver, likewise.
        verbose: whether the solver's package prints its log, likewise.
        options: passed to the solver's package unchanged, under its own names: {"presolve": "off"} for "highs". Only
            for a named solver.

    Raises:
        UnknownSolverError: there is no such solver, it lacks an option, or an option has an invalid value, such as a
            time limit that is not positive.
        UnsupportedProblemError: no chain of bridges leads to what the solver accepts.
        InfeasibleError, UnboundedError: as reported by the solver, unless the data of the problem contradict it.
        SolverError: the solver gave up, or returned a malformed point, or a point of a program with integers that
            violates constraints beyond the tolerance. One without integers that does is returned with the status
            INACCURATE, by "auto" never.
    """
    if not isinstance(problem, Problem):
        solution = solve(
            as_form(problem), solver, warm_start, rel_gap=rel_gap, directed_rounding=directed_rounding,
            time_limit=time_limit, threads=threads, verbose=verbose, options=options,
        )  # fmt: skip
        if hasattr(problem, "unpack"):  # a cvxpy.Problem
            solution.assign_to(problem)
        return solution
    check_type("directed_rounding", directed_rounding, bool)
    if not isinstance(warm_start, Solution | None):
        raise InvalidProblemError(f"warm_start must be a Solution or None; got a {type(warm_start).__name__}.")
    solve_options = SolveOptions(
        rel_gap,
        time_limit,
        threads,
        None if verbose is False else verbose,
        None if isinstance(options, Mapping) and not options else options,
    )
    with limited_time(time_limit):
        if isinstance(solver, str) and solver == "auto":
            if options:
                raise UnknownSolverError(f"options {dict(options)} are of one solver, not 'auto'; name the solver")
            return _cheapest(problem, warm_start, solve_options, directed_rounding)
        named: Any = solver
        if callable(solver) and not isinstance(solver, type) and not hasattr(solver, "solve"):
            named = function_solver(solver, accepts=type(problem))
        chosen = solve_options.for_solver(as_solver(named), strict=True)
        return _solve(problem, chosen, warm_start, directed_rounding)


def _cheapest(problem: Problem, start: Solution | None, solve_options: SolveOptions, outward: bool) -> Solution:
    """The first tight answer of the automatic solvers, else the one with the smallest gap."""
    enough = LOOSE if solve_options.precision is None else max(LOOSE, 4.0 * solve_options.precision)
    failures: list[str] = []
    refusals: list[str] = []
    loose: list[Solution] = []
    for spec in default_solvers(problem):
        if (loose or failures) and (seconds_left() or np.inf) < SHORTEST:
            break  # no time is left for another one
        try:
            left = replace(solve_options, time_limit=seconds_left())
            solution = _solve(problem, left.for_solver(get_solver(spec), strict=False), start, outward)
        except UnsupportedProblemError as error:
            refusals.append(f"{spec}: {error}")
            continue
        except SolverError as error:
            reason = str(error)
        else:
            if solution.status is not Status.INACCURATE:
                size = max(abs(solution.value), abs(solution.bound))
                closed = solution.status is Status.OPTIMAL or (np.isfinite(size) and solution.gap <= enough * size)
                if closed or _ended_by_search(solution):
                    return solution
                loose.append(solution)
                log.info("%s leaves a gap of %g, the next solver is tried", spec, solution.gap)
                continue
            cut = " at its time limit" if solution.reported_status == "TIME_LIMIT" else ""
            reason = f"its point breaks a constraint by {solution.violation:g}{cut}"
        log.warning("%s failed, the next solver is tried: %s", spec, reason)
        failures.append(f"{spec}: {reason}")
    if loose:
        return _best_of(loose)
    if not failures:
        reported = ". ".join(["", *refusals[:1]])  # the first is the best match
        tried = default_solvers(problem)
        others = [name for name in compatible_solvers(problem) if name not in tried]
        none = f"no solver that 'auto' tries ({', '.join(tried)})" if others else "no installed solver"
        cure = f"choose another, such as {others[0]!r}, or rescale the problem" if others else "pass one of your own"
        raise UnsupportedProblemError(f"{none} accepts this {type(problem).__name__}; {cure}{reported}")
    raise SolverError("every solver failed. " + "; ".join(failures))


def _best_of(solutions: list[Solution]) -> Solution:
    """The solution of the best value, with the best bound of all."""
    sign = 1.0 if solutions[0].problem.is_maximization else -1.0
    best = max(solutions, key=lambda solution: sign * solution.value)
    tightest = min(solutions, key=lambda solution: sign * solution.bound)
    if sign * tightest.bound >= sign * best.bound:
        return best
    closed = sign * (tightest.bound - best.value) <= best.problem.rounding_at(best.x)
    status = Status.OPTIMAL if closed else Status.BOUNDED_GAP
    return replace(
        best, y=tightest.y, bound=tightest.bound, status=status, message=f"{best.message}; bound by {tightest.solver}"
    )


def _ended_by_search(solution: Solution) -> bool:
    """Whether an integer search ended with a claim of optimality, which no other solver would improve."""
    claimed = solution.reported_bound
    return claimed is not None and abs(claimed - solution.value) <= LOOSE * max(abs(solution.value), abs(claimed))


def _solve(problem: Problem, solver: Solver, warm_start: Solution | None, directed_rounding: bool) -> Solution:
    """Solve by the first chain that problem and solver admit and whose answer is integral if required."""
    refusals: dict[str, None] = {}
    fractional: FractionalSolutionError | None = None
    for chain, form, backs in crossings(problem, solver.accepts):
        refusal = form if isinstance(form, str) else solver.reason_unsupported(form)
        if refusal is not None:
            words = "" if isinstance(form, str) or type(form) is type(problem) else f"this {type(form).__name__}: "
            refusals[words + refusal] = None
            continue
        assert isinstance(form, Problem)
        began = perf_counter()
        try:
            return _solve_restated(problem, solver, warm_start, chain, form, backs, directed_rounding)
        except FractionalSolutionError as error:
            log.info("%s: %s", solver.spec, error)
            fractional = error
        except SolverError as error:
            limit = getattr(solver, "time_limit", None)
            if isinstance(error, SolverCrashError) or not is_used_up(limit, perf_counter() - began):
                raise
            raise SolverError(
                f"{solver.spec!r} found no feasible point within its time limit of {limit:g} seconds ({error}). "
                "Pass a longer time_limit"
            ) from error
    if fractional is not None:
        raise FractionalSolutionError(f"{solver.spec!r}: {fractional}")
    if refusals:
        raise UnsupportedProblemError(
            f"{solver.spec!r} cannot solve this {type(problem).__name__} of {problem.shape_text}: "
            f"{'; '.join(refusals)}. "
            "Choose a solver of formulations.compatible_solvers(problem)"
        )
    accepted = " or ".join(form.__name__ for form in solver.accepts)
    raise UnsupportedProblemError(
        f"{solver.spec!r} accepts {accepted}, not this {type(problem).__name__}; see compatible_solvers(problem)"
    )


def _solve_restated(
    problem: Problem,
    solver: Solver,
    start: Solution | None,
    chain: Chain,
    restated: Problem,
    backs: list[Back],
    outward: bool,
) -> Solution:
    """Solve the restated problem, map the answer back, verify it."""
    if start is not None and type(start.problem) is not type(restated) and "basis" not in start.details:
        start = None  # a basis is of the restated problem, a point is not
    began = perf_counter()
    try:
        with restored_interruptions():
            if isinstance(restated, LinearProgram) and restated.integer is not None:
                answer = solve_in_steps(solver, restated, start)
            else:
                answer = solver.solve(restated, start)
    except (InfeasibleError, UnboundedError) as error:
        if problem.always_feasible:
            kind = type(problem).__name__
            raise InvalidSolutionError(f"{solver.spec!r} is wrong, every {kind} is solvable: {error}") from error
        raise verified_verdict(solver.spec, restated, error, start, perf_counter() - began) from None
    except FormulationError:
        raise
    except (Exception, SystemExit) as error:  # any error of a solver package or of the user's solver
        cure = solver.cure_of(error, restated) if isinstance(solver, FunctionSolver) else ""
        raise SolverCrashError(f"{solver.spec!r} crashed: {type(error).__name__}: {error}{cure}") from error
    if not (isinstance(answer, SolverResult) and isinstance(answer.x, np.ndarray)):
        raise InvalidSolutionError(f"{solver.spec!r} returned {type(answer).__name__}, no SolverResult with an array x")
    seconds = perf_counter() - began
    x, y = np.asarray(answer.x), answer.y
    if x.dtype.kind not in "iuf" or not np.isfinite(x).all():
        raise InvalidSolutionError(f"{solver.spec!r} returned values that are no finite numbers ({answer.message})")
    if backs:  # the ways back assume the right shape
        restated.check_point(x)
        y = y if restated.is_valid_dual(y) else None
    for back in reversed(backs):
        x, y = back(x, y)
    via = "" if not chain else " via " + ", ".join(bridge.words for bridge in chain)
    why = [one.because if isinstance(one.because, str) else one.because(problem) for one in chain[:1] if one.because]
    point, details = problem.repair(x), answer.details
    if isinstance(problem, LinearProgram) and not np.array_equal(point, x):
        fitted = refit(problem, point)
        if fitted is not point and isinstance(details, Mapping):  # the claim was about another point
            details = {name: claim for name, claim in details.items() if name != "reported_status"}
        point = fitted
    solution = problem.improve_bound(problem.solution(point, y, outward=outward))
    tightened = tighten_bound(solution, isinstance(solver, Highs) and y is not None) if outward else solution
    duals = "an assignment by SciPy" if isinstance(problem, OrderProblem) else "HiGHS"
    more = [] if tightened is solution else [f"the bound is from duals of {duals}"]
    return replace(
        tightened,
        solver=solver.spec + via,
        version=version_of(solver),
        seconds=seconds,
        message="; ".join([*why, str(answer.message), *more]),
        details=dict(details) if isinstance(details, Mapping) else {"details": details},
    )


OBJECTIVES = ("objective", "linear", "profit", "cost", "scores")
"""The objective of a problem is the first of these that is a field of it."""


def solve_many(
    problem: AnyProblem,
    solver: Solver | str | Callable[[Any], Any] = "auto",
    *,
    objectives: ArrayLike | None = None,
    row_lower: ArrayLike | None = None,
    row_upper: ArrayLike | None = None,
    **options: Any,
) -> list[Solution]:
    """The solutions of one problem under many objectives or limits of rows, each solved from the solution before it.

    Args:
        problem: a linear or quadratic program (also a model that `as_problem` reads as one), an assignment, a flow, or
            a ranking of the gallery.
        solver, options: as in `solve`.
        objectives: (m, ...) one objective a solution, each of the shape of the problem's own: costs, profits, scores,
            or the linear part.
        row_lower, row_upper: (m, rows) limits of the rows, for linear and quadratic programs.

    Raises:
        InvalidProblemError: nothing varies, the numbers of solutions differ, or the problem has no such part.
        InfeasibleError, UnboundedError, SolverError: as `solve`, with the index of the problem.

    >>> from formulations import LinearProgram
    >>> program = LinearProgram([1.0, 1.0], [[1.0, 2.0]], [0.0], [2.0], [0.0, 0.0], [9.0, 9.0])
    >>> [solution.value for solution in solve_many(program, "highs", row_upper=[[2.0], [4.0], [20.0]])]
    [2.0, 4.0, 14.5]
    """
    problem = as_form(problem) if is_model(problem) else problem
    check_type("problem", problem, Problem)
    own = {field.name for field in fields(cast(Any, problem))}
    objective = next((name for name in OBJECTIVES if name in own), "objective")
    parts = {objective: objectives, "row_lower": row_lower, "row_upper": row_upper}
    varied = {name: numbers(name, values) for name, values in parts.items() if values is not None}
    missing = sorted(varied.keys() - own)
    if missing or not varied:
        what = f"has no {missing[0] or 'objective'!r}" if missing else "has nothing to vary"
        raise InvalidProblemError(
            f"{type(problem).__name__} {what}; pass objectives= (m, ...), or row_lower= or row_upper= (m, rows) for a "
            "LinearProgram or QuadraticProgram."
        )
    counts = {len(values) if values.ndim else 0 for values in varied.values()}
    if len(counts) > 1:
        raise InvalidProblemError(f"the parts must vary together; got {sorted(counts)} of them.")
    fixed = {"ranked": None} if "ranked" in own else {}
    found: list[Solution] = []
    for index in range(counts.pop()):
        changed = replace(cast(Any, problem), **{name: values[index] for name, values in varied.items()}, **fixed)
        try:
            found.append(solve(changed, solver, found[-1] if found else None, **options))
        except (InfeasibleError, UnboundedError, SolverError) as error:
            raise type(error)(f"problem {index}: {error}") from error
    return found


@overload
def solve_batch(
    batch: Sequence[Problem], solver: Solver | str = "auto", *, directed_rounding: bool = True
) -> list[Solution]: ...
@overload
def solve_batch(
    batch: RankTwoBatch, solver: Solver | str = "exact", *, directed_rounding: bool = True
) -> BatchSolution: ...
@overload
def solve_batch(
    batch: RelevanceBatch, solver: Solver | str = "exact", *, directed_rounding: bool = True
) -> RelevanceSolution: ...
def solve_batch(
    batch: RankTwoBatch | RelevanceBatch | Sequence[Problem],
    solver: Solver | str = "auto",
    *,
    directed_rounding: bool = True,
) -> BatchSolution | RelevanceSolution | list[Solution]:
    """Solve every query of a batch: at once if the solver can, else one by one. A list of problems of one class gives
    the list of their solutions.

    directed_rounding: whether value and bound are rounded outward, so that value <= optimum <= bound. Otherwise they
    have rounding errors of double precision on either side; training uses these.

    Answers of other solvers are verified. Raises `InvalidSolutionError` if a query's order is malformed, and what
    `solve` raises.
    """
    check_type("directed_rounding", directed_rounding, bool)
    if isinstance(batch, list | tuple):
        batch = [one if isinstance(one, Problem) else as_form(one) for one in batch]
        classes = sorted({type(one).__name__ for one in batch})
        if len(classes) > 1:
            raise InvalidProblemError(f"a batch must be of one class of problems; got {' and '.join(classes)}.")
        return [solve(one, solver, directed_rounding=directed_rounding) for one in batch]
    check_type("batch", batch, RankTwoBatch, RelevanceBatch, cure="Pass ranking(..., offsets=), or problems.")
    batch = cast("RankTwoBatch | RelevanceBatch", batch)
    chosen = as_solver("exact" if isinstance(solver, str) and solver == "auto" else solver)
    began = perf_counter()
    form = RelevanceRanking if isinstance(batch, RelevanceBatch) else RankTwoAssignment
    answer: Any
    if isinstance(chosen, ExactArgmax):
        answer = chosen.solve_batch(batch)
        if directed_rounding and isinstance(batch, RankTwoBatch):
            answer = answer.outward(chosen.compiled)
        elif directed_rounding:
            answer = answer.outward()
    elif isinstance(chosen, BatchSolver) and form in getattr(chosen, "accepts", (RankTwoAssignment,)):
        open_ = np.full(len(batch), np.inf)
        answer = _answers(batch, chosen, _orders(batch, chosen), -open_, open_).proved()
    else:
        answer = _one_by_one(batch, chosen, directed_rounding)
    timed: BatchSolution | RelevanceSolution = replace(answer, seconds=perf_counter() - began)
    return timed


def _answers(batch: RankTwoBatch | RelevanceBatch, solver: Any, order: Ints, value: Floats, bound: Floats) -> Any:
    kind: Any = RelevanceSolution if isinstance(batch, RelevanceBatch) else BatchSolution
    spec = str(getattr(solver, "spec", type(solver).__name__))
    return kind(batch, order, value, bound, np.zeros(len(batch), dtype=np.int8), (spec,), spec)


def _orders(batch: RankTwoBatch | RelevanceBatch, solver: Any) -> Ints:
    """The orders of a batch solver, each checked to be an order of its query's documents."""
    spec = str(getattr(solver, "spec", type(solver).__name__))
    kind = RelevanceSolution if isinstance(batch, RelevanceBatch) else BatchSolution
    try:
        answer = solver.solve_batch(batch)
    except FormulationError:
        raise
    except Exception as error:  # any error of the user's solver
        raise SolverCrashError(f"{spec!r} crashed: {type(error).__name__}: {error}") from error
    order = getattr(answer, "order", None)
    if not isinstance(answer, kind) or not isinstance(order, np.ndarray):
        raise InvalidSolutionError(f"{spec!r} must return a {kind.__name__} of orders; got {type(answer).__name__}.")
    order = np.asarray(order)
    if order.shape != batch.scores.shape or order.dtype.kind not in "iu":
        raise InvalidSolutionError(f"{spec!r} must return {batch.scores.size} ints; got {order.dtype} {order.shape}")
    starts = np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
    inside = (order >= 0) & (order < np.repeat(np.diff(batch.offsets), np.diff(batch.offsets)))
    held = np.bincount((starts + order)[inside].astype(np.int64), minlength=order.size)
    if not inside.all() or (held != 1).any():
        row = int(np.flatnonzero(~inside | (held != 1))[0])
        query = int(np.searchsorted(batch.offsets, row, side="right")) - 1
        raise InvalidSolutionError(f"{spec!r} must return orders of documents; that of query {query} is not one")
    return np.ascontiguousarray(order, dtype=np.int64)


def _one_by_one(batch: RankTwoBatch | RelevanceBatch, solver: Solver, outward: bool) -> Any:
    order = np.empty(batch.scores.size, dtype=np.int64)
    value, bound = np.empty(len(batch)), np.empty(len(batch))
    for query in range(len(batch)):
        solution = solve(batch[query], solver, directed_rounding=outward)
        low, high = batch.offsets[query], batch.offsets[query + 1]
        left = np.setdiff1d(np.arange(high - low), solution.order, assume_unique=True)
        order[low:high] = np.concatenate([solution.order, left])
        value[query], bound[query] = solution.value, solution.bound
    return _answers(batch, solver, order, value, bound)
