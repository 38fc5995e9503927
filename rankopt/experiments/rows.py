"""Result rows of experiments, stored as one JSON object per line.

kinds of rows
    argmax        a problem of an argmax trace, solved by one solver
    master        a master program of a master trace, solved by one solver
    training      a training run with one argmax, master or method replaced
    integrality   a statement of a set of rankings at one size: proved integral or refuted, and its fractional optima
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from formulations.arrays import as_path, check_type, each
from formulations.display import CompactReprMixin, data_frame
from formulations.solvers import installed_version
from rankopt.errors import DataError

KINDS = ("argmax", "master", "training", "integrality")


class Outcome(Enum):
    """How a run ended, verified independently of the solver's report."""

    SOLVED = "certified, and the gap is within the tolerance"
    UNBEATEN = "certified and integral; no better point is known, but the relaxation proves only a larger bound"
    NO_OPTIMUM = "the solver reports an infeasible or unbounded problem, and no known point contradicts it"
    TIME_LIMIT = "cut by a time limit before the gap was within the tolerance; certified if there is an answer"
    INEXACT = "certified and feasible, but the proven gap is above the tolerance"
    INACCURATE = "the solver's point violates constraints by more than the tolerance, or gains by violating them"
    WRONG = "refuted: far from feasible, or a false value, bound or optimality claim"
    FAILED = "the solver reported failure"
    CRASHED = "the solver raised an unexpected exception, or its process died"
    TIMED_OUT = "killed at the time limit"
    OUT_OF_MEMORY = "stopped at the memory limit"
    UNSUPPORTED = "the solver does not take such problems"
    MISSING = "the solver's package is not installed"
    GIVEN_UP = "not tried: the solver used up its time for the trace, or failed too often in a row"
    PROVED = "integrality: the linear program is proved integral, for every objective"
    REFUTED = "integrality: a witness shows that the program is not totally unimodular"
    UNDECIDED = "integrality: neither proved nor refuted"

    @property
    def words(self) -> str:
        """The name as benchmarks of solvers have it."""
        return _WORDS.get(self.name, self.name.lower().replace("_", " "))


_WORDS = {
    "SOLVED": "optimal",
    "NO_OPTIMUM": "infeasible or unbounded",
    "INEXACT": "feasible",
    "TIMED_OUT": "killed at the time limit",
    "OUT_OF_MEMORY": "memory limit",
    "MISSING": "not installed",
    "GIVEN_UP": "not tried",
}


@dataclass(frozen=True)
class BenchmarkRow(CompactReprMixin):
    """The result of one solver on one problem, of one training run, or of one statement.

    None means unknown or not applicable. Seconds and bytes depend on the machine; all other fields are reproducible
    with the same trace and versions.
    """

    kind: str
    """One of KINDS."""
    solver: str
    """The name of the solver or method; for integrality "verify_integrality"."""
    status: Outcome
    problem: str = ""
    """The problem's name: unique within its trace, the same for all solvers. For training the ranker and settings."""
    trace: str = ""
    """The trace's name and fingerprint, as in "argmax:1f0c9a27"; for training that of the data and settings."""
    role: str = ""
    """Training: which part was swapped, "argmax", "master" or "method"."""
    shape_text: str = ""
    """The size of the problem, in words."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The same in numbers: positions, documents; planes, features, groups; queries, documents; n, k, blocks."""
    step: int | None = None
    """The step of the recorded run that met the problem."""
    is_maximization: bool = True
    """Whether value <= optimum <= bound; False for bound <= optimum <= value."""
    value: float | None = None
    """The objective of the answer, recomputed; for training the best proven objective."""
    bound: float | None = None
    """The proven bound on the optimum."""
    reported_status: str | None = None
    """What the solver itself claims: OPTIMAL, TIME_LIMIT, INFEASIBLE or UNBOUNDED."""
    reported_bound: float | None = None
    """The bound that the solver itself claims, not proven."""
    scale: float | None = None
    """The magnitude to which the tolerance is relative."""
    tolerance: float | None = None
    """The gap, relative to scale, up to which an answer counts as SOLVED."""
    certified: bool | None = None
    """Whether value, feasibility and bound hold when recomputed from the data alone."""
    integral: bool | None = None
    """Whether the solver's own point was integral before rounding; None without integrality constraints."""
    ties: int | None = None
    """Argmax: pairs of documents whose exchange leaves the value unchanged."""
    iterations: int | None = None
    """The iterations that the solver reports; for training the steps."""
    seconds: float | None = None
    """Median over `repeats` of the solver's own time, without conversion and verification; for training that of fit."""
    seconds_total: float | None = None
    """The same with conversion and verification."""
    repeats: int = 0
    """Number of timed runs."""
    times: Sequence[float] = ()
    """The seconds of each timed run, in order."""
    memory: int | None = None
    """Peak resident bytes of the solver's process during this problem, its packages included."""
    version: str = ""
    """Of the solver's package."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of python, rankopt and numpy; the platform and the processor."""
    seed: int | None = None
    message: str = ""
    """The solver's message, or the reason of the outcome."""
    history: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Training: columns step, round, seconds, primal, bound, of one length; the last known ones if it was killed."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Training: what the learned ranker reaches on held-out queries, such as {"nDCG@10": 0.51}."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further results; for integrality proof, witness, objectives, fractional, overestimate_mean, overestimate_max
    (shares of the integer optimum)."""

    @property
    def gap(self) -> float | None:
        """Distance from value to bound, relative to scale, at least 0; None if one of them is unknown."""
        if self.value is None or self.bound is None:
            return None
        distance = self.bound - self.value if self.is_maximization else self.value - self.bound
        return max(distance, 0.0) / (self.scale or 1.0)

    @property
    def overhead(self) -> float | None:
        """How many times the solver's own seconds the answer took, with restatement and verification."""
        return self.seconds_total / self.seconds if self.seconds and self.seconds_total else None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """The identifier of the row, unique in a file."""
        return self.kind, self.trace, self.problem, self.role, self.solver

    @property
    def answered(self) -> bool:
        """Whether the solver returned a verified feasible answer, exact or not."""
        cut = self.status is Outcome.TIME_LIMIT and self.value is not None
        return cut or self.status in (Outcome.SOLVED, Outcome.UNBEATEN, Outcome.INEXACT)

    @property
    def solved(self) -> bool:
        """Whether the solver succeeded: a proven optimum, an unbeaten integral answer, or a valid verdict."""
        return self.status in (Outcome.SOLVED, Outcome.UNBEATEN, Outcome.NO_OPTIMUM)

    @property
    def verdict(self) -> str:
        """The outcome in words; "optimal (claimed)" if the solver calls a verified answer optimal that is not proved
        to be; "infeasible (claimed)" likewise."""
        if self.status in (Outcome.UNBEATEN, Outcome.INEXACT) and self.reported_status == "OPTIMAL":
            return "optimal (claimed)"
        if self.status is Outcome.NO_OPTIMUM and self.reported_status:
            return f"{self.reported_status.lower()} (claimed)"
        return self.status.words

    def as_line(self) -> str:
        """The row as one line of JSON; non-finite numbers become null, default values are omitted."""
        record = {name: _plain(value) for name, value in asdict(self).items() if value != _DEFAULTS.get(name, ...)}
        return json.dumps(record, ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> BenchmarkRow:
        """The row of one line; raises ValueError for an invalid one."""
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("a row is a JSON object")
        known = {name: value for name, value in record.items() if name in _NAMES}
        try:
            known["times"] = tuple(map(float, known.get("times", ())))
            _check_numbers(known)
            return cls(**{**known, "status": Outcome[known["status"]]})
        except (KeyError, TypeError) as error:
            raise ValueError(f"a row needs kind, solver and a known status: {error}") from error


def _check_numbers(known: Mapping[str, Any]) -> None:
    """Validate the numbers of a row from a file: finite, times positive."""
    for name in ("value", "bound", "reported_bound", "scale", "tolerance", "seconds", "seconds_total"):
        one = known.get(name)
        if one is not None and (isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one)):
            raise ValueError(f"{name} = {one!r} is no number")
    if not all(0.0 < one < math.inf for one in known["times"]):
        raise ValueError("times are seconds, each above 0")
    if (known.get("scale") or 0.0) < 0.0 or not 0.0 <= (known.get("tolerance") or 0.0) <= 1.0:
        raise ValueError("scale cannot be below 0, nor tolerance beyond 0 to 1")


_NAMES = {entry.name for entry in fields(BenchmarkRow)}
_DEFAULTS: dict[str, Any] = {
    **{entry.name: entry.default for entry in fields(BenchmarkRow)},
    **{name: {} for name in ("sizes", "versions", "history", "measures", "facts")},
}


def _plain(value: Any) -> Any:
    if isinstance(value, Outcome):
        return value.name
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def of_rows(name: str, rows: Any) -> tuple[BenchmarkRow, ...]:
    """The rows as a tuple; DataError for anything else."""
    listed = each(name, rows, DataError)
    for row in listed:
        check_type(f"an item of {name}", row, BenchmarkRow, error=DataError)
    return listed


def read_rows(path: str | PathLike[str]) -> list[BenchmarkRow]:
    """The rows of a file. A last line without a line break was truncated and is ignored."""
    try:
        lines = Path(as_path(path, DataError)).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        line_number = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line_number} is no text: {error.reason}; save the file as UTF-8") from None
    rows = []
    for number, line in enumerate(lines[:-1], 1):
        if not line.strip():
            continue
        try:
            rows.append(BenchmarkRow.from_line(line))
        except ValueError as error:
            raise DataError(f"{path}, line {number} is not a valid row: {error}; remove the line") from error
    return rows


COLUMNS = (
    "problem", "shape_text", "solver", "version", "verdict", "value", "bound", "gap", "reported_status",
    "reported_bound", "seconds", "seconds_total", "iterations", "memory", "message",
)  # fmt: skip


def rows_to_frame(rows: Iterable[BenchmarkRow]) -> Any:
    """The rows as a pandas data frame, one row per problem and solver; FormulationError if pandas is not installed."""
    held = of_rows("rows", rows)
    return data_frame({name: [getattr(row, name) for row in held] for name in COLUMNS})


def written(rows: Iterable[BenchmarkRow]) -> str:
    """The rows as text, one line each."""
    return "".join(row.as_line() + "\n" for row in rows)


def versions() -> dict[str, str]:
    """Versions of Python, rankopt and numpy, the platform and the processor."""
    packages = {name: installed_version(name) for name in ("rankopt", "numpy", "scipy", "highspy", "ortools", "cvxpy")}
    machine = {"platform": f"{sys.platform}-{platform.machine()}", "processor": _processor()}
    return {"python": platform.python_version(), **packages, **machine}


def _processor() -> str:
    """The model of the processor where the system names it, and the number of its cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{(named or [platform.processor()])[0] or platform.machine()}, {os.cpu_count()} cores"
