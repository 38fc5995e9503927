"""Signs of life: how a process that is slow is told from one that stands still.

A worker beats from a thread of its own while it computes. One that holds the interpreter in a long call cannot beat,
but its processor clock moves. A process that was stopped (SIGSTOP, a frozen container) does neither.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from time import monotonic
from typing import Any

__all__ = ["LOOK", "SILENT", "Heartbeat"]

LOOK = 0.5
"""Seconds between two looks."""

SILENT = 10.0
"""Seconds without any sign after which a process is given up: the work of a few microseconds is a sign, so this is
generous even on a machine that swaps."""

HASTE = 5
"""A second counts so many times where the system says that the process is stopped: no sign can come of it."""


class Heartbeat:
    """The signs that one process gives. silence: seconds without any, as far as somebody looked: whoever looks may have
    been stopped itself, or the machine asleep, and that is nobody's silence."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.silence = 0.0
        self._sign: Any = None
        self._looked = monotonic()

    def began(self) -> None:
        """From now on signs are waited for."""
        self.silence, self._looked = 0.0, monotonic()

    def look(self, heard: object) -> float:
        """The silence so far; seconds of a process that is stopped count more.

        heard: what the process said of itself, another value with every sign.
        """
        passed = monotonic() - self._looked
        if passed >= LOOK:
            self._looked += passed
            stopped, clock = clock_of(self.pid)
            counted = min(passed, 2 * LOOK) * (HASTE if stopped else 1)
            self.silence = 0.0 if (heard, clock) != self._sign else self.silence + counted
            self._sign = heard, clock
        return self.silence


def clock_of(pid: int) -> tuple[bool, object]:
    """Whether the system says that a process is stopped, and what its processor clock shows, in no unit; None where
    nobody can tell."""
    if os.path.exists("/proc/self/stat"):
        try:
            told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False, None
        fields = told.rpartition(")")[2].split()
        return fields[0] in "Tt", fields[11:13]  # time in the process, and in the system for it; see proc(5)
    try:
        call = ["ps", "-o", "state=,time=", "-p", str(pid)]
        told = subprocess.run(call, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False, None
    return told[:1] == "T", told
