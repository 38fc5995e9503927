"""A worker process: answers questions about stowed shards, and beats meanwhile, until its parent is gone."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from socket import socket

from formulations.parallel import at_most
from rankopt.engines.mapped_shards import StoredShard
from rankopt.engines.messages import MessageReceiver
from rankopt.errors import EngineError

WATCH = 0.25
"""Seconds between two looks at whether the parent lives: it may die while a shard is computed."""


@dataclass(frozen=True)
class Failed:
    """An error on its way to the parent."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Failed:
        """The error with its traceback as a note; one of ours in its place where it cannot travel."""
        told = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = EngineError(f"a worker failed with an error that cannot be sent ({type(error).__name__}: {error})")
        error.add_note(f"In a worker:\n{told}")
        return cls(error)


def command(handle: int, folder: str) -> list[str]:
    """How a worker is started: a new interpreter that finds the same modules and never looks at the user's script."""
    code = f"import sys; sys.path[:] = {list(map(str, sys.path))!r}; from rankopt.engines.worker import serve; "
    return [sys.executable, "-c", f"{code}serve({handle}, {folder!r}, {os.getpid()})"]


def serve(handle: int, folder: str, parent: int) -> None:
    """Answer what comes through the connection `handle`; when the parent has died, remove its folder and leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    watch = threading.Thread(target=_leave_with, args=(parent, folder), daemon=True)
    watch.start()
    held: dict[str, StoredShard] = {}
    try:
        with socket(fileno=handle) as end:
            desk = MessageReceiver(end)
            while True:
                desk.give(_answer(desk.take(), held))
    except (EOFError, OSError):
        watch.join()  # the connection goes a moment before the parent does; one that lives is about to kill us


def _answer(asked: bytes, held: dict[str, StoredShard]) -> bytes:
    """The answer to a question about a shard, or why there is none, pickled."""
    try:
        path, question = pickle.loads(asked)
        if held and os.path.dirname(path) != os.path.dirname(next(iter(held))):
            held.clear()  # other data: what was held is not asked for again
        with at_most(1):
            answer = question(held.setdefault(path, StoredShard(path)).shard)
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(Failed.of(error), protocol=pickle.HIGHEST_PROTOCOL)


def _leave_with(parent: int, folder: str) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH)
    shutil.rmtree(folder, ignore_errors=True)  # nobody else removes the files of a parent that was killed
    os._exit(1)
