"""Shards in this process, one after the other: in one thread, or with the queries of each distributed over threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.parallel import at_most
from rankopt.risk.shard import Answer, Shard, ShardFunction


@dataclass(frozen=True)
class Serial:
    """Computes shards in turn in one thread. Every other engine must agree with it, bit for bit."""

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        with at_most(1):
            return [question(shard) for shard in shards]


@dataclass(frozen=True)
class Threads:
    """Computes shards in turn, each with `workers` threads; None takes as many as this process has cores."""

    workers: int | None = None

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        return list(self.each(question, shards))

    def each(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> Iterator[Answer]:
        """The answers of `feature_map` one after the other, so that not all are in memory at once."""
        for shard in shards:
            with at_most(self.workers):
                answer = question(shard)
            yield answer
