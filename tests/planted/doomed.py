"""Solvers that die, fail or cannot travel, in a module that workers can import."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from formulations.errors import InvalidProblemError
from formulations.solvers.exact import ExactArgmax


@dataclass(frozen=True)
class Dying(ExactArgmax):
    """Is killed with SIGKILL while it solves, once for each file in a folder; never in the process `safe`."""

    folder: str = ""
    safe: int = 0

    def solve_batch(self, batch):
        for mark in sorted(Path(self.folder).iterdir()):
            assert os.getpid() != self.safe
            try:
                mark.unlink()
            except FileNotFoundError:  # another worker was faster and dies
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        return super().solve_batch(batch)


@dataclass(frozen=True)
class Fatal(ExactArgmax):
    """Is killed whenever it solves."""

    safe: int = 0

    def solve_batch(self, batch):
        assert os.getpid() != self.safe
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Failing(ExactArgmax):
    """Raises an error of ours at the query with the most documents."""

    limit: int = 0

    def solve_batch(self, batch):
        if (batch.offsets[1:] - batch.offsets[:-1]).max() >= self.limit:
            raise InvalidProblemError(f"a query has {self.limit} documents or more")
        return super().solve_batch(batch)


@dataclass(frozen=True)
class Bound(ExactArgmax):
    """Holds what cannot be sent."""

    held: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class Slow(ExactArgmax):
    """Sleeps before it solves."""

    seconds: float = 0.0

    def solve_batch(self, batch):
        time.sleep(self.seconds)
        return super().solve_batch(batch)
