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

__all__ = ["LOOK", "SILENT", "Signs"]

LOOK = 0.5
"""Seconds between two looks."""

SILENT = 10.0
"""Seconds without any sign after which a process is given up: the work of a few microseconds is a sign, so this is
generous even on a machine that swaps."""


class Signs:
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
        """The silence so far. heard: what the process said of itself, another value with every sign."""
        passed = monotonic() - self._looked
        if passed >= LOOK:
            self._looked += passed
            sign = heard, processor_time(self.pid)
            self.silence = 0.0 if sign != self._sign else self.silence + min(passed, 2 * LOOK)
            self._sign = sign
        return self.silence


def processor_time(pid: int) -> object:
    """What the processor clock of a process shows, in no unit; None where nobody can tell."""
    if os.path.exists("/proc/self/stat"):
        try:
            told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        return told.rpartition(")")[2].split()[11:13]  # in the process and in the system for it; see proc(5)
    try:
        call = ["ps", "-o", "time=", "-p", str(pid)]
        return subprocess.run(call, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
