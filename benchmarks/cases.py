"""Cases, tables, clocks, kept results and paired comparison, shared by all suites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

from rankopt import evaluate
from rankopt.data import Queries
from rankopt.evaluation.comparison import compare

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Case:
    """One measurement; it prints its tables."""

    name: str
    run: Callable[[Run], None]
    needs_data: bool
    packages: tuple[str, ...]

    @property
    def summary(self) -> str:
        return (self.run.__doc__ or "").split("\n")[0]

    def missing(self) -> str:
        """What keeps the case from running; empty if nothing does."""
        if self.needs_data and "RANKOPT_DATA" not in os.environ:
            return "set RANKOPT_DATA to the folder of the data sets"
        absent = [name for name in self.packages if find_spec(name) is None]
        return f"pip install {' '.join(absent)}" if absent else ""


CASES: dict[str, dict[str, Case]] = {}
"""By suite and name."""


def case(*, data: bool = False, packages: Sequence[str] = ()) -> Callable[[Callable[[Run], None]], Case]:
    """Register a function as a case of the suite that its module belongs to."""

    def register(function: Callable[[Run], None]) -> Case:
        suite = function.__module__.split(".")[1]
        found = Case(function.__name__, function, data, tuple(packages))
        CASES.setdefault(suite, {})[found.name] = found
        return found

    return register


class Results:
    """Values by key; with a file, a long run that was interrupted goes on where it was."""

    def __init__(self, file: Path | None = None) -> None:
        self.file, self.rows = file, {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[tuple(row["key"])] = row

    def get(self, compute: Callable[[], Any], *key: Any) -> Any:
        return self.timed(compute, *key)[0]

    def timed(self, compute: Callable[[], Any], *key: Any) -> tuple[Any, float]:
        """The value (plain JSON) and its processor seconds; computed only if the file lacks it."""
        if key not in self.rows:
            began = process_time()
            value = compute()
            row = {"key": key, "value": value, "seconds": process_time() - began}
            self.rows[key] = row
            if self.file is not None:
                with self.file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
        return self.rows[key]["value"], self.rows[key]["seconds"]


@dataclass(frozen=True)
class Run:
    """Options of the command line."""

    quick: bool = False
    seed: int = 0
    seeds: int = 1
    tries: int | None = None
    sets: tuple[str, ...] = ()
    output: str | None = None
    results: Results = field(default_factory=Results)

    def size(self, full: Any, quick: Any) -> Any:
        return quick if self.quick else full

    def count(self, full: int, quick: int) -> int:
        """How many tries: those of the command line, or the default."""
        return self.tries if self.tries is not None else self.size(full, quick)

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Names that `--sets` selects; all without it."""
        return [name for name in names if not self.sets or name in self.sets]


def table(*columns: object) -> Callable[..., None]:
    """Print the head of a table; the function returned prints a row."""
    head = " | ".join(map(str, columns))
    print(f"\n| {head} |\n|" + "---|" * (head.count(" | ") + 1), flush=True)
    return lambda *cells: print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def least(rounds: int, *jobs: Callable[[], object], clock: Callable[[], float] = process_time) -> list[float]:
    """The least seconds of each job over some rounds, in which they take turns."""
    seconds = [np.inf] * len(jobs)
    for _ in range(rounds):
        for number, job in enumerate(jobs):
            began = clock()
            job()
            seconds[number] = min(seconds[number], clock() - began)
    return seconds


def repeated(job: Callable[[], Any], calls: int = 4, enough: float = 0.02, most: int = 30) -> tuple[Any, float]:
    """The answer of a job and its least seconds: at least `calls`, until they took `enough` seconds together."""
    times: list[float] = []
    while len(times) < calls or (sum(times) < enough and len(times) < most):
        began = thread_time()
        answer = job()
        times.append(thread_time() - began)
    return answer, min(times)


def timed(job: Callable[[], Any], clock: Callable[[], float] = process_time) -> tuple[Any, float]:
    began = clock()
    answer = job()
    return answer, clock() - began


def wall(job: Callable[[], Any]) -> tuple[Any, float]:
    return timed(job, perf_counter)


def geometric_mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


def rounded(value: float, digits: int = 2) -> str:
    return f"{float(f'{value:.{digits}g}'):g}"


def ndcg(queries: Queries, scores: np.ndarray) -> np.ndarray:
    """nDCG@10 of each query; ties averaged, queries without relevant documents count 0."""
    return np.asarray(evaluate(queries, scores, "nDCG@10", convention="burges")["nDCG@10"])


def p_value(own: Any, other: Any, digits: int = 2) -> str:
    """p of the paired randomization test; empty for equal values."""
    own, other = np.asarray(own), np.asarray(other)
    if np.array_equal(own, other, equal_nan=True):
        return ""
    return f"{compare(own, other).p_randomization:.{digits}f}"


def call_python(code: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, from the root of the repository."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=check)


@contextmanager
def test_helpers() -> Iterator[None]:
    """Make the helpers of tests/ importable."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT / "tests"))
