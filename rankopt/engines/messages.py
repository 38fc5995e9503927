"""Messages between a crew and its workers: eight bytes of length, then a pickle. Length 0 is a beat, a sign of life.

The worker's end waits; the crew's end never does, so that a worker that was stopped in the midst of a message cannot
hold up those who wait for others.

Signs of life: how a process that is slow is told from one that stands still.

A worker beats from a thread of its own while it computes. One that holds the interpreter in a long call cannot beat,
but its processor clock moves. A process that was stopped (SIGSTOP, a frozen container) does neither.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from socket import socket
from time import monotonic, sleep
from typing import Any

HEAD = struct.Struct("!Q")
TOGETHER = 1 << 16
"""Bytes of a message that go together with its head."""

BEAT = 0.25
"""Seconds between two beats of a worker that computes."""


class MessageSender:
    """The crew's end. heard: bytes that have moved, either way."""

    def __init__(self, end: socket) -> None:
        end.setblocking(False)
        self.end = end
        self.heard = 0
        self._going = memoryview(b"")
        self._coming, self._have, self._in_head = bytearray(HEAD.size), 0, True

    def fileno(self) -> int:
        return self.end.fileno()

    @property
    def sends(self) -> bool:
        """Whether a message has still to go."""
        return bool(self._going)

    def put(self, message: Any) -> None:
        """Let a message go: what does not go at once does with the next `pump`s."""
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._going = memoryview(HEAD.pack(len(content)) + content)
        with suppress(OSError):  # an end that has gone is seen by `pump`
            self._send()

    def pump(self) -> tuple[Any] | None:
        """Move what moves without waiting; the message that is whole now, alone in a tuple, or None.

        Raises EOFError or OSError where the other end is gone.
        """
        self._send()
        try:
            while True:
                moved = self.end.recv_into(memoryview(self._coming)[self._have :])
                if not moved:
                    raise EOFError
                self.heard += moved
                self._have += moved
                if self._have == len(self._coming) and (whole := self._whole()) is not None:
                    return whole
        except BlockingIOError:
            return None

    def _send(self) -> None:
        """Send what goes without waiting."""
        with suppress(BlockingIOError):
            while self._going:
                moved = self.end.send(self._going)
                self._going = self._going[moved:]
                self.heard += moved

    def _whole(self) -> tuple[Any] | None:
        """The message, if a part that has come is one; after a head its message is awaited, else the next head."""
        part, self._have = self._coming, 0
        length = HEAD.unpack(part)[0] if self._in_head else 0
        message = None if self._in_head else (pickle.loads(part),)
        self._in_head = not length
        self._coming = bytearray(length or HEAD.size)
        return message


class MessageReceiver:
    """The worker's end: takes a question, beats until it is answered."""

    def __init__(self, end: socket) -> None:
        self.end = end
        self._reader = end.makefile("rb")
        self._busy = threading.Event()
        self._turn = threading.Lock()
        threading.Thread(target=self._beats, daemon=True).start()

    def take(self) -> bytes:
        """The next message, pickled; EOFError where there will be none."""
        length = HEAD.unpack(self._read(HEAD.size))[0]
        content = self._read(length)
        self._busy.set()
        return content

    def give(self, content: bytes) -> None:
        """Send an answer, pickled."""
        with self._turn:
            self._busy.clear()
            self.end.sendall(HEAD.pack(len(content)) + content[:TOGETHER])  # one part wakes the other end once
            self.end.sendall(memoryview(content)[TOGETHER:])

    def _read(self, length: int) -> bytes:
        content = self._reader.read(length)
        if len(content) < length:
            raise EOFError
        return content

    def _beats(self) -> None:
        try:
            while True:
                self._busy.wait()
                sleep(BEAT)
                with self._turn:
                    if self._busy.is_set():
                        self.end.sendall(HEAD.pack(0))
        except OSError:
            return  # the crew has gone, and the worker goes too


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
