"""Engines evaluate the shards of the data: a table name → class, loaded on use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulations.parallel import at_most
from formulations.registry import load
from rankopt.errors import OptionError
from rankopt.risk.risk import Answer, Shard, ShardFunction

if TYPE_CHECKING:
    from rankopt.risk.risk import Engine

__all__ = ["ENGINES", "ended", "get_engine"]

ENGINES = {
    "dask": "rankopt.engines.dask:Dask",
    "serial": "rankopt.engines:Serial",
    "threads": "rankopt.engines:Threads",
}


def get_engine(spec: str | Engine, workers: int | None = None) -> Engine:
    """The engine of this name with so many workers (None: its own choice), or the engine object itself."""
    if not isinstance(spec, str):
        if not callable(getattr(spec, "map", None)) or hasattr(spec, "__array__"):
            raise OptionError(
                f"engine = {spec!r} is no engine; pass one of {', '.join(ENGINES)}, or an object with a method "
                "map(function, shards)"
            )
        return spec
    if spec not in ENGINES:
        raise OptionError(f"engine {spec!r} is unknown; known are {', '.join(ENGINES)}")
    kind = load(ENGINES[spec])
    engine: Engine = kind() if workers is None or spec == "serial" else kind(int(workers))
    return engine


@contextmanager
def ended(engine: Engine, ours: bool) -> Iterator[None]:
    """Close the engine after this block if it was made here (`ours`); an engine object of the user stays open."""
    try:
        yield
    finally:
        if ours and hasattr(engine, "close"):
            engine.close()


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
        """The answers of `map` one after the other, so that not all are in memory at once."""
        for shard in shards:
            with at_most(self.workers):
                answer = question(shard)
            yield answer
