"""One shard after the other, the queries of each shared among the threads of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.parallel import at_most
from rankopt.risk.shard import Answer, Shard, ShardFunction


@dataclass(frozen=True)
class Threads:
    """Computes shards in turn, each with `workers` threads; None takes as many as this process has cores."""

    workers: int | None = None

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        with at_most(self.workers):
            return [question(shard) for shard in shards]

    def each(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> Iterator[Answer]:
        """The answers of `map` one after the other, so that not all need be held."""
        for shard in shards:
            with at_most(self.workers):
                answer = question(shard)
            yield answer
