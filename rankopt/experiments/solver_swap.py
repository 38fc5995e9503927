"""The solver swap: replay recorded problems with every solver, and train with one argmax, master or method replaced.

Live runs are verified with the default solvers. Data are stored once for all workers.
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

from formulations.arrays import check_type
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
    memory_peak,
    method_spec,
    resolved,
    spec_of,
    start_peak,
)
from rankopt.experiments.recording import Log, Recorder, argmax_trace, master_trace
from rankopt.experiments.replay import Replay, blank_rows, compile_kernels, fault, warm
from rankopt.experiments.rows import BenchmarkRow, Outcome, versions
from rankopt.experiments.supervisor import RowFile, missing_rows
from rankopt.experiments.traces import ProblemTrace, traces_of
from rankopt.fitting import raise_interruptions
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.certificate import Step, Stop
from rankopt.options import check_number, set_integers

RECORDED = 3.0  # seconds of one solver for a recorded trace, if its limit is None
INTERVAL = 0.2  # seconds between two partial rows, which are the result of a run that is killed
POINTS = 200  # largest number of history steps in a row, evenly spaced, including the first and the last

FORMS: dict[str, type[Problem]] = {"argmax": RankTwoAssignment, "master": GroupedSimplexQP}
"""The problem form of each part that is a solver."""

PARAMETERS = {"argmax": "argmax_solver", "master": "master_solver", "method": "method"}
"""The parameter of the ranker that each role swaps."""


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
        swapped: Any = self.entrant
        if self.role != "method" and swapped != "auto":
            try:
                swapped = resolved(swapped)
            except UnknownSolverError as error:
                yield str(error)
                return
        if self.role in FORMS and swapped != "auto":
            compile_kernels(swapped, FORMS[self.role])
        few = self.queries.select(range(min(3, len(self.queries))))
        with suppress(FormulationError, RankoptError), raise_interruptions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(self.ranker).set_params(max_iter=1).fit(few)  # compiles kernels of training
        self.swapped = clone(self.ranker).set_params(**{PARAMETERS[self.role]: swapped, "time_limit": self.seconds})

    def warm(self) -> None:
        swapped = self.swapped.get_params()[PARAMETERS[self.role]]
        if self.role in FORMS and swapped != "auto":
            warm(swapped, FORMS[self.role])

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        start_peak()
        known = ReferenceSolution(partial)
        try:
            self.swapped.set_params(callbacks=(*self.swapped.callbacks, known))
            began = perf_counter()
            with raise_interruptions():
                self.swapped.fit(self.queries)
            row = self._verify_run(replace(self.blank, seconds=perf_counter() - began, repeats=1, **known.fields()))
        except (MemoryError, FormulationError, RankoptError) as error:
            row = replace(self.blank, **{**known.fields(), **fault(error)})
        return replace(row, memory=memory_peak())

    def _verify_run(self, row: BenchmarkRow) -> BenchmarkRow:
        """Verify the run: recompute J at its w with the default argmax, and compare its bound with attained values."""
        proved = self.swapped.certificate_
        row = replace(
            row, value=proved.primal, bound=proved.bound, scale=abs(proved.primal) or 1.0,
            message=proved.stop.value, measures=self._measure_values(), facts={"kind": proved.kind},
        )  # fmt: skip
        usual = clone(self.ranker).objective(self.queries)
        w = np.asarray(self.swapped.coef_, dtype=np.float64).ravel()
        true = usual.upper(w, usual.risk.at(w, prove=True))
        slack = 1e-6 * max(abs(true), abs(proved.primal))
        if proved.primal < true - slack:
            why = f"it reports J = {proved.primal:.9g}, and J = {true:.9g} at its w"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        attained = true if self.value_lower_bound is None else min(true, self.value_lower_bound)
        if proved.kind == "global" and proved.bound > attained + slack:
            why = f"it reports the lower bound {proved.bound:.9g}, but {attained:.9g} is attained"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        closed = proved.relative_gap <= (row.tolerance or 0.0)
        cut = Outcome.TIME_LIMIT if proved.stop is Stop.TIME else Outcome.INEXACT
        return replace(row, status=Outcome.SOLVED if closed else cut, certified=True)

    def _measure_values(self) -> dict[str, float | None]:
        if self.held_out is None:
            return {}
        queries: Queries = open_queries(self.held_out)
        found = evaluate(queries, self.swapped.predict(queries), list(self.measures))
        return {name: float(found.mean(name)) for name in self.measures}


class ReferenceSolution:
    """A training callback that stores the history and reports it every `INTERVAL` seconds."""

    def __init__(self, partial: Callable[[dict[str, Any]], None]) -> None:
        self.steps: list[Step] = []
        self.partial, self.reported = partial, -np.inf

    def __call__(self, step: Step, state: Any) -> None:
        self.steps.append(step)
        if step.seconds - self.reported >= INTERVAL:
            self.reported = step.seconds
            self.partial(self.fields())

    def fields(self) -> dict[str, Any]:
        """The fields of a row that are known so far."""
        if not self.steps:
            return {}
        last = self.steps[-1]
        spread = np.unique(np.linspace(0, len(self.steps) - 1, min(POINTS, len(self.steps))).round().astype(int))
        shown = [self.steps[index] for index in spread.tolist()]
        names = ("step", "round", "seconds", "primal", "bound")
        history = {name: [_finite(getattr(step, name)) for step in shown] for name in names}
        return {
            "history": history, "iterations": last.step, "value": _finite(last.primal), "bound": _finite(last.bound),
            "scale": abs(last.primal) or 1.0,
        }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Recorded training of `ranker` on queries. Data and traces are cached in `folder`.

    problems: approximate number of problems of a trace. seconds: the time limit of a recorded run.
    """

    ranker: Any
    queries: Queries
    folder: Path
    problems: int
    seconds: float
    seed: int

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the data and of the training settings."""
        known = hashlib.sha256()
        features = self.queries.features
        parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
        for part in (*parts, self.queries.rows, self.queries.offsets, self.queries.relevance):
            known.update(np.ascontiguousarray(part).tobytes())
        ignored = ("callbacks", "engine", "n_jobs", "verbose", "time_limit")
        settings = sorted((name, repr(held)) for name, held in self.ranker.get_params().items() if name not in ignored)
        known.update(repr(settings).encode())
        return known.hexdigest()[:8]

    def stored(self, queries: Queries, name: str) -> str:
        """The folder of stored queries for the workers; created on first use."""
        target = self.folder / f"{name}-{self.digest}"
        if not target.exists():
            save_queries(queries, target)
        return str(target)

    def argmax_trace(self) -> ProblemTrace:
        return self._record("argmax", lambda log: argmax_trace(log, self.problems, self.seed), argmax_solver=Recorder)

    def master_trace(self, method: Any, name: str) -> ProblemTrace:
        """The master programs of a run with this method."""
        count, label = max(1, self.problems // 2), f"master:{name}"
        return self._record(label, lambda log: master_trace(log, count, label), master_solver=Recorder, method=method)

    def path(self, label: str) -> Path:
        """The file of the trace with this label."""
        return self.folder / f"{label.replace(':', '-')}-{self.digest}-{self.problems}-{self.seed}.npz"

    def _record(self, label: str, made: Any, **parts: Any) -> ProblemTrace:
        """The trace with this label: loaded if it exists, else recorded now."""
        if self.path(label).exists():
            return ProblemTrace.load(self.path(label))
        log = Log()
        recorders = {name: part(log) if isinstance(part, type) else part for name, part in parts.items()}
        usual = {"engine": "serial", "time_limit": self.seconds, "callbacks": (log.stepped,), "verbose": 0}
        ranker = clone(self.ranker).set_params(**usual, **recorders)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the trace of an interrupted run is valid
            try:
                with raise_interruptions():
                    ranker.fit(self.queries)
            except FormulationError:
                if not log.heard:
                    raise
        trace: ProblemTrace = made(log)
        trace.save(self.path(label))
        return trace


ARGMAX: tuple[Entrant, ...] = ("exact", "scipy", "ortools", "highs", "cvxpy:CLARABEL")
MASTERS: tuple[Entrant, ...] = (
    "active_set", "qpsolvers:piqp", "cvxpy:CLARABEL",
)  # fmt: skip
METHODS: tuple[Any, ...] = ("bundle", Bundle(groups=1))
"""One slack and several slacks give different master programs; some solvers take only one slack."""
MEASURES = tuple(f"nDCG@{k}" for k in range(1, 11))


@dataclass(frozen=True, eq=False)
class SolverSwap:
    """Every solver on the same problems, each in its own process with hard limits; failures are rows.

    Args:
        data: `Queries` or a `Sample`: training runs are recorded and their traces replayed, then solvers are swapped
            in live training. Or problems, as in `problems`.
        argmax_solvers, master_solvers: names of solvers, also with options ("highs(presolve='off')", or what
            `formulations.solver_grid` returns), import paths "module:attribute", or objects such as
            `formulations.function_solver(...)`.
        methods: names of methods, or method objects.
        ranker: the trained ranker, by default `LargeMarginRanker()`; its solvers and method are the defaults, which are
            replaced one at a time.
        test: held-out queries for `measures`; a `Sample` has its own.
        problems: approximate number of problems of an argmax trace; a master trace has half as many. Or custom
            problems, of any form or as files (.mps, .lp, .toml, traces) or folders of these, replayed without training:
            quadratic programs with `master_solvers`, all others with `argmax_solvers`.
        repeats: timed runs of a problem; the median is reported.
        tolerance: the gap, relative to the problem's scale, up to which an answer counts as solved.
        train: whether solvers are also swapped in live training.
        announce: called with the name of each solver that starts, and its trace.
    """

    data: Any = None
    argmax_solvers: Sequence[Entrant] = ARGMAX
    master_solvers: Sequence[Entrant] = MASTERS
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
    announce: Callable[[str], object] = str

    def __post_init__(self) -> None:
        if self.data is None and (self.problems is None or isinstance(self.problems, Real)):
            raise OptionError(
                f"problems = {self.problems!r} needs data; give Queries or a Sample, SolverSwap(queries), or custom "
                "problems, SolverSwap(problems=['mine.mps'])"
            )
        if not isinstance(self.problems, Real):
            if self.data is not None:
                raise OptionError("custom problems need no data; leave the data out, or give a number of problems")
            several = list(self.problems) if isinstance(self.problems, list | tuple) else [self.problems]
            object.__setattr__(self, "data", several)
            object.__setattr__(self, "problems", 1)
        set_integers(self, 1, "problems", "repeats")
        check_number(0.0, tolerance=self.tolerance)
        cure = "Give Limits(problem=10.0, trace=60.0), in seconds."
        check_type("limits", self.limits, Limits, error=OptionError, cure=cure)
        check_entrants(argmax_solvers=self.argmax_solvers, master_solvers=self.master_solvers, methods=self.methods)
        if not (self.argmax_solvers or self.master_solvers or self.methods):
            raise OptionError("there is nothing to swap; name argmax solvers, masters or methods")

    def run(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> list[BenchmarkRow]:
        """All rows. output: a file of JSON lines, written row by row, with the traces in a folder next to it.
        resume: continue that file; its rows are not recomputed."""
        return list(self.rows(output, resume=resume))

    def rows(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> Iterator[BenchmarkRow]:
        """The rows as they are computed."""
        for role, entrants in self._roles().items():
            labels = [first_name(_label(entrant, role)) for entrant in entrants]  # unknown names are errors here
            twice = {label for label in labels if labels.count(label) > 1}
            if twice:
                raise OptionError(f"{', '.join(sorted(twice))} occurs twice; list each solver once, by distinct names")
        file = RowFile(output, resume)
        if output is None:
            with tempfile.TemporaryDirectory(prefix="rankopt-swap-", ignore_cleanup_errors=True) as folder:
                yield from self._rows(file, Path(folder))
            return
        trace_folder = Path(output).with_suffix(".traces")
        trace_folder.mkdir(parents=True, exist_ok=True)
        yield from self._rows(file, trace_folder)

    def _rows(self, file: RowFile, folder: Path) -> Iterator[BenchmarkRow]:
        queries, held_out = self._data()
        if queries is None:
            for trace in traces_of(self.data, self.limits.problem):
                path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', trace.name)}.npz"
                trace.save(path)
                yield from self._replay(file, trace, path, self._entrants(trace))
            return
        from rankopt.rankers.large_margin import LargeMarginRanker

        ranker = LargeMarginRanker() if self.ranker is None else clone(self.ranker)
        run = RecordedRun(ranker, queries, folder, self.problems, 4.0 * self.limits.training_time, self.seed)
        if "argmax_solver" in ranker.get_params() and self.argmax_solvers:
            yield from self._replay(file, run.argmax_trace(), run.path("argmax"), self.argmax_solvers)
        for method in self.methods if self.master_solvers else ():
            name = _label(method, "method")
            trace = run.master_trace(method, name)
            yield from self._replay(file, trace, run.path(f"master:{name}"), self.master_solvers)
        if self.train:
            yield from self._train(file, run, held_out)

    def _roles(self) -> dict[str, Sequence[Any]]:
        """Entrants by the part that they replace."""
        return {"argmax": self.argmax_solvers, "master": self.master_solvers, "method": self.methods}

    def _data(self) -> tuple[Queries | None, Queries | None]:
        """The training and test queries; None for custom problems."""
        if isinstance(self.data, Sample):
            return self.data.train, self.test or self.data.test
        if isinstance(self.data, Queries):
            return self.data, self.test
        return None, None

    def _entrants(self, trace: ProblemTrace) -> Sequence[Entrant]:
        """The entrants; of the default ones those that accept such problems."""
        if trace.kind == "master":
            chosen, usual = self.master_solvers, MASTERS
        else:
            chosen, usual = self.argmax_solvers, ARGMAX
        if chosen is not usual:
            return chosen
        return [one for one in usual if any(solves(spec_of(one), entry.form) for entry in trace.problems)]

    def _replay(
        self, file: RowFile, trace: ProblemTrace, path: Path, entrants: Sequence[Entrant]
    ) -> Iterator[BenchmarkRow]:
        for entrant in entrants:
            self.announce(f"{spec_of(entrant)} on {trace.name}")
            blanks = blank_rows(trace, spec_of(entrant), self.tolerance, self.seed, versions())
            job = Replay(str(path), entrant, blanks, self.repeats, self.limits.problem)
            usual = np.inf if self._data()[0] is None else RECORDED
            total = usual if self.limits.trace is None else self.limits.trace
            yield from missing_rows(file, job, blanks, self.limits, self.limits.killed, total)

    def _train(self, file: RowFile, run: RecordedRun, test: Queries | None) -> Iterator[BenchmarkRow]:
        """Live runs. The default parts are one run, whose row is repeated in every role."""
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
                self.announce(f"{blank.solver} in training")
                seconds = self.limits.training_time
                job = LiveRun(
                    run.ranker, role, entrant, train_path, test_path, self.measures, blank, seconds,
                    attained if base is not None else None,
                )  # fmt: skip
                for row in missing_rows(file, job, [blank], self.limits, 2.0 * seconds + 5.0):
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
            problem=", ".join([type(run.ranker).__name__, *settings]), trace=f"training:{run.digest}",
            shape_text=f"{len(queries)} queries, {queries.n_documents} documents", sizes=sizes,
            tolerance=ranker.get("tol"), versions=versions(), seed=self.seed,
        )  # fmt: skip


def _label(part: Any, role: str) -> str:
    return method_spec(part) if role == "method" else spec_of(part)


def first_name(label: str) -> str:
    """The first of several names of one solver in the table."""
    path = SOLVERS.get(label)
    return label if path is None else next(name for name, listed in SOLVERS.items() if listed == path)
