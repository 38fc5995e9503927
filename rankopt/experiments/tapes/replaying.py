"""Replaying a tape: one problem after the other through one solver, each answer judged from the data alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from formulations.certificates.certify import certify
from formulations.errors import (
    Crashed,
    FormulationError,
    Fractional,
    Infeasible,
    NoAnswer,
    Refuted,
    Unbounded,
    UnknownSolver,
    Unsupported,
)
from formulations.forms.form import Form, Solution, Status
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.solvers.solver import Answer, Solver
from formulations.solving.solve import solve
from rankopt.experiments.isolation.limits import memory_peak, start_peak
from rankopt.experiments.isolation.shipping import Entrant, resolved
from rankopt.experiments.rows import Outcome, Row
from rankopt.experiments.tapes.claims import batch_claim, refuted_claim, unbeaten
from rankopt.experiments.tapes.tape import Tape, RecordedProblem
from rankopt.experiments.tapes.ties import tied_pairs

__all__ = ["Replay", "blank_rows", "fault", "warm"]

WHOLE = 1e-6
"""How far from whole numbers a point may lie and be called whole."""


def blank_rows(tape: Tape, solver: str, tolerance: float, seed: int, versions: dict[str, str]) -> list[Row]:
    """A row a problem, without its outcome."""
    return [
        Row(
            kind=tape.kind, solver=solver, status=Outcome.GIVEN_UP, problem=taped.name, tape=tape.name,
            extent=taped.form.extent, sizes=_sizes(taped.form), step=taped.step, maximises=taped.form.maximises,
            scale=taped.form.scale or 1.0, tolerance=tolerance, versions=versions, seed=seed,
        )
        for taped in tape.problems
    ]  # fmt: skip


def _sizes(form: Form) -> dict[str, int]:
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
    said: list[Answer] = field(default_factory=list)

    @property
    def package(self) -> str:
        return self.solver.package

    @property
    def accepts(self) -> tuple[type[Form], ...]:
        return self.solver.accepts

    @property
    def spec(self) -> str:
        return self.solver.spec

    def declines(self, problem: Form) -> str | None:
        return self.solver.declines(problem)

    def solve(self, problem: Any, start: Solution | None = None) -> Answer:
        answer = self.solver.solve(problem, start)
        self.said[:] = [answer]
        return answer


@dataclass(eq=False)
class Replay:
    """The job of a worker: the tape at `path` through one solver. seconds: the limit of a problem; repeats end before
    they would reach it."""

    path: str
    entrant: Entrant
    blanks: list[Row]
    repeats: int
    seconds: float

    def open(self) -> Iterator[str]:
        self.tape = Tape.load(self.path)
        try:
            self.solver: Solver | None = None if self.entrant == "auto" else resolved(self.entrant)
        except UnknownSolver as error:
            yield str(error)
            return

    def warm(self) -> None:
        for form in dict.fromkeys(type(taped.form) for taped in self.tape.problems):
            warm(self.solver, form)

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> Row:
        taped, blank = self.tape.problems[item], self.blanks[item]
        start_peak()
        began = perf_counter()
        try:
            row = self._judged(blank, taped, began)
        except MemoryError as error:
            row = replace(blank, status=Outcome.OUT_OF_MEMORY, message=f"MemoryError {error}".strip())
        except Refuted as error:
            row = replace(blank, status=Outcome.WRONG, certified=False, message=str(error))
        except (Infeasible, Unbounded) as error:
            status, took = Outcome.FAILED if taped.known else Outcome.NO_OPTIMUM, perf_counter() - began
            row = replace(
                blank, status=status, message=str(error), seconds=took, seconds_whole=took, repeats=1, times=(took,)
            )
        except FormulationError as error:
            row = replace(blank, message=str(error), **fault(error))
        return replace(row, memory=memory_peak())

    def _judged(self, blank: Row, taped: RecordedProblem, began: float) -> Row:
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


def warm(solver: Solver | None, form: type[Form]) -> None:
    """Let what is loaded or compiled on first use be loaded now, by a problem of this form but tiny."""
    from formulations.compiled import kernels_of
    from formulations.testing.instances import instances

    if solver is None or solver.package == "rankopt":  # which of its ways are taken depends on the problem
        masters = issubclass(form, GroupedSimplexQP | QuadraticProgram)
        rooms = ("formulations.active_set",) if masters else ("formulations.argmax", "formulations.forms")
        for kernel in kernels_of(*rooms):
            kernel.ready()
    with suppress(FormulationError):  # it will fail again, where it counts
        for _, problem, _ in islice(instances(form), 1):
            solve(problem, "auto" if solver is None else solver)


def fault(error: Exception) -> dict[str, Any]:
    """What an error of `solve`, or of training, says of the solver."""
    if isinstance(error, Unsupported):
        return {"status": Outcome.UNSUPPORTED}
    if isinstance(error, Fractional):
        return {"status": Outcome.FAILED, "integral": False}
    if isinstance(error, NoAnswer):
        return {"status": Outcome.WRONG, "certified": False}
    if isinstance(error, UnknownSolver):
        return {"status": Outcome.MISSING}
    if not isinstance(error, Crashed):
        return {"status": Outcome.FAILED}
    cause: BaseException | None = error.__cause__
    while cause is not None:
        if isinstance(cause, MemoryError):
            return {"status": Outcome.OUT_OF_MEMORY}
        if isinstance(cause, ImportError):
            return {"status": Outcome.MISSING}
        cause = cause.__cause__
    return {"status": Outcome.CRASHED}


def _is_whole(form: Form, answer: Answer | None) -> bool | None:
    """Whether the solver's own point was whole, where the problem asks for whole ones."""
    if answer is None or isinstance(form, GroupedSimplexQP | QuadraticProgram) or not form.solvable:
        return None
    return bool((np.abs(answer.x - np.round(answer.x)) <= WHOLE).all())
