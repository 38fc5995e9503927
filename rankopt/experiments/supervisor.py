"""The supervisor: starts workers, kills those that exceed a limit, and records every result or failure as a row.

Rows are appended to a file during the run; an interrupted run resumes from it.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import IO, Any

from rankopt.errors import OptionError
from rankopt.experiments.isolation import Job, Limits, parcel
from rankopt.experiments.rows import BenchmarkRow, Outcome, read_rows, written

BOOT = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop());"
    "runpy.run_module('rankopt.experiments.isolation', run_name='__main__', alter_sys=True)"
)

WARM_UP = 60.0  # seconds, beyond those of a problem, for a tiny first problem, which loads modules

STARVED = ("MemoryError", "bad_alloc", "Cannot allocate memory", "out of memory", "Out of memory")
"""Messages on standard error of a process that ran out of memory."""


def supervise(
    job: Job,
    rows: Sequence[BenchmarkRow],
    items: Sequence[int],
    limits: Limits,
    seconds: float,
    budget: float = math.inf,
) -> Iterator[BenchmarkRow]:
    """The rows of these items of a job; rows[item] has all fields of an item except the outcome.

    A worker solves item after item. If it crashes, hangs or runs out of memory, the item's row reports it, and another
    worker continues. seconds: the limit of an item. budget: seconds after which the remaining items are given up.
    """
    left, broken, used = list(items), 0, 0.0
    packed = parcel(job, rows[0].solver if rows else "nothing")
    while left:
        if broken >= limits.max_crashes:
            yield from _unfinished_rows(rows, left, f"it failed {broken} times in a row")
            return
        if used >= budget:
            done = len(items) - len(left)
            yield from _unfinished_rows(rows, left, f"its {budget:g} s were used up after {done} of {len(items)}")
            return
        with _Worker(packed, left, limits) as worker:
            while left:
                began = monotonic()
                found = worker.next_row(rows[left[0]], seconds, limits.start)
                if found.status is Outcome.MISSING:
                    yield from (replace(rows[item], status=found.status, message=found.message) for item in left)
                    return
                used += monotonic() - began - worker.seconds_starting
                left.pop(0)
                broken = broken + 1 if worker.ended else 0
                yield found
                if worker.ended and not worker.warm:  # another worker would fail too
                    yield from _unfinished_rows(rows, left, "its worker ended before the first problem")
                    return
                if worker.ended or used >= budget:
                    break


def _unfinished_rows(rows: Sequence[BenchmarkRow], left: list[int], why: str) -> Iterator[BenchmarkRow]:
    return (replace(rows[item], status=Outcome.GIVEN_UP, message=f"not tried: {why}") for item in left)


class _Worker:
    """One process, with its messages in a queue and its standard error in a file."""

    def __init__(self, packed: bytes, items: list[int], limits: Limits) -> None:
        self.words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
        self.process = subprocess.Popen(
            [sys.executable, "-c", BOOT, json.dumps(sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, start_new_session=True,
        )  # fmt: skip
        self.messages: Queue[dict[str, Any] | None] = Queue()
        self.ready = self.warm = self.ended = self.dead = False
        self.seconds_starting = 0.0
        threading.Thread(target=self._listen, daemon=True).start()
        head = {"length": len(packed), "memory": limits.memory, "items": items}
        with suppress(OSError):  # the process may be dead already, which is detected later
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(head).encode() + b"\n" + packed)
            self.process.stdin.flush()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.words.close()

    def next_row(self, blank: BenchmarkRow, seconds: float, start: float) -> BenchmarkRow:
        """The row of the current or next item, also if the worker fails."""
        self.seconds_starting = 0.0
        partial: dict[str, Any] = {}
        began, allowed = monotonic(), start
        deadline = began + (seconds if self.warm else start)
        while True:
            try:
                message = self.messages.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                self.ended = True
                self._kill()
                late = "a tiny first problem was not solved in" if self.ready else "it did not start in"
                far = f"killed after {seconds:g} s" if self.warm else f"killed: {late} {allowed:.3g} s"
                return replace(blank, **{"status": Outcome.TIMED_OUT, "message": far, **partial})
            if message is None:
                self.ended = True
                status, words = self._autopsy()
                return replace(blank, **{"status": status, "message": words, **partial})
            if "missing" in message:
                return replace(blank, status=Outcome.MISSING, message=message["missing"])
            if "ready" in message:
                self.ready, allowed = True, min(start, seconds + WARM_UP)
                deadline = monotonic() + allowed
            if "warm" in message:
                self.warm, self.seconds_starting = True, monotonic() - began
            if "begin" in message:
                deadline = monotonic() + seconds
            if "partial" in message:
                partial = message["partial"]
            if "row" in message:
                return BenchmarkRow.from_line(json.dumps(message["row"]))

    def _listen(self) -> None:
        """Queue the worker's messages; None at their end."""
        assert self.process.stdout is not None
        with suppress(ValueError, OSError):  # the pipe was closed during reading
            for line in self.process.stdout:
                self.messages.put(json.loads(line))
        self.messages.put(None)

    def _kill(self) -> None:
        """Kill the process and its children; only once, because its id may be reused."""
        if self.dead:
            return
        self.dead = True
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()

    def _autopsy(self) -> tuple[Outcome, str]:
        code = self.process.wait()
        self.words.seek(0, os.SEEK_END)
        self.words.seek(max(0, self.words.tell() - 2000))
        stderr = self.words.read().decode(errors="replace").strip()
        last = stderr.splitlines()[-1][:200] if stderr else ""
        if any(word in stderr for word in STARVED):
            return Outcome.OUT_OF_MEMORY, last
        if code == -signal.SIGKILL:
            return Outcome.CRASHED, "killed by SIGKILL from outside: by a user, or by the system if memory ran out"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome.CRASHED, f"the process ended by {how}" + (f": {last}" if last else "")


class RowFile:
    """Rows by key, each written to the file at once; without a path only in memory."""

    def __init__(self, path: str | PathLike[str] | None = None, resume: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[str, ...], BenchmarkRow] = {}
        if self.path is None:
            return
        if self.path.exists() and not resume:
            raise OptionError(f"{self.path} exists; remove it, choose another file, or resume=True to continue it")
        if self.path.exists():
            for row in read_rows(self.path):
                self.rows[row.key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(written(self.rows.values()), encoding="utf-8")  # drops a truncated last line

    def known(self, row: BenchmarkRow) -> BenchmarkRow | None:
        """The stored row with the same key; None without one."""
        return self.rows.get(row.key)

    def add(self, row: BenchmarkRow) -> None:
        self.rows[row.key] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(row.as_line() + "\n")


def missing_rows(
    file: RowFile, job: Job, blanks: Sequence[BenchmarkRow], limits: Limits, seconds: float, budget: float = math.inf
) -> Iterator[BenchmarkRow]:
    """The rows of a job that the file does not have yet, each added to it; see `supervise`."""
    items = [item for item, blank in enumerate(blanks) if file.known(blank) is None]
    for row in supervise(job, blanks, items, limits, seconds, budget) if items else ():
        file.add(row)
        yield row
