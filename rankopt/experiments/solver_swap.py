"""The solver swap: one sequence of problems, every solver; one training problem, every argmax, master and method.

Live runs: training with one argmax, master or method in the place of the usual one, judged by the usual ones.

A data set as an experiment uses it: stored once for all workers, and the tapes of the training runs on it.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from formulations.errors import FormulationError, UnknownSolverError
from formulations.problems.problem import Problem
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers import SOLVERS, solves
from rankopt.data.queries import Queries
from rankopt.data.samples import Sample
from rankopt.data.stored_folder import open_queries, save_queries
from rankopt.errors import OptionError, RankoptError
from rankopt.evaluation.evaluation import evaluate
from rankopt.experiments.isolation import (
    Entrant,
    Limits,
    check_entrants,
    check_limits,
    memory_peak,
    method_spec,
    resolved,
    spec_of,
    start_peak,
)
from rankopt.experiments.recording import ArgmaxRecorder, Log, MasterRecorder, argmax_tape, master_tape
from rankopt.experiments.replay import Replay, blank_rows, fault, warm
from rankopt.experiments.rows import BenchmarkRow, Outcome, versions
from rankopt.experiments.supervisor import RowFile, grown
from rankopt.experiments.traces import ProblemTrace, tapes_of
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.certificate import Step
from rankopt.optimize.method import check_number, check_whole

TOLD = 0.2
"""Seconds between two partial rows: what is known of a run that is killed is no older."""

POINTS = 200
"""Steps of a history that a row keeps, evenly spaced, first and last among them."""

FORMS: dict[str, type[Problem]] = {"argmax": RankTwoAssignment, "master": GroupedSimplexQP}

PARAMETERS = {"argmax": "argmax_solver", "master": "master_solver", "method": "method"}
"""The parameter of the ranker that each role swaps."""
"""What is asked in the place of each part that is a solver."""


@dataclass(eq=False)
class LiveRun:
    """The job of a worker: fit `ranker` on the queries stored at `train`, with `entrant` in its parameter `role`.

    value_lower_bound: an objective that another run attained, which no bound of a convex problem may pass.
    """

    ranker: Any
    role: str
    entrant: Entrant | Any
    train: str
    held_out: str | None
    measures: tuple[str, ...]
    blank: BenchmarkRow
    seconds: float
    value_lower_bound: float | None = None

    def open(self) -> Iterator[str]:
        self.queries = open_queries(self.train)
        swapped = self.entrant
        if self.role != "method" and swapped != "auto":
            try:
                swapped = resolved(swapped)
            except UnknownSolverError as error:
                yield str(error)
                return
        self.swapped = clone(self.ranker).set_params(**{PARAMETERS[self.role]: swapped, "time_limit": self.seconds})

    def warm(self) -> None:
        """Load and compile what training uses on first use, which is no matter of the solver: seconds are of a run."""
        swapped = self.swapped.get_params()[PARAMETERS[self.role]]
        if self.role in FORMS and swapped != "auto":
            warm(swapped, FORMS[self.role])
        few = self.queries.select(range(min(3, len(self.queries))))
        with suppress(FormulationError, RankoptError):
            clone(self.ranker).set_params(max_iter=1).fit(few)

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        start_peak()
        known = ReferenceSolution(partial)
        try:
            self.swapped.set_params(callbacks=(*self.swapped.callbacks, known))
            began = perf_counter()
            self.swapped.fit(self.queries)
            row = self._judged(replace(self.blank, seconds=perf_counter() - began, repeats=1, **known.fields()))
        except MemoryError as error:
            row = replace(self.blank, status=Outcome.OUT_OF_MEMORY, message=f"MemoryError {error}".strip())
        except (FormulationError, RankoptError) as error:
            how = {"status": Outcome.UNSUPPORTED} if isinstance(error, OptionError) else fault(error)
            row = replace(self.blank, **known.fields(), message=str(error), **how)
        return replace(row, memory=memory_peak())

    def _judged(self, row: BenchmarkRow) -> BenchmarkRow:
        """The run's claims recomputed: J at its w with the usual argmax and proven bounds, and no bound above a J."""
        proved = self.swapped.certificate_
        row = replace(
            row, value=proved.primal, bound=proved.bound, scale=abs(proved.primal) or 1.0,
            message=proved.stop.value, measures=self._measured(), facts={"kind": proved.kind},
        )  # fmt: skip
        usual = clone(self.ranker).objective(self.queries)
        w = np.asarray(self.swapped.coef_, dtype=np.float64).ravel()
        true = usual.upper(w, usual.risk.at(w, prove=True))
        slack = 1e-6 * max(abs(true), abs(proved.primal))
        if proved.primal < true - slack:
            why = f"it says that J = {proved.primal:.9g}, and J = {true:.9g} there"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        attained = true if self.value_lower_bound is None else min(true, self.value_lower_bound)
        if proved.kind == "global" and proved.bound > attained + slack:
            why = f"it says that nothing is below {proved.bound:.9g}, but {attained:.9g} is attained"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        closed = proved.relative_gap <= (row.tolerance or 0.0)
        return replace(row, status=Outcome.SOLVED if closed else Outcome.INEXACT, certified=True)

    def _measured(self) -> dict[str, float | None]:
        if self.held_out is None:
            return {}
        queries: Queries = open_queries(self.held_out)
        found = evaluate(queries, self.swapped.predict(queries), list(self.measures))
        return {name: float(found.mean(name)) for name in self.measures}


class ReferenceSolution:
    """A callback of training that keeps its history, and tells it now and then."""

    def __init__(self, partial: Callable[[dict[str, Any]], None]) -> None:
        self.steps: list[Step] = []
        self.partial, self.told = partial, -np.inf

    def __call__(self, step: Step, state: Any) -> None:
        self.steps.append(step)
        if step.seconds - self.told >= TOLD:
            self.told = step.seconds
            self.partial(self.fields())

    def fields(self) -> dict[str, Any]:
        """The fields of a row that are known so far."""
        if not self.steps:
            return {}
        last = self.steps[-1]
        spread = np.unique(np.linspace(0, len(self.steps) - 1, min(POINTS, len(self.steps))).round().astype(int))
        kept = [self.steps[index] for index in spread.tolist()]
        names = ("step", "round", "seconds", "primal", "bound")
        history = {name: [_finite(getattr(step, name)) for step in kept] for name in names}
        return {
            "history": history, "iterations": last.step, "value": _finite(last.primal), "bound": _finite(last.bound),
            "scale": abs(last.primal) or 1.0,
        }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Training of `ranker` on queries, in `folder`: data and tapes are written there once and found again.

    problems: about how many a tape holds. seconds: the limit of a recorded run.
    """

    ranker: Any
    queries: Queries
    folder: Path
    problems: int
    seconds: float
    seed: int

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the data and of how it is trained on."""
        known = hashlib.sha256()
        features = self.queries.features
        parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
        for part in (*parts, self.queries.offsets, self.queries.relevance):
            known.update(np.ascontiguousarray(part).tobytes())
        beside = ("callbacks", "engine", "n_jobs", "verbose", "time_limit")
        settings = sorted((name, repr(value)) for name, value in self.ranker.get_params().items() if name not in beside)
        known.update(repr(settings).encode())
        return known.hexdigest()[:8]

    def stored(self, queries: Queries, name: str) -> str:
        """Where queries are stored for the workers."""
        target = self.folder / f"{name}-{self.digest}"
        if not target.exists():
            save_queries(queries, target)
        return str(target)

    def argmax_tape(self) -> ProblemTrace:
        return self._kept("argmax", lambda log: argmax_tape(log, self.problems, self.seed), argmax=ArgmaxRecorder)

    def master_tape(self, method: Any, name: str) -> ProblemTrace:
        """The masters of a run by this method."""
        count, label = max(1, self.problems // 2), f"master:{name}"
        return self._kept(label, lambda log: master_tape(log, count, label), master=MasterRecorder, method=method)

    def path(self, label: str) -> Path:
        """Where the tape with this label is kept."""
        return self.folder / f"{label.replace(':', '-')}-{self.digest}-{self.problems}-{self.seed}.npz"

    def _kept(self, label: str, made: Any, **parts: Any) -> ProblemTrace:
        """The tape with this label: read if it was kept, else recorded now."""
        if self.path(label).exists():
            return ProblemTrace.load(self.path(label))
        log = Log()
        recorders = {name: part(log) if isinstance(part, type) else part for name, part in parts.items()}
        usual = {"engine": "serial", "time_limit": self.seconds, "callbacks": (log.stepped,), "verbose": 0}
        ranker = clone(self.ranker).set_params(**usual, **recorders)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tape of a run that was cut off is a tape
            try:
                ranker.fit(self.queries)
            except FormulationError:
                if not log.heard:
                    raise
        tape: ProblemTrace = made(log)
        tape.save(self.path(label))
        return tape


ARGMAX: tuple[Entrant, ...] = ("exact", "scipy", "ortools", "highs", "cvxpy:CLARABEL")
MASTERS: tuple[Entrant, ...] = (
    "active_set", "qpsolvers:piqp", "cvxpy:CLARABEL",
)  # fmt: skip
METHODS: tuple[Any, ...] = ("bundle", Bundle(groups=1))
"""One slack or several make other masters, and a solver of one's own may take those of one slack alone."""
MEASURES = tuple(f"nDCG@{k}" for k in range(1, 11))


@dataclass(frozen=True, eq=False)
class SolverSwap:
    """Every solver on the same work, each in a process of its own with hard limits; what goes wrong is a row.

    Args:
        data: `Queries` or a `Sample`: training runs are recorded and their tapes replayed, then solvers are swapped
            inside live training. Or what `problems` takes.
        argmax, masters: names of solvers, also with options ("highs(presolve='off')", or what
        `formulations.solver_grid`
            gives), places "module:attribute", or objects such as `formulations.function_solver(...)` makes.
        methods: names of methods, or methods with settings of their own.
        ranker: what is trained, `LargeMarginRanker()` by default; its own argmax, master and method are the usual ones
            that others replace one at a time.
        test: other queries, on which learnt rankers are measured by `measures`; a `Sample` brings its own.
        problems: about how many an argmax tape holds; a plane tape holds half as many. Or problems of your own, of
            any form or as files (.mps, .lp, .toml, tapes): these are replayed only, and nothing is learnt. Of them
            quadratic programs go to `masters`, all else to `argmax`.
        repeats: timed runs of a problem, the median of which counts.
        tolerance: the gap, relative to the problem's scale, up to which an answer counts as solved.
        train: whether solvers are swapped inside training too.
    """

    data: Any = None
    argmax: Sequence[Entrant] = ARGMAX
    masters: Sequence[Entrant] = MASTERS
    methods: Sequence[Any] = METHODS
    ranker: Any = None
    test: Queries | None = None
    measures: tuple[str, ...] = MEASURES
    problems: Any = 24
    repeats: int = 3
    tolerance: float = 1e-6
    train: bool = True
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.data is None and (self.problems is None or isinstance(self.problems, Real)):
            raise OptionError(
                f"problems = {self.problems!r} come from no data; give Queries or a Sample, SolverSwap(queries), or "
                "problems of your own, SolverSwap(problems=['mine.mps'])"
            )
        if not isinstance(self.problems, Real):
            if self.data is not None:
                raise OptionError("problems of your own stand alone; leave the data out, or give a number of problems")
            object.__setattr__(self, "what", _several(self.problems))
            object.__setattr__(self, "problems", 1)
        check_whole(1, problems=self.problems, repeats=self.repeats)
        check_number(0.0, tolerance=self.tolerance)
        check_limits(self.limits)
        check_entrants(argmax=self.argmax, masters=self.masters, methods=self.methods)
        if not (self.argmax or self.masters or self.methods):
            raise OptionError("there is nothing to swap; name argmax solvers, masters or methods")

    def run(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> list[BenchmarkRow]:
        """All rows. output: a file of JSON lines that they are written to at once, with tapes in a folder beside it.
        resume: go on with that file; rows that are there already are not run again."""
        return list(self.rows(output, resume=resume))

    def rows(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> Iterator[BenchmarkRow]:
        """The rows as they are found."""
        for role, entrants in self._roles().items():
            labels = [first_name(_label(entrant, role)) for entrant in entrants]  # a slip is an error now, and no row
            twice = {label for label in labels if labels.count(label) > 1}
            if twice:
                raise OptionError(f"{', '.join(sorted(twice))} takes part twice; give each a name of its own, once")
        file = RowFile(output, resume)
        if output is None:
            with tempfile.TemporaryDirectory(prefix="rankopt-swap-", ignore_cleanup_errors=True) as folder:
                yield from self._rows(file, Path(folder))
            return
        folder_beside = Path(output).with_suffix(".tapes")
        folder_beside.mkdir(parents=True, exist_ok=True)
        yield from self._rows(file, folder_beside)

    def _rows(self, file: RowFile, folder: Path) -> Iterator[BenchmarkRow]:
        queries, held_out = self._data()
        if queries is None:
            for tape in tapes_of(self.data):
                path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', tape.name)}.npz"
                tape.save(path)
                yield from self._replayed(file, tape, path, self._entrants(tape))
            return
        ranker = self._ranker()
        run = RecordedRun(ranker, queries, folder, self.problems, 4.0 * self.limits.training_time, self.seed)
        if "argmax_solver" in ranker.get_params() and self.argmax:
            yield from self._replayed(file, run.argmax_tape(), run.path("argmax"), self.argmax)
        for method in self.methods if self.masters else ():
            name = _label(method, "method")
            tape = run.master_tape(method, name)
            yield from self._replayed(file, tape, run.path(f"master:{name}"), self.masters)
        if self.train:
            yield from self._trained(file, run, held_out)

    def _roles(self) -> dict[str, Sequence[Any]]:
        """Who takes part in the place of which part."""
        return {"argmax": self.argmax, "master": self.masters, "method": self.methods}

    def _data(self) -> tuple[Queries | None, Queries | None]:
        """The queries that are trained on and those that are measured on; none where problems were given."""
        if isinstance(self.data, Sample):
            return self.data.train, self.test or self.data.test
        if isinstance(self.data, Queries):
            return self.data, self.test
        return None, None

    def _entrants(self, tape: ProblemTrace) -> Sequence[Entrant]:
        """Who takes part; of the usual ones those that take such problems."""
        if tape.kind == "master":
            chosen, usual = self.masters, MASTERS
        else:
            chosen, usual = self.argmax, ARGMAX
        if chosen is not usual:
            return chosen
        return [one for one in usual if any(solves(spec_of(one), taped.form) for taped in tape.problems)]

    def _ranker(self) -> Any:
        from rankopt.rankers.large_margin import LargeMarginRanker

        return LargeMarginRanker() if self.ranker is None else clone(self.ranker)

    def _replayed(
        self, file: RowFile, tape: ProblemTrace, path: Path, entrants: Sequence[Entrant]
    ) -> Iterator[BenchmarkRow]:
        """The tape through every entrant."""
        for entrant in entrants:
            blanks = blank_rows(tape, spec_of(entrant), self.tolerance, self.seed, versions())
            job = Replay(str(path), entrant, blanks, self.repeats, self.limits.problem)
            yield from grown(file, job, blanks, self.limits, self.limits.problem, self.limits.tape)

    def _trained(self, file: RowFile, run: RecordedRun, test: Queries | None) -> Iterator[BenchmarkRow]:
        """Live runs. The usual parts make one run, whose row stands in every role."""
        params = run.ranker.get_params()
        usual = {role: params[name] for role, name in PARAMETERS.items() if name in params}
        train_path = run.stored(run.queries, "train")
        test_path = None if test is None else run.stored(test, "test")
        attained: float | None = None
        base: BenchmarkRow | None = None
        for role, entrants in self._roles().items():
            if role not in usual or not entrants:
                continue
            for entrant in (usual[role], *(one for one in entrants if _label(one, role) != _label(usual[role], role))):
                blank = self._blank(run, role, entrant)
                if base is not None and entrant is usual[role]:
                    row = replace(base, role=role, solver=blank.solver)
                    if file.known(row) is None:
                        file.add(row)
                        yield row
                    continue
                seconds = self.limits.training_time
                job = LiveRun(
                    run.ranker, role, entrant, train_path, test_path, self.measures, blank, seconds,
                    attained if base is not None else None,
                )  # fmt: skip
                for row in grown(file, job, [blank], self.limits, 2.0 * seconds + 5.0):
                    yield row
                if base is None:
                    base = file.known(blank)
                    attained = base.value if base is not None and base.answered else None

    def _blank(self, run: RecordedRun, role: str, entrant: Any) -> BenchmarkRow:
        ranker, queries = run.ranker.get_params(), run.queries
        settings = [str(ranker["measure"])] if "measure" in ranker else []
        settings += [f"{ranker['bound']} bound"] if "bound" in ranker else []
        lam = ranker.get("lam")
        settings += [] if lam is None else [f"λ = {lam}" if isinstance(lam, str) else f"λ = {lam:g}"]
        sizes = {"queries": len(queries), "documents": queries.n_documents, "features": queries.n_features}
        return BenchmarkRow(
            kind="training", solver=_label(entrant, role), status=Outcome.GIVEN_UP, role=role, is_maximization=False,
            problem=", ".join([type(run.ranker).__name__, *settings]), tape=f"training:{run.digest}",
            shape_text=f"{len(queries)} queries, {queries.n_documents} documents", sizes=sizes,
            tolerance=ranker.get("tol"), versions=versions(), seed=self.seed,
        )  # fmt: skip


def _label(part: Any, role: str) -> str:
    """What rows call a solver or a method."""
    return method_spec(part) if role == "method" else spec_of(part)


def first_name(label: str) -> str:
    """The first of several names that the table of solvers has for one."""
    place = SOLVERS.get(label)
    return label if place is None else next(name for name, listed in SOLVERS.items() if listed == place)


def _several(given: Any) -> list[Any]:
    """What `problems=` was given, as a list."""
    return list(given) if isinstance(given, list | tuple) else [given]
