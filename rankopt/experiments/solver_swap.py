"""The solver swap: one sequence of problems, every solver; one training problem, every argmax, master and method."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import clone

from formulations.solvers import SOLVERS, solves
from rankopt.data.queries import Queries
from rankopt.data.samples import Sample
from rankopt.errors import OptionError
from rankopt.experiments.isolation.limits import Limits, check_limits
from rankopt.experiments.isolation.shipping import Entrant, check_entrants, method_spec, spec_of
from rankopt.experiments.live import LiveRun
from rankopt.experiments.recorded_run import RecordedRun
from rankopt.experiments.row_file import RowFile, grown
from rankopt.experiments.rows import Outcome, Row, versions
from rankopt.experiments.tapes.given import tapes_of
from rankopt.experiments.tapes.replaying import Replay, blank_rows
from rankopt.experiments.tapes.tape import Tape
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.settings import check_number, check_whole

__all__ = ["ARGMAX", "MASTERS", "MEASURES", "METHODS", "SolverSwap"]

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
        what: `Queries` or a `Sample`: training runs are recorded and their tapes replayed, then solvers are swapped
            inside live training. Or what `problems` takes.
        argmax, masters: names of solvers, also with options ("highs(presolve='off')", or what `formulations.swept`
            gives), places "module:attribute", or objects such as `formulations.own(...)` makes.
        methods: names of methods, or methods with settings of their own.
        ranker: what is trained, `LargeMarginRanker()` by default; its own argmax, master and method are the usual ones
            that others replace one at a time.
        held_out: other queries, on which learnt rankers are measured by `measures`; a `Sample` brings its own.
        problems: about how many an argmax tape holds; a plane tape holds half as many. Or problems of your own, of
            any form or as files (.mps, .lp, .toml, tapes): these are replayed only, and nothing is learnt. Of them
            quadratic programs go to `masters`, all else to `argmax`.
        repeats: timed runs of a problem, the median of which counts.
        tolerance: the gap, relative to the problem's scale, up to which an answer counts as solved.
        live: whether solvers are swapped inside training too.
    """

    what: Any = None
    argmax: Sequence[Entrant] = ARGMAX
    masters: Sequence[Entrant] = MASTERS
    methods: Sequence[Any] = METHODS
    ranker: Any = None
    held_out: Queries | None = None
    measures: tuple[str, ...] = MEASURES
    problems: Any = 24
    repeats: int = 3
    tolerance: float = 1e-6
    live: bool = True
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.what is None and (self.problems is None or isinstance(self.problems, Real)):
            raise OptionError(
                f"problems = {self.problems!r} come from no data; give Queries or a Sample, SolverSwap(queries), or "
                "problems of your own, SolverSwap(problems=['mine.mps'])"
            )
        if not isinstance(self.problems, Real):
            if self.what is not None:
                raise OptionError("problems of your own stand alone; leave the data out, or give a number of problems")
            object.__setattr__(self, "what", _several(self.problems))
            object.__setattr__(self, "problems", 1)
        check_whole(1, problems=self.problems, repeats=self.repeats)
        check_number(0.0, tolerance=self.tolerance)
        check_limits(self.limits)
        check_entrants(argmax=self.argmax, masters=self.masters, methods=self.methods)
        if not (self.argmax or self.masters or self.methods):
            raise OptionError("there is nothing to swap; name argmax solvers, masters or methods")

    def run(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> list[Row]:
        """All rows. output: a file of JSON lines that they are written to at once, with tapes in a folder beside it.
        resume: go on with that file; rows that are there already are not run again."""
        return list(self.rows(output, resume=resume))

    def rows(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> Iterator[Row]:
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

    def _rows(self, file: RowFile, folder: Path) -> Iterator[Row]:
        queries, held_out = self._data()
        if queries is None:
            for tape in tapes_of(self.what):
                path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', tape.name)}.npz"
                tape.save(path)
                yield from self._replayed(file, tape, path, self._entrants(tape))
            return
        ranker = self._ranker()
        run = RecordedRun(ranker, queries, folder, self.problems, 4.0 * self.limits.training, self.seed)
        if "argmax" in ranker.get_params() and self.argmax:
            yield from self._replayed(file, run.argmax_tape(), run.path("argmax"), self.argmax)
        for method in self.methods if self.masters else ():
            name = _label(method, "method")
            tape = run.master_tape(method, name)
            yield from self._replayed(file, tape, run.path(f"master:{name}"), self.masters)
        if self.live:
            yield from self._trained(file, run, held_out)

    def _roles(self) -> dict[str, Sequence[Any]]:
        """Who takes part in the place of which part."""
        return {"argmax": self.argmax, "master": self.masters, "method": self.methods}

    def _data(self) -> tuple[Queries | None, Queries | None]:
        """The queries that are trained on and those that are measured on; none where problems were given."""
        if isinstance(self.what, Sample):
            return self.what.train, self.held_out or self.what.test
        if isinstance(self.what, Queries):
            return self.what, self.held_out
        return None, None

    def _entrants(self, tape: Tape) -> Sequence[Entrant]:
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

    def _replayed(self, file: RowFile, tape: Tape, path: Path, entrants: Sequence[Entrant]) -> Iterator[Row]:
        """The tape through every entrant."""
        for entrant in entrants:
            blanks = blank_rows(tape, spec_of(entrant), self.tolerance, self.seed, versions())
            job = Replay(str(path), entrant, blanks, self.repeats, self.limits.problem)
            yield from grown(file, job, blanks, self.limits, self.limits.problem, self.limits.tape)

    def _trained(self, file: RowFile, run: RecordedRun, held_out: Queries | None) -> Iterator[Row]:
        """Live runs. The usual parts make one run, whose row stands in every role."""
        usual = run.ranker.get_params()
        train = run.stored(run.queries, "train")
        test = None if held_out is None else run.stored(held_out, "held-out")
        attained: float | None = None
        base: Row | None = None
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
                seconds = self.limits.training
                job = LiveRun(
                    run.ranker, role, entrant, train, test, self.measures, blank, seconds,
                    attained if base is not None else None,
                )  # fmt: skip
                for row in grown(file, job, [blank], self.limits, 2.0 * seconds + 5.0):
                    yield row
                if base is None:
                    base = file.known(blank)
                    attained = base.value if base is not None and base.answered else None

    def _blank(self, run: RecordedRun, role: str, entrant: Any) -> Row:
        ranker, queries = run.ranker.get_params(), run.queries
        settings = [str(ranker["measure"])] if "measure" in ranker else []
        settings += [f"{ranker['bound']} bound"] if "bound" in ranker else []
        lam = ranker.get("lam")
        settings += [] if lam is None else [f"λ = {lam}" if isinstance(lam, str) else f"λ = {lam:g}"]
        sizes = {"queries": len(queries), "documents": queries.n_documents, "features": queries.n_features}
        return Row(
            kind="training", solver=_label(entrant, role), status=Outcome.GIVEN_UP, role=role, maximises=False,
            problem=", ".join([type(run.ranker).__name__, *settings]), tape=f"training:{run.digest}",
            extent=f"{len(queries)} queries, {queries.n_documents} documents", sizes=sizes,
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
