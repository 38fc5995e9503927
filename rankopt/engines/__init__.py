"""Engines evaluate the shards of the data: a table name → class, loaded on use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from formulations.registry import load
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.risk.risk import Engine

__all__ = ["ENGINES", "ended", "get_engine"]

ENGINES = {
    "dask": "rankopt.engines.dask:Dask",
    "serial": "rankopt.engines.threads:Serial",
    "threads": "rankopt.engines.threads:Threads",
}


def get_engine(spec: str | Engine, workers: int | None = None) -> Engine:
    """The engine of this name with so many workers (None: its own choice), or the engine object itself."""
    if not isinstance(spec, str):
        if not callable(getattr(spec, "map", None)):
            raise OptionError(
                f"engine = {spec!r} is no engine; pass one of {', '.join(ENGINES)}, or an object with a method "
                "map(function, shards)"
            )
        return spec
    if spec not in ENGINES:
        raise OptionError(f"engine {spec!r} is unknown; known are {', '.join(ENGINES)}")
    kind = load(ENGINES[spec])
    engine: Engine = kind() if workers is None or spec == "serial" else kind(workers)
    return engine


@contextmanager
def ended(engine: Engine, ours: bool) -> Iterator[None]:
    """Close the engine after this block if it was made here (`ours`); an engine object of the user stays open."""
    try:
        yield
    finally:
        if ours and hasattr(engine, "close"):
            engine.close()
