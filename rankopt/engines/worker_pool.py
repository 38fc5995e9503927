"""The workers of the processes engine: who holds which shard, and what happens when one of them dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

from rankopt.engines.mapped_shards import Stowed, stow
from rankopt.engines.worker import Failed, command
from rankopt.errors import EngineError
from rankopt.risk.shard import Answer, Question, Shard

__all__ = ["Crew"]

ATTEMPTS = 3
"""Workers that may die on the same shard before that is an error."""


class Hand:
    """One worker: its process, the connection to it, and the number of the shard that it computes now."""

    def __init__(self, folder: str) -> None:
        self.connection, theirs = Pipe()
        with theirs:
            call = command(theirs.fileno(), folder)
            # A process group of its own: Ctrl-C in a terminal reaches the parent alone.
            self.process = subprocess.Popen(call, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0)
        self.busy: int | None = None

    def dismiss(self) -> str:
        """End the process; how it ended, in words."""
        self.connection.close()
        self.process.kill()
        code = self.process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def died(self) -> str:
        """How the process ended by itself, in words."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)  # its end of the connection is closed, so it is on its way
        return self.dismiss()


class Crew:
    """At most `size` workers; shard i is computed by worker i modulo their number, so each holds shards of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.folder = tempfile.mkdtemp(prefix="rankopt-")
        self.hands: list[Hand | None] = []
        self.shards: Sequence[Shard] | None = None
        self.stowed: list[Stowed] = []
        self.sets = 0
        self.dismiss = weakref.finalize(self, _dismissed, self.hands, self.folder, self.owner)

    def ask(self, question: Question[Answer], shards: Sequence[Shard]) -> list[Answer]:
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
        self.stowed = stow(shards, folder)
        self.shards = shards
        self.hands.extend([None] * (min(self.size, len(shards)) - len(self.hands)))

    def _answers(self, question: Question[Answer]) -> list[Answer]:
        todo = [deque(range(i, len(self.stowed), len(self.hands))) for i in range(len(self.hands))]
        answers: dict[int, Answer] = {}
        deaths: Counter[int] = Counter()
        while len(answers) < len(self.stowed):
            asked: dict[Any, int] = {}  # connection → place
            for place, numbers in enumerate(todo):
                hand = self.hands[place]
                if numbers and hand is None:
                    hand = self.hands[place] = Hand(self.folder)
                if hand is not None and numbers:
                    if hand.busy is None and not self._asked(hand, numbers[0], question):
                        self._mourn(place, numbers[0], deaths)
                        continue
                    asked[hand.connection] = place
            for ready in wait(list(asked)) if asked else []:
                place = asked[ready]
                hand = self.hands[place]
                assert hand is not None
                try:
                    answer: Answer | Failed = hand.connection.recv()
                except (EOFError, OSError):
                    self._mourn(place, todo[place][0], deaths)
                    continue
                if isinstance(answer, Failed):
                    raise answer.error
                hand.busy = None
                answers[todo[place].popleft()] = answer
        return [answers[number] for number in range(len(self.stowed))]

    def _asked(self, hand: Hand, number: int, question: Question[Answer]) -> bool:
        """Ask; False if the worker is dead."""
        hand.busy = number
        try:
            hand.connection.send((self.stowed[number].path, question))
        except OSError:
            return False
        return True

    def _mourn(self, place: int, number: int, deaths: Counter[int]) -> None:
        """Make room for a new worker in the place of a dead one; EngineError after too many."""
        hand = self.hands[place]
        assert hand is not None
        self.hands[place] = None
        end = hand.died()
        deaths[number] += 1
        if deaths[number] >= ATTEMPTS:
            raise EngineError(
                f"{ATTEMPTS} workers died on shard {number}, the last by {end}; if memory ran out use fewer workers "
                "(n_jobs), else see what engine='serial' says"
            )


def _dismissed(hands: list[Hand | None], folder: str, owner: int) -> None:
    if os.getpid() != owner:  # in a fork of the owner: nothing here is its own
        return
    for hand in hands:
        if hand is not None:
            hand.dismiss()
    hands.clear()
    shutil.rmtree(folder, ignore_errors=True)
