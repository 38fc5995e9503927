"""Replay of a trace: solve its problems with one solver, and verify each answer from the data alone.

Values and bounds that a solver reports are compared with proven ones; a false claim makes the row WRONG. Ties are pairs
of documents whose exchange leaves the value unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from formulations import errors
from formulations.certificates.certify import certify
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.problems.assignment import Assignment
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers import version_of
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.solver import BatchSolver, Solver, SolverResult
from formulations.solving.solve import solve, supports_option
from rankopt.errors import OptionError
from rankopt.experiments.isolation import Entrant, memory_peak, resolved, start_peak
from rankopt.experiments.rows import BenchmarkRow, Outcome
from rankopt.experiments.traces import ProblemTrace, RecordedProblem

FAR = 1e-4  # a violation beyond the usual tolerances of solvers
LOOSE = 1e-6  # tolerance of a claim relative to the scale: solvers round and have their own tolerances


def refuted_claim(entry: RecordedProblem, solution: Solution) -> str | None:
    """The false claim in `details`: reported_value, reported_bound, or reported_status "OPTIMAL"; None without one.

    A recorded value is capped at the bound proven for this answer, because the trace is not trusted.
    """
    form, reported = entry.form, solution.details
    sign, slack = (1.0 if form.is_maximization else -1.0), LOOSE * (form.magnitude_at(solution.x) or 1.0)
    attained = sign * solution.value
    if entry.known is not None:
        attained = max(attained, min(sign * entry.known[0], sign * solution.bound))
    value, bound = reported.get("reported_value"), solution.reported_bound
    if isinstance(value, float | int) and not abs(value - solution.value) <= slack:
        return f"it reports the value {value:.9g}, and the value is {solution.value:.9g}"
    if bound is not None and sign * bound < attained - slack:
        return f"it reports the bound {bound:.9g}, but {sign * attained:.9g} is attained"
    if reported.get("reported_status") == "OPTIMAL" and sign * solution.value < attained - slack:
        return f"it calls {solution.value:.9g} optimal, but {sign * attained:.9g} is attained"
    return None


def unbeaten(entry: RecordedProblem, solution: Solution, tolerance: float) -> bool:
    """Whether an integral answer with a gap is the best known one: our best proof has a gap too, and we know no better
    point. A bound that the solver reports must equal its value."""
    form = entry.form
    if isinstance(form, GroupedSimplexQP | QuadraticProgram):
        return False
    integer = form.program.integer
    if integer is None or not integer.any():
        return False
    sign, slack = (1.0 if form.is_maximization else -1.0), tolerance * (form.magnitude_at(solution.x) or 1.0)
    reported = solution.reported_bound
    if reported is not None and not abs(reported - solution.value) <= slack:
        return False
    if entry.known is None:
        return reported is not None
    value, bound = entry.known
    return sign * (bound - value) > slack and sign * solution.value >= sign * value - slack


def batch_claim(entry: RecordedProblem, solver: Solver) -> str | None:
    """The false claim of a solver of batches; None without one."""
    form = entry.form
    if not isinstance(solver, BatchSolver) or type(form) not in solver.accepts:
        return None
    if not isinstance(form, RankTwoAssignment | RelevanceRanking) or (batch := form.alone()) is None:
        return None
    answer: BatchSolution | RelevanceSolution = solver.solve_batch(batch)
    order = answer.order[: form.positions]
    if not np.isfinite(form.violation(order)):
        return f"solving a batch, it returns {order}, which is not a ranking"
    value, slack = form.value(order), LOOSE * (form.scale or 1.0)
    attained = value if entry.known is None else max(value, entry.known[0])
    if not abs(float(answer.value[0]) - value) <= slack:
        return f"solving a batch, it reports the value {answer.value[0]:.9g}, and the value is {value:.9g}"
    if not float(answer.bound[0]) >= attained - slack:
        return f"solving a batch, it reports the bound {answer.bound[0]:.9g}, but {attained:.9g} is attained"
    return None


CHECKED = 200
"""Largest number of exchanges that are checked (feasibility under constraints, value of a pattern); above it the count
is estimated from a sample."""


def tied_pairs(problem: Problem, order: NDArray[Any]) -> int | None:
    """Number of pairs {x, y} of documents, x ranked, whose exchange is feasible and leaves the value unchanged.

    0 means that no single exchange ties; other rankings may still tie. None for problems that rank no documents.
    """
    if isinstance(problem, RelevanceRanking):
        return _count_tied(problem, np.asarray(order, dtype=np.int64))
    if isinstance(problem, RankTwoAssignment):
        profit = problem.assignment().profit
        allowed = None
    elif isinstance(problem, Assignment):
        profit, allowed = problem.profit, problem.allowed
    elif isinstance(problem, ConstrainedRanking):
        profit, allowed = problem.worth, None
    else:
        return None
    x = np.asarray(order, dtype=np.int64)
    k, n = profit.shape
    if allowed is not None:
        profit = np.where(allowed, profit, -np.inf)
    here = profit[np.arange(k), x]
    among = profit[:, x]  # profit of the document of position j at position i
    gained = among + among.T - here[:, None] - here
    left = np.setdiff1d(np.arange(n), x)
    freed = profit[:, left] - here[:, None]
    i, j = np.nonzero(np.triu(np.abs(gained) <= problem.rounding, 1))
    p, u = np.nonzero(np.abs(freed) <= problem.rounding)
    if not isinstance(problem, ConstrainedRanking):
        return int(i.size + p.size)
    pairs = [(a, x[b]) for a, b in zip(i, j, strict=True)] + list(zip(p, left[u], strict=True))
    sample = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), CHECKED)).astype(int))
    tried = [pairs[at] for at in sample.tolist()]
    held = sum(_as_good(problem, x, _exchange(x, int(a), int(b))) for a, b in tried)
    return round(held * len(pairs) / max(len(tried), 1))


def _as_good(problem: ConstrainedRanking, order: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether the other order is feasible and has the same value, soft constraints included."""
    admissible = problem.admissible
    if not admissible.soft_constraints or not admissible.is_feasible(other):
        return admissible.is_feasible(other)
    return abs(problem.value(order) - problem.value(other)) <= problem.rounding


def _exchange(order: NDArray[np.int64], position: int, document: int) -> NDArray[np.int64]:
    """The order with this document and the document at this position exchanged."""
    fresh = order.copy()
    fresh[order == document] = order[position]
    fresh[position] = document
    return fresh


def _count_tied(problem: RelevanceRanking, order: NDArray[np.int64]) -> int:
    """Values of exchanged orders are computed by definition."""
    first, second = np.triu_indices(order.size, 1)
    if not first.size:
        return 0
    sample = np.unique(np.linspace(0, first.size - 1, min(first.size, CHECKED)).astype(int))
    orders = np.tile(order, (sample.size + 1, 1))
    at = np.arange(sample.size)
    orders[at, first[sample]], orders[at, second[sample]] = order[second[sample]], order[first[sample]]
    values = np.array([problem.value(exchanged) for exchanged in orders])
    held = int((np.abs(values[:-1] - values[-1]) <= problem.rounding).sum())
    return round(held * first.size / sample.size)


INTEGRALITY_TOLERANCE = 1e-6  # largest distance to integers at which a point is integral


def blank_rows(
    trace: ProblemTrace, solver: str, tolerance: float, seed: int, versions: dict[str, str]
) -> list[BenchmarkRow]:
    """One row per problem, without its outcome."""
    return [
        BenchmarkRow(
            kind=trace.kind, solver=solver, status=Outcome.GIVEN_UP, problem=entry.name, trace=trace.name,
            shape_text=entry.form.shape_text, sizes=_sizes(entry.form), step=entry.step,
            is_maximization=entry.form.is_maximization,
            scale=entry.form.scale or 1.0, tolerance=tolerance, versions=versions, seed=seed,
        )
        for entry in trace.problems
    ]  # fmt: skip


def _sizes(form: Problem) -> dict[str, int]:
    if isinstance(form, GroupedSimplexQP):
        planes, features = form.slopes.shape
        return {"planes": int(planes), "features": int(features), "groups": int(form.capacity.size)}
    names = ("positions", "documents")
    known = {name: int(getattr(form, name)) for name in names if hasattr(form, name)}
    return known or {"numbers": form.size}


@dataclass(frozen=True)
class TimedSolver:
    """A solver that stores its own answer: the result of `solve` is rounded and repaired."""

    solver: Solver
    answers: list[SolverResult] = field(default_factory=list)

    @property
    def package(self) -> str:
        return self.solver.package

    @property
    def accepts(self) -> tuple[type[Problem], ...]:
        return self.solver.accepts

    @property
    def spec(self) -> str:
        return self.solver.spec

    def reason_unsupported(self, problem: Problem) -> str | None:
        return self.solver.reason_unsupported(problem)

    def solve(self, problem: Any, warm_start: Solution | None = None) -> SolverResult:
        answer = self.solver.solve(problem, warm_start)
        self.answers[:] = [answer]
        return answer


@dataclass(eq=False)
class Replay:
    """The job of a worker: solve the problems of the trace at `path` with one solver.

    seconds: the time limit of a solver for a problem; repeats end before they would exceed it.
    """

    path: str
    entrant: Entrant
    blanks: list[BenchmarkRow]
    repeats: int
    seconds: float

    def open(self) -> Iterator[str]:
        self.trace = ProblemTrace.load(self.path)
        try:
            solver = None if self.entrant == "auto" else resolved(self.entrant)
            if solver is not None and supports_option(solver, "time_limit") and not getattr(solver, "time_limit", 1):
                solver = replace(cast(Any, solver), time_limit=self.seconds)
            self.solver: Solver | None = solver
        except errors.UnknownSolverError as error:
            yield str(error)
            return
        self.forms = dict.fromkeys(type(entry.form) for entry in self.trace.problems)
        for form in self.forms:
            compile_kernels(self.solver, form)

    def warm(self) -> None:
        for form in self.forms:
            warm(self.solver, form)

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        entry, blank = self.trace.problems[item], self.blanks[item]
        start_peak()
        began = perf_counter()
        try:
            row = self._judge(blank, entry, began)
        except (errors.InfeasibleError, errors.UnboundedError) as error:
            status, took = Outcome.FAILED if entry.known else Outcome.NO_OPTIMUM, perf_counter() - began
            row = replace(
                blank,
                status=status,
                version="" if self.solver is None else version_of(self.solver),
                reported_status="INFEASIBLE" if isinstance(error, errors.InfeasibleError) else "UNBOUNDED",
                message=str(error),
                seconds=took,
                seconds_total=took,
                repeats=1,
                times=(took,),
            )
        except (MemoryError, errors.FormulationError) as error:
            row = replace(blank, **fault(error))
        return replace(row, memory=memory_peak())

    def _judge(self, blank: BenchmarkRow, entry: RecordedProblem, began: float) -> BenchmarkRow:
        """Solve, repeat, certify; then check the solver's claims."""
        form = entry.form
        watched: Any = None if self.solver is None else TimedSolver(self.solver)
        own, total = [], []
        while True:
            started = perf_counter()
            left = self.seconds if watched is None else None
            solution = solve(form, "auto" if watched is None else watched, time_limit=left)
            total.append(perf_counter() - started)
            own.append(solution.seconds)
            if len(own) > self.repeats or perf_counter() - began + 2 * total[-1] > self.seconds / 2:
                break
        if len(own) > 1:  # the first run loads what the warm-up did not
            own, total = own[1:], total[1:]
        answer = watched.answers[0] if watched is not None and watched.answers else None
        row = replace(
            blank, value=solution.value, bound=solution.bound, scale=form.magnitude_at(solution.x) or 1.0,
            seconds=median(own), seconds_total=median(total), repeats=len(own), times=tuple(own),
            version=solution.version, message=solution.message[:300],
            iterations=solution.details.get("iterations"), reported_status=solution.reported_status,
            reported_bound=solution.reported_bound, integral=_is_integral(form, answer),
        )  # fmt: skip
        if solution.status is Status.INACCURATE:
            said = f" ({solution.message[:60]})" if solution.message else ""
            why = f"its point violates a constraint by {solution.violation:g} of its terms{said}"
            limited = solution.reported_status not in (None, "OPTIMAL")  # it did not claim to be right
            status = Outcome.INACCURATE if limited or solution.violation <= FAR else Outcome.WRONG
            return replace(row, bound=None, status=status, certified=False, message=why)
        certify(form, solution)
        wrong = refuted_claim(entry, solution) or (None if self.solver is None else batch_claim(entry, self.solver))
        if wrong is not None:
            return replace(row, status=Outcome.WRONG, certified=True, message=wrong)
        tolerance = blank.tolerance or 0.0
        status = Outcome.SOLVED if row.gap is not None and row.gap <= tolerance else Outcome.INEXACT
        if status is Outcome.INEXACT and unbeaten(entry, solution, tolerance):
            status = Outcome.UNBEATEN
        if solution.reported_status == "TIME_LIMIT" and status is not Outcome.SOLVED:
            status = Outcome.TIME_LIMIT
        ties = None if blank.kind == "master" else tied_pairs(form, solution.x)
        return replace(row, status=status, certified=True, ties=ties)


def compile_kernels(solver: Solver | None, form: type[Problem]) -> None:
    """Compile the kernels of a solver for problems of this form."""
    from formulations.compiled import kernels_of

    if solver is None or solver.package == "rankopt":  # its algorithm depends on the problem
        masters = issubclass(form, GroupedSimplexQP | QuadraticProgram)
        folders = ("formulations.active_set",) if masters else ("formulations.argmax", "formulations.problems")
        for kernel in kernels_of(*folders):
            kernel.ready()


def warm(solver: Solver | None, form: type[Problem]) -> None:
    """Load modules by solving a tiny problem of this form."""
    from formulations.testing.instances import instances

    with suppress(errors.FormulationError):  # the error will recur when it is recorded
        for _, problem, _ in islice(instances(form), 1):
            solve(problem, "auto" if solver is None else solver)


def fault(error: Exception) -> dict[str, Any]:
    """The fields of a row that follow from an error of `solve` or of training."""
    if isinstance(error, MemoryError):
        return {"status": Outcome.OUT_OF_MEMORY, "message": f"MemoryError {error}".strip()}
    more: dict[str, Any] = {}
    if isinstance(error, errors.SolverCrashError):
        status, cause = Outcome.CRASHED, error.__cause__
        while cause is not None and status is Outcome.CRASHED:
            if isinstance(cause, MemoryError | ImportError):
                status = Outcome.OUT_OF_MEMORY if isinstance(cause, MemoryError) else Outcome.MISSING
            cause = cause.__cause__
    elif isinstance(error, errors.UnsupportedProblemError | OptionError):
        status = Outcome.UNSUPPORTED
    elif isinstance(error, errors.FractionalSolutionError):
        status, more = Outcome.FAILED, {"integral": False}
    elif isinstance(error, errors.InvalidSolutionError | errors.CertificateError):
        status, more = Outcome.WRONG, {"certified": False}
    elif "time limit" in str(error).lower():
        status = Outcome.TIME_LIMIT
    else:
        status = Outcome.MISSING if isinstance(error, errors.UnknownSolverError) else Outcome.FAILED
    return {"status": status, "message": str(error), **more}


def _is_integral(form: Problem, answer: SolverResult | None) -> bool | None:
    """Whether the solver's own point was integral; None for problems without integrality constraints."""
    if answer is None or isinstance(form, GroupedSimplexQP | QuadraticProgram) or not form.always_feasible:
        return None
    return bool((np.abs(answer.x - np.round(answer.x)) <= INTEGRALITY_TOLERANCE).all())
