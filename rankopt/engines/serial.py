"""One shard after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from rankopt.losses.shard import Shard

__all__ = ["Serial"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Serial:
    """Computes shards in turn; needs nothing and is what every other engine must agree with, bit for bit."""

    def map(self, function: Callable[[Shard], Result], shards: Iterable[Shard]) -> list[Result]:
        return [function(shard) for shard in shards]
