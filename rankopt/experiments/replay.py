"""Replaying a tape: one problem after the other through one solver, each answer judged from the data alone.

What a solver claims beside its point, held against what is proven: never needed, but a false claim is told.

Ties: how many pairs of documents could change places in an answer for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.certificates.certify import certify
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.errors import (
    CertificateError,
    FormulationError,
    FractionalSolutionError,
    InfeasibleError,
    InvalidSolutionError,
    SolverCrashError,
    UnboundedError,
    UnknownSolverError,
    UnsupportedProblemError,
)
from formulations.problems.assignment import Assignment
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.solver import BatchSolver, Solver, SolverResult
from formulations.solving.solve import solve
from rankopt.experiments.isolation import Entrant, memory_peak, resolved, start_peak
from rankopt.experiments.rows import BenchmarkRow, Outcome
from rankopt.experiments.traces import ProblemTrace, RecordedProblem

LOOSE = 1e-6
"""By how much of the scale a claim may be off: solvers round, and their tolerances are their own."""


def refuted_claim(taped: RecordedProblem, solution: Solution) -> str | None:
    """Which claim in `details` is false: told_value, told_bound, or a told_status of "OPTIMAL".

    What the tape says is attained counts up to the bound that is proven of this answer: tapes may be another's.
    """
    form, told = taped.form, solution.details
    sign, slack = (1.0 if form.is_maximization else -1.0), LOOSE * (form.scale or 1.0)
    attained = max(sign * solution.value, *(min(sign * value, sign * solution.bound) for value in _attained(taped)))
    value, bound = (_number(told.get(name)) for name in ("told_value", "told_bound"))
    if value is not None and not abs(value - solution.value) <= slack:
        return f"it says that the value is {value:.9g}, and it is {solution.value:.9g}"
    if bound is not None and sign * bound < attained - slack:
        return f"it says that nothing beats {bound:.9g}, but {sign * attained:.9g} is attained"
    if told.get("told_status") == "OPTIMAL" and sign * solution.value < attained - slack:
        return f"it calls {solution.value:.9g} optimal, but {sign * attained:.9g} is attained"
    return None


def unbeaten(taped: RecordedProblem, solution: Solution, tolerance: float) -> bool:
    """Whether an answer in whole numbers with a gap is the best that is known: our own best proof leaves a gap too, and
    no point of ours is better. What the solver's search claims to be the bound, where it tells one, is its value."""
    form = taped.form
    if isinstance(form, GroupedSimplexQP | QuadraticProgram):
        return False
    whole = form.program.integer
    if whole is None or not whole.any():
        return False
    sign, slack = (1.0 if form.is_maximization else -1.0), tolerance * (form.scale or 1.0)
    told = _number(solution.details.get("told_bound"))
    if told is not None and not abs(told - solution.value) <= slack:
        return False
    if taped.known is None:
        return told is not None
    value, bound = taped.known
    return sign * (bound - value) > slack and sign * solution.value >= sign * value - slack


def batch_claim(taped: RecordedProblem, solver: Solver) -> str | None:
    """Which claim is false of a solver that takes whole batches."""
    form = taped.form
    if not isinstance(solver, BatchSolver) or type(form) not in solver.accepts:
        return None
    answer: BatchSolution | RelevanceSolution
    if isinstance(form, RelevanceRanking):
        answer = solver.solve_batch(form.alone())
    elif isinstance(form, RankTwoAssignment):
        spare = form.documents - form.positions
        if spare and min(form.discount[-1], form.position_weights[-1]) < 0:
            return None
        discount, decay = (np.pad(weights, (0, spare)) for weights in (form.discount, form.position_weights))
        answer = solver.solve_batch(
            RankTwoBatch(form.scores, form.gain, discount, decay, np.array([0, form.documents]))
        )
    else:
        return None
    order = answer.order[: form.positions]
    if not np.isfinite(form.violation(order)):
        return f"asked for a batch, it returns {order}, which is no ranking"
    value, slack = form.value(order), LOOSE * (form.scale or 1.0)
    attained = max((value, *_attained(taped)))
    if not abs(float(answer.value[0]) - value) <= slack:
        return f"asked for a batch, it says that the value is {answer.value[0]:.9g}, and it is {value:.9g}"
    if not float(answer.bound[0]) >= attained - slack:
        return f"asked for a batch, it says that nothing beats {answer.bound[0]:.9g}, but {attained:.9g} is attained"
    return None


def _number(told: object) -> float | None:
    return float(told) if isinstance(told, float | int) else None


def _attained(taped: RecordedProblem) -> tuple[float, ...]:
    return () if taped.known is None else (taped.known[0],)


CHECKED = 200
"""Pairs whose exchange is tried, of a ranking under constraints against the set, of a pattern against its value; beyond
that the count is a sample's."""


def tied_pairs(problem: Problem, order: NDArray[Any]) -> int | None:
    """The pairs {x, y} of documents, x placed, whose exchange leaves the value as it is, to rounding, and is allowed.

    0 says that no single exchange ties; another order far from this one might. None where no documents are placed.
    """
    if isinstance(problem, RelevanceRanking):
        return _tied_in_pattern(problem, np.asarray(order, dtype=np.int64))
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
    among = profit[:, x]  # what position i would earn with the document of position j
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
    held = sum(_as_good(problem, x, _exchanged(x, int(a), int(b))) for a, b in tried)
    return round(held * len(pairs) / max(len(tried), 1))


def _as_good(problem: ConstrainedRanking, order: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether the set admits the other order, and what it breaks of soft constraints costs no other sum."""
    admissible = problem.admissible
    if not admissible.soft_constraints or not admissible.is_feasible(other):
        return admissible.is_feasible(other)
    return abs(problem.value(order) - problem.value(other)) <= problem.rounding


def _exchanged(order: NDArray[np.int64], position: int, document: int) -> NDArray[np.int64]:
    """The order with this document at this position, and the one that stood there where the document stood."""
    fresh = order.copy()
    fresh[order == document] = order[position]
    fresh[position] = document
    return fresh


def _tied_in_pattern(problem: RelevanceRanking, order: NDArray[np.int64]) -> int:
    """What exchanges leave is worked out by the definition."""
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


WHOLE = 1e-6
"""How far from whole numbers a point may lie and be called whole."""


def blank_rows(
    tape: ProblemTrace, solver: str, tolerance: float, seed: int, versions: dict[str, str]
) -> list[BenchmarkRow]:
    """A row a problem, without its outcome."""
    return [
        BenchmarkRow(
            kind=tape.kind, solver=solver, status=Outcome.GIVEN_UP, problem=taped.name, tape=tape.name,
            shape_text=taped.form.shape_text, sizes=_sizes(taped.form), step=taped.step,
            is_maximization=taped.form.is_maximization,
            scale=taped.form.scale or 1.0, tolerance=tolerance, versions=versions, seed=seed,
        )
        for taped in tape.problems
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
    """A solver whose own answer is kept: what `solve` returns has been rounded and repaired."""

    solver: Solver
    said: list[SolverResult] = field(default_factory=list)

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
        self.said[:] = [answer]
        return answer


@dataclass(eq=False)
class Replay:
    """The job of a worker: the tape at `path` through one solver. seconds: the limit of a problem; repeats end before
    they would reach it."""

    path: str
    entrant: Entrant
    blanks: list[BenchmarkRow]
    repeats: int
    seconds: float

    def open(self) -> Iterator[str]:
        self.tape = ProblemTrace.load(self.path)
        try:
            self.solver: Solver | None = None if self.entrant == "auto" else resolved(self.entrant)
        except UnknownSolverError as error:
            yield str(error)
            return

    def warm(self) -> None:
        for form in dict.fromkeys(type(taped.form) for taped in self.tape.problems):
            warm(self.solver, form)

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        taped, blank = self.tape.problems[item], self.blanks[item]
        start_peak()
        began = perf_counter()
        try:
            row = self._judged(blank, taped, began)
        except MemoryError as error:
            row = replace(blank, status=Outcome.OUT_OF_MEMORY, message=f"MemoryError {error}".strip())
        except CertificateError as error:
            row = replace(blank, status=Outcome.WRONG, certified=False, message=str(error))
        except (InfeasibleError, UnboundedError) as error:
            status, took = Outcome.FAILED if taped.known else Outcome.NO_OPTIMUM, perf_counter() - began
            row = replace(
                blank, status=status, message=str(error), seconds=took, seconds_whole=took, repeats=1, times=(took,)
            )
        except FormulationError as error:
            row = replace(blank, message=str(error), **fault(error))
        return replace(row, memory=memory_peak())

    def _judged(self, blank: BenchmarkRow, taped: RecordedProblem, began: float) -> BenchmarkRow:
        """Solve, repeat, certify; then hold the solver's claims against what is known."""
        form = taped.form
        watched: Any = None if self.solver is None else TimedSolver(self.solver)
        own, whole = [], []
        while True:
            asked = perf_counter()
            solution = solve(form, "auto" if watched is None else watched)
            whole.append(perf_counter() - asked)
            own.append(solution.seconds)
            if len(own) >= self.repeats or perf_counter() - began + 2 * whole[-1] > self.seconds / 2:
                break
        answer = watched.said[0] if watched is not None and watched.said else None
        row = replace(
            blank, value=solution.value, bound=solution.bound, seconds=median(own), seconds_whole=median(whole),
            repeats=len(own), times=tuple(own), version=solution.version, message=solution.message[:300],
            iterations=solution.details.get("iterations"), integral=_is_whole(form, answer),
        )  # fmt: skip
        if solution.status is Status.INACCURATE:
            why = f"its point breaks a constraint by {solution.violation:g}"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        certify(form, solution)
        wrong = refuted_claim(taped, solution) or (None if self.solver is None else batch_claim(taped, self.solver))
        if wrong is not None:
            return replace(row, status=Outcome.WRONG, certified=True, message=wrong)
        tolerance = blank.tolerance or 0.0
        status = Outcome.SOLVED if row.gap is not None and row.gap <= tolerance else Outcome.INEXACT
        if status is Outcome.INEXACT and unbeaten(taped, solution, tolerance):
            status = Outcome.UNBEATEN
        ties = None if blank.kind == "master" else tied_pairs(form, solution.x)
        return replace(row, status=status, certified=True, ties=ties)


def warm(solver: Solver | None, form: type[Problem]) -> None:
    """Let what is loaded or compiled on first use be loaded now, by a problem of this form but tiny."""
    from formulations.compiled import kernels_of
    from formulations.testing.instances import instances

    if solver is None or solver.package == "rankopt":  # which of its ways are taken depends on the problem
        masters = issubclass(form, GroupedSimplexQP | QuadraticProgram)
        rooms = ("formulations.active_set",) if masters else ("formulations.argmax", "formulations.problems")
        for kernel in kernels_of(*rooms):
            kernel.ready()
    with suppress(FormulationError):  # it will fail again, where it counts
        for _, problem, _ in islice(instances(form), 1):
            solve(problem, "auto" if solver is None else solver)


def fault(error: Exception) -> dict[str, Any]:
    """What an error of `solve`, or of training, says of the solver."""
    if isinstance(error, UnsupportedProblemError):
        return {"status": Outcome.UNSUPPORTED}
    if isinstance(error, FractionalSolutionError):
        return {"status": Outcome.FAILED, "integral": False}
    if isinstance(error, InvalidSolutionError):
        return {"status": Outcome.WRONG, "certified": False}
    if isinstance(error, UnknownSolverError):
        return {"status": Outcome.MISSING}
    if not isinstance(error, SolverCrashError):
        return {"status": Outcome.FAILED}
    cause: BaseException | None = error.__cause__
    while cause is not None:
        if isinstance(cause, MemoryError):
            return {"status": Outcome.OUT_OF_MEMORY}
        if isinstance(cause, ImportError):
            return {"status": Outcome.MISSING}
        cause = cause.__cause__
    return {"status": Outcome.CRASHED}


def _is_whole(form: Problem, answer: SolverResult | None) -> bool | None:
    """Whether the solver's own point was whole, where the problem asks for whole ones."""
    if answer is None or isinstance(form, GroupedSimplexQP | QuadraticProgram) or not form.always_feasible:
        return None
    return bool((np.abs(answer.x - np.round(answer.x)) <= WHOLE).all())
