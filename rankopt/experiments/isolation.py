"""Worker processes: limits of time and memory, names of solvers, and the protocol with the supervisor.

A worker reads a job from standard input and writes messages, one JSON object per line:

    {"ready": true}            the process has started, kernels are compiled, and its memory limit is set
    {"warm": true}             a tiny problem is solved, which loads modules
    {"begin": 3}               problem 3 begins
    {"partial": {...}}         known fields of the row of problem 3
    {"row": {...}}             the row of problem 3
    {"missing": "..."}         the solver's package is not installed

Messages go to the original standard output; output of solvers goes to standard error.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from formulations.errors import UnknownSolverError
from formulations.solvers import SOLVERS, get_solver
from formulations.solvers.function_solver import imported
from formulations.solvers.solver import Solver
from rankopt.errors import OptionError
from rankopt.experiments.rows import BenchmarkRow
from rankopt.optimize import METHODS, get_method
from rankopt.options import number


@dataclass(frozen=True)
class Limits:
    """Hard limits. A process that exceeds one is killed, and its row reports it.

    problem: time limit of a solver for a problem in seconds, with which those that have one return what they found. All
        repeats and the verification have a third and a second more; then the process is killed.
    trace: seconds of one solver for a trace; after that its other problems are given up. By default 3 for a recorded
        trace, and no limit for custom problems.
    training_time: time limit of a live run in seconds; the run is killed at twice that plus 5.
    start: seconds for a process to start and, once per machine, compile the solver's kernels. A tiny first problem,
        which loads modules, may take 60 seconds longer than `problem`.
    memory: bytes that a solver may allocate beyond those of its process at the start. The system enforces it (data on
        Linux, the address space elsewhere; not on Windows).
    max_crashes: number of consecutive crashes or timeouts after which a solver is given up.
    """

    problem: float = 10.0
    trace: float | None = None
    training_time: float = 2.0
    start: float = 300.0
    memory: int | None = 4 << 30
    max_crashes: int = 3

    @property
    def killed(self) -> float:
        """The seconds after which a process that solves a problem is killed."""
        return 4.0 / 3.0 * self.problem + 1.0

    def __post_init__(self) -> None:
        for name in ("problem", "trace", "training_time", "start", "max_crashes"):
            if name == "trace" and self.trace is None:
                continue
            if not number(getattr(self, name)) > 0:
                raise OptionError(f"the limit {name} must be positive; got {getattr(self, name)}; give a larger number")
        if self.memory is not None and not number(self.memory) > 0:
            raise OptionError(f"the limit memory must be positive; got {self.memory}; give bytes, or None for no limit")


def hold_memory(more: int) -> None:
    """Limit this process to `more` bytes beyond its current size, where the system can enforce it."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    kind, used = (resource.RLIMIT_AS, 1 << 30) if _status("VmData") is None else (resource.RLIMIT_DATA, 0)
    limit = (_status("VmData") or used) + more
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def start_peak() -> None:
    """Reset the memory peak (Linux only)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def memory_peak() -> int | None:
    """Peak resident bytes of this process since `start_peak` or its start."""
    known = _status("VmHWM")
    if known is not None:
        return known
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int | None:
    """An entry of /proc/self/status in bytes; None if unavailable."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(found[0]) * 1024 if found else None


Entrant = str | Solver
"""A solver that takes part: its name, "module:attribute", or an object such as `function_solver(...)` makes."""


def check_entrants(**entrants: Any) -> None:
    """Raise OptionError for a role whose entrants are not a sequence: each letter of a string would be one."""
    for role, value in entrants.items():
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise OptionError(f"{role} must be a sequence of solvers; got {value!r}; give a tuple: {role}=({value!r},)")


def spec_of(entrant: Any) -> str:
    """The name of an entrant in rows: its name and non-default options, as in "highs(method='ipm')".

    Raises UnknownSolverError for an unknown name and for an object that is not a solver.
    """
    if not isinstance(entrant, str):
        if not isinstance(entrant, Solver):
            raise UnknownSolverError(
                f"{entrant!r} is no solver; give a name, or wrap a function by formulations.function_solver(...)"
            )
        return _own_spec(entrant)
    if _has_options(entrant):
        return _own_spec(get_solver(entrant))
    head = entrant.partition(":")[0]
    if entrant == "auto" or head in SOLVERS:
        return entrant
    if ":" in entrant:
        return resolved(entrant).spec
    get_solver(entrant)  # raises, with similar names
    return entrant


def method_spec(entrant: Any) -> str:
    """The name of a method in rows: its name and non-default options, as in "bundle(groups=1)"."""
    method: Any = get_method(entrant)  # raises for an unknown method
    for name in METHODS:
        usual: Any = get_method(name)
        if type(usual) is type(method):
            return name + _options(method, usual)
    return repr(method)


def _own_spec(solver: Any) -> str:
    spec: str = solver.spec
    try:
        usual: Any = get_solver(spec)
    except UnknownSolverError:  # a custom solver, or one that is not installed
        return spec
    return spec + _options(solver, usual)


def _has_options(entrant: str) -> bool:
    """Whether a name is in the table and has options, as in "highs(presolve='off')"."""
    head, bracket, _ = entrant.partition("(")
    return bool(bracket) and head.partition(":")[0] in SOLVERS


def _options(part: Any, usual: Any) -> str:
    """The options of a part that differ from the defaults."""
    if type(usual) is not type(part) or not is_dataclass(usual):
        return ""
    pairs = [(entry.name, getattr(part, entry.name)) for entry in fields(usual)]
    changed = [f"{name}={value!r}" for name, value in pairs if value != getattr(usual, name)]
    return f"({', '.join(changed)})" if changed else ""


def resolved(entrant: Entrant) -> Solver:
    """The solver object. Raises UnknownSolverError for an unknown solver or a missing package."""
    if not isinstance(entrant, str):
        return entrant
    if not _has_options(entrant) and entrant.partition(":")[0] not in SOLVERS and ":" in entrant:
        return imported(entrant)
    try:
        return get_solver(entrant)
    except ImportError as error:
        raise UnknownSolverError(f"{entrant!r} cannot be loaded: {error}; install its package") from error


def parcel(job: Any, what: str) -> bytes:
    """The job pickled for a worker process. Classes and functions are pickled by their import path.

    Raises OptionError for objects defined in a script, a notebook or a function: a worker cannot import them.
    """
    cure = "define it at the top level of an importable module, and pass it from there or as 'module:attribute'"
    try:
        packed = pickle.dumps(job, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(f"{what} cannot be sent to a worker process: {error}; {cure}") from error
    if b"__main__" in packed:
        raise OptionError(f"{what} cannot be sent to a worker process: it is defined in __main__; {cure}")
    return packed


class Job(Protocol):
    """Work in independent items. It is pickled, so its parts must be importable."""

    def open(self) -> Iterator[str]:
        """Load the data and the solver, compile kernels; yields a reason if that is impossible (a missing package)."""
        ...

    def warm(self) -> None:
        """Load modules by solving a tiny problem."""
        ...

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        """The row of one item. partial: a function that takes the fields of the row that are known so far."""
        ...


def main() -> None:
    """Run the job from standard input: a line with length, memory limit and items, then the pickled job."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    head = json.loads(sys.stdin.buffer.readline())
    job: Job = pickle.loads(sys.stdin.buffer.read(head["length"]))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _work(job, head["items"], head["memory"], out)
    os._exit(0)  # some solvers hang or crash at a normal exit


def _work(job: Job, items: list[int], memory: int | None, out: TextIO) -> None:
    def send(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    warnings.simplefilter("ignore")
    for missing in job.open():
        send({"missing": missing})
        return
    if memory is not None:
        hold_memory(memory)
    send({"ready": True})
    job.warm()
    if memory is not None:  # modules loaded on first use do not count
        hold_memory(memory)
    send({"warm": True})
    for item in items:
        send({"begin": item})
        row = job.row(item, lambda fields: send({"partial": fields}))
        out.write('{"row": ' + row.as_line() + "}\n")
        out.flush()


def _die_with_parent() -> None:
    """Exit when standard input closes, which means that the parent has ended."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
