"""Limits of a run, and how a process holds itself to them and measures itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankopt.errors import OptionError


@dataclass(frozen=True)
class Limits:
    """Hard limits; a process that passes one is killed, and its row says so.

    problem: seconds for a problem with all its repeats and its judging.
    tape: seconds of one solver for a tape; when they are used up its other problems are given up.
    training: seconds of a live run, which it is asked to keep; it is killed at twice that and 5 more.
    start: seconds in which a process must come up and, once on a machine, compile what its solver needs.
    memory: bytes that a solver may take beyond what its process holds when it begins; the system sees to it where it
        can (data on Linux, the address space elsewhere; nothing on Windows).
    breakdowns: crashes and the like in a row after which a solver is given up.
    """

    problem: float = 10.0
    tape: float = 3.0
    training: float = 2.0
    start: float = 300.0
    memory: int | None = 4 << 30
    breakdowns: int = 3

    def __post_init__(self) -> None:
        for name in ("problem", "tape", "training", "start", "breakdowns"):
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
