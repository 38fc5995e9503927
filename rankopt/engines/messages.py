"""Messages between a crew and its workers: eight bytes of length, then a pickle. Length 0 is a beat, a sign of life.

The worker's end waits; the crew's end never does, so that a worker that was stopped in the midst of a message cannot
hold up those who wait for others.
"""

from __future__ import annotations

import pickle
import struct
import threading
from contextlib import suppress
from socket import socket
from time import sleep
from typing import Any

__all__ = ["MessageReceiver", "MessageSender"]

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
