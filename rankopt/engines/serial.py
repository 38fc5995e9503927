"""One shard after the other, in this thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formulations.parallel import at_most
from rankopt.risk.shard import Answer, Shard, ShardFunction


@dataclass(frozen=True)
class Serial:
    """Computes shards in turn; needs nothing and is what every other engine must agree with, bit for bit."""

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        with at_most(1):
            return [question(shard) for shard in shards]
