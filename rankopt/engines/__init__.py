"""Who computes the shards, as a table: name → class, loaded on use. An engine maps shards and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from formulations.registry import load
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.risk.risk import Engine

__all__ = ["ENGINES", "ended", "engine_named"]

ENGINES = {
    "dask": "rankopt.engines.dask:Dask",
    "processes": "rankopt.engines.processes:Processes",
    "serial": "rankopt.engines.serial:Serial",
    "threads": "rankopt.engines.threads:Threads",
}


def engine_named(spec: str | Engine, workers: int | None = None) -> Engine:
    """The engine of this name with so many workers (None: its own choice), or the one that is given."""
    if not isinstance(spec, str):
        if not callable(getattr(spec, "map", None)):
            raise OptionError(f"engine = {spec!r} is no engine; give a name of {', '.join(ENGINES)}, or such an object")
        return spec
    if spec not in ENGINES:
        raise OptionError(f"engine {spec!r} is unknown; known are {', '.join(ENGINES)}")
    kind = load(ENGINES[spec])
    engine: Engine = kind() if workers is None or spec == "serial" else kind(workers)
    return engine


@contextmanager
def ended(engine: Engine, ours: bool) -> Iterator[None]:
    """After this block an engine of ours has no workers left; one that somebody gave us keeps them."""
    try:
        yield
    finally:
        if ours and hasattr(engine, "close"):
            engine.close()
