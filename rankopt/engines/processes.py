"""Shards in processes of their own on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from formulations.threads import threads
from rankopt.engines.worker_pool import WorkerPool
from rankopt.errors import OptionError
from rankopt.risk.shard import Answer, ShardFunction, Shard

__all__ = ["Processes"]


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
