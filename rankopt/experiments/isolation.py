"""Limits of a run, and how a process holds itself to them and measures itself.

What is handed to a worker: a solver or method by name, by place or as an object that another process can have.

The process that solves: takes a job from its standard input, and tells what it finds line by line.

    {"ready": true}            it has come up, and its limit of memory holds
    {"warm": true}             it got through what is loaded and compiled on first use
    {"begin": 3}               it is at problem 3
    {"partial": {...}}         what is known so far of problem 3: fields of its row
    {"row": {...}}             the row of problem 3
    {"missing": "..."}         the solver's package is not there

Lines go to the standard output that it was born with; what solvers print goes to standard error.
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


@dataclass(frozen=True)
class Limits:
    """Hard limits; a process that passes one is killed, and its row says so.

    problem: seconds for a problem with all its repeats and its judging.
    tape: seconds of one solver for a tape; when they are used up its other problems are given up.
    training_time: seconds of a live run, which it is asked to keep; it is killed at twice that and 5 more.
    start: seconds in which a process must come up and, once on a machine, compile what its solver needs.
    memory: bytes that a solver may take beyond what its process holds when it begins; the system sees to it where it
        can (data on Linux, the address space elsewhere; nothing on Windows).
    max_crashes: crashes and the like in a row after which a solver is given up.
    """

    problem: float = 10.0
    tape: float = 3.0
    training_time: float = 2.0
    start: float = 300.0
    memory: int | None = 4 << 30
    max_crashes: int = 3

    def __post_init__(self) -> None:
        for name in ("problem", "tape", "training_time", "start", "max_crashes"):
            if not getattr(self, name) > 0:
                raise OptionError(f"the limit {name} = {getattr(self, name)} leaves nothing; give a positive number")
        if self.memory is not None and self.memory <= 0:
            raise OptionError(f"the limit memory = {self.memory} leaves nothing; give bytes, or None for no limit")


def check_limits(limits: Any) -> None:
    """Raise OptionError for what are no limits."""
    if not isinstance(limits, Limits):
        raise OptionError(f"limits = {limits!r} are none of a run; give Limits(problem=10.0, tape=60.0), in seconds")


def hold_memory(more: int) -> None:
    """From now on this process may take `more` bytes beyond what it holds, where the system can see to that."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    kind, used = (resource.RLIMIT_AS, 1 << 30) if _status("VmData") is None else (resource.RLIMIT_DATA, 0)
    limit = (_status("VmData") or used) + more
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def start_peak() -> None:
    """Measure the peak from here on, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def memory_peak() -> int | None:
    """The most bytes that this process had resident, since `start_peak` or its birth."""
    known = _status("VmHWM")
    if known is not None:
        return known
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def memory_now() -> int | None:
    """The bytes that this process has resident, where that can be read."""
    return _status("VmRSS")


def _status(name: str) -> int | None:
    """A figure of this process in bytes, from Linux's own record."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(found[0]) * 1024 if found else None


Entrant = str | Solver
"""A solver that takes part: its name, "module:attribute", or an object such as `function_solver(...)` makes."""


def check_entrants(**entrants: Any) -> None:
    """Raise OptionError for a role whose entrants are no list: of a name alone each letter would be one."""
    for role, given in entrants.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise OptionError(
                f"{role} = {given!r} is no list of those who take part; give a tuple: {role}=({given!r},)"
            )


def spec_of(entrant: Any) -> str:
    """What rows call an entrant: its name, and options that are not the usual ones, as in "highs(method='ipm')".

    Raises UnknownSolverError for a name that is none, so that a slip is no row, and for what is no solver.
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
    get_solver(entrant)  # raises, with what is near
    return entrant


def method_spec(entrant: Any) -> str:
    """What rows call a method: its name, and options that are not the usual ones, as in "bundle(groups=1)"."""
    method: Any = get_method(entrant)  # raises for what is none
    for name in METHODS:
        usual: Any = get_method(name)
        if type(usual) is type(method):
            return name + _options(method, usual)
    return repr(method)


def _own_spec(solver: Any) -> str:
    spec: str = solver.spec
    try:
        usual: Any = get_solver(spec)
    except UnknownSolverError:  # a solver of the caller's own, or one that is not installed
        return spec
    return spec + _options(solver, usual)


def _has_options(entrant: str) -> bool:
    """Whether a name is one of the table with options, as in "highs(presolve='off')"."""
    head, bracket, _ = entrant.partition("(")
    return bool(bracket) and head.partition(":")[0] in SOLVERS


def _options(part: Any, usual: Any) -> str:
    """The options of a part that differ from those that its name stands for."""
    if type(usual) is not type(part) or not is_dataclass(usual):
        return ""
    pairs = [(entry.name, getattr(part, entry.name)) for entry in fields(usual)]
    changed = [f"{name}={value!r}" for name, value in pairs if value != getattr(usual, name)]
    return f"({', '.join(changed)})" if changed else ""


def resolved(entrant: Entrant) -> Solver:
    """The solver itself. Raises UnknownSolverError where there is none, or its package is missing."""
    if not isinstance(entrant, str):
        return entrant
    if not _has_options(entrant) and entrant.partition(":")[0] not in SOLVERS and ":" in entrant:
        return imported(entrant)
    try:
        return get_solver(entrant)
    except ImportError as error:
        raise UnknownSolverError(f"{entrant!r} cannot be loaded: {error}; install its package") from error


def parcel(job: Any, what: str) -> bytes:
    """The job as bytes for a process of our own. Objects travel by the place where they can be imported.

    Raises OptionError for what is defined in a script, a notebook or a function: no other process can have that.
    """
    cure = "define it at the top of a module that can be imported, and give it from there or as 'module:attribute'"
    try:
        packed = pickle.dumps(job, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(f"{what} cannot be handed to a process of its own: {error}; {cure}") from error
    if b"__main__" in packed:
        raise OptionError(f"{what} cannot be handed to a process of its own: it is defined in __main__; {cure}")
    return packed


Tell = Callable[[dict[str, Any]], None]


class Job(Protocol):
    """What is to be done, in items that stand alone; pickled, so each of its parts can be imported."""

    def open(self) -> Iterator[str]:
        """Load what is needed; yields, before anything is done, why it cannot be (the package is missing)."""
        ...

    def warm(self) -> None:
        """Let what is loaded or compiled on first use be loaded now: it is asked something tiny."""
        ...

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        """The row of one item. partial: told fields of the row that are known already."""
        ...


def main() -> None:
    """Do the job on standard input: its length and the limit of memory in one line, the bytes, the items in a line."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    head = json.loads(sys.stdin.buffer.readline())
    job: Job = pickle.loads(sys.stdin.buffer.read(head["length"]))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _work(job, head["items"], head["memory"], out)
    os._exit(0)  # some solvers hang or crash when their process ends in good order


def _work(job: Job, items: list[int], memory: int | None, out: TextIO) -> None:
    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    warnings.simplefilter("ignore")
    for missing in job.open():
        tell({"missing": missing})
        return
    if memory is not None:
        hold_memory(memory)
    tell({"ready": True})
    job.warm()
    if memory is not None:  # what is loaded on first use does not count
        hold_memory(memory)
    tell({"warm": True})
    for item in items:
        tell({"begin": item})
        row = job.row(item, lambda fields: tell({"partial": fields}))
        out.write('{"row": ' + row.as_line() + "}\n")
        out.flush()


def _die_with_parent() -> None:
    """Standard input stays open while the parent lives; a worker without a parent would never be stopped."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
