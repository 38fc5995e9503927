"""Shards in processes of their own on this machine.

The workers of the processes engine: who holds which shard, and what happens when one dies or falls silent.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socketpair
from typing import Any

from formulations.parallel import threads
from rankopt.engines import messages as signs
from rankopt.engines.mapped_shards import StoredShard, store_shard
from rankopt.engines.messages import MessageSender
from rankopt.engines.worker import Failed, command
from rankopt.errors import EngineError, OptionError
from rankopt.risk.shard import Answer, Shard, ShardFunction

ATTEMPTS = 3
"""Workers that may be lost on one shard before that is an error; each may be silent twice as long as the one before."""


class WorkerHandle:
    """One worker: its process, the way to it, its signs of life, and the number of the shard that it computes now."""

    def __init__(self, folder: str) -> None:
        ours, theirs = socketpair()
        with theirs:
            call = command(theirs.fileno(), folder)
            # A process group of its own: Ctrl-C in a terminal reaches the parent alone.
            self.process = subprocess.Popen(call, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0)
        self.post = MessageSender(ours)
        self.signs = signs.Heartbeat(self.process.pid)
        self.busy: int | None = None

    def ask(self, number: int, path: str, question: Any) -> None:
        """Begin to ask the question of the shard of this number."""
        self.busy = number
        self.signs.began()
        self.post.put((path, question))

    def silence(self) -> float:
        """Seconds for which it gave no sign."""
        return self.signs.look(self.post.heard)

    def dismiss(self) -> str:
        """End the process; how it ended, in words."""
        self.post.end.close()
        self.process.kill()
        code = self.process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def died(self) -> str:
        """How the process ended by itself, in words."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)  # its end of the connection is closed, so it is on its way
        return self.dismiss()


class WorkerPool:
    """At most `size` workers; shard i is computed by worker i modulo their number, so each holds shards of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.folder = tempfile.mkdtemp(prefix="rankopt-")
        self.hands: list[WorkerHandle | None] = []
        self.shards: Sequence[Shard] | None = None
        self.stowed: list[StoredShard] = []
        self.sets = 0
        self.dismiss = weakref.finalize(self, _dismissed, self.hands, self.folder, self.owner)

    def ask(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        """The answers of all shards, in their order."""
        with self.lock:
            try:
                if self.shards is not shards:
                    self._take(shards)
                return self._answers(question)
            except BaseException:  # who was asked and not heard would answer the next question wrongly
                for place, hand in enumerate(self.hands):
                    if hand is not None and hand.busy is not None:
                        self.hands[place] = None
                        hand.dismiss()
                raise

    def _take(self, shards: Sequence[Shard]) -> None:
        """Stow these shards in place of those before."""
        self.shards, before = None, Path(self.folder, str(self.sets))
        shutil.rmtree(before, ignore_errors=True)
        self.sets += 1
        folder = Path(self.folder, str(self.sets))
        folder.mkdir()
        self.stowed = store_shard(shards, folder)
        self.shards = shards
        self.hands.extend([None] * (min(self.size, len(shards)) - len(self.hands)))

    def _answers(self, question: ShardFunction[Answer]) -> list[Answer]:
        todo = [deque(range(i, len(self.stowed), len(self.hands))) for i in range(len(self.hands))]
        answers: dict[int, Answer] = {}
        deaths: Counter[int] = Counter()
        while len(answers) < len(self.stowed):
            asked: dict[int, WorkerHandle] = {}  # by place
            for place, numbers in enumerate(todo):
                if numbers:
                    hand = asked[place] = self.hands[place] or WorkerHandle(self.folder)
                    self.hands[place] = hand
                    if hand.busy is None:
                        hand.ask(numbers[0], self.stowed[numbers[0]].path, question)
            for place in _ready(asked):
                hand = asked[place]
                try:
                    told = hand.post.pump()
                except (EOFError, OSError):
                    self._mourn(place, deaths, hand.died())
                    continue
                if told is not None:
                    (answer,) = told
                    if isinstance(answer, Failed):
                        raise answer.error
                    hand.busy = None
                    answers[todo[place].popleft()] = answer
            for place, hand in asked.items():
                if self.hands[place] is hand and hand.busy is not None:
                    patience = signs.SILENT * 2 ** deaths[hand.busy]
                    if hand.silence() > patience:
                        hand.dismiss()
                        self._mourn(place, deaths, f"silence of {patience:g} s")
        return [answers[number] for number in range(len(self.stowed))]

    def _mourn(self, place: int, deaths: Counter[int], end: str) -> None:
        """Make room for a new worker in the place of one that has gone; EngineError after too many."""
        hand = self.hands[place]
        assert hand is not None
        assert hand.busy is not None
        self.hands[place] = None
        deaths[hand.busy] += 1
        if deaths[hand.busy] >= ATTEMPTS:
            raise EngineError(
                f"{ATTEMPTS} workers were lost on shard {hand.busy}, the last by {end}; if memory ran out use fewer "
                "workers (n_jobs), else see what engine='serial' says"
            )


def _ready(asked: dict[int, WorkerHandle]) -> list[int]:
    """The places of those to whom or from whom something can go; waits for that no longer than until the next look."""
    with selectors.PollSelector() as selector:
        for place, hand in asked.items():
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if hand.post.sends else 0)
            selector.register(hand.post, events, place)
        return [key.data for key, _ in selector.select(signs.LOOK)]


def _dismissed(hands: list[WorkerHandle | None], folder: str, owner: int) -> None:
    if os.getpid() != owner:  # in a fork of the owner: nothing here is its own
        return
    for hand in hands:
        if hand is not None:
            hand.dismiss()
    hands.clear()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Processes:
    """Computes shards in `workers` processes of one thread each; None takes one a core.

    Features go to a file in a temporary folder, or stay in the file that they are mapped from, and are mapped by all
    workers; each loads its own shards. A worker that dies or is stopped is replaced and its shard asked again, which
    changes no bit; one that is slow is left to work. Workers are new interpreters: scripts need no
    `if __name__ == "__main__"`. They end with `close`, with this object, and with its process.
    """

    workers: int | None = None
    _crew: WorkerPool | None = field(default=None, init=False, repr=False, compare=False)

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        if self._crew is None or self._crew.owner != os.getpid():
            if os.name != "posix":
                raise OptionError("engine 'processes' needs Linux or macOS; use 'threads', or 'dask'")
            self._crew = WorkerPool(self.workers or threads())
        return self._crew.ask(question, shards)

    def close(self) -> None:
        """End the workers and remove their files; the next `map` starts anew."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.dismiss()

    def __getstate__(self) -> dict[str, Any]:
        return {"workers": self.workers, "_crew": None}  # a copy has workers of its own
