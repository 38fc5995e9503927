"""Paths as what a checkpoint may hold, arrays and numbers by name; and back, with whatever no run ever does refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.ascent.ascent import Moves, Path
from rankopt.optimize.line_search import LineSearch

Floats = NDArray[np.float64]

VECTORS = ("w", "begun", "advance")
WHOLE = ("number", "round", "place", "lines")
NUMBERS = ("value", "excess", "rating")
TRUTHS = ("moved", "over")


def as_data(paths: Sequence[Path], seconds: float) -> dict[str, Any]:
    """The paths and the seconds that they took."""
    kept = [
        {
            **{name: getattr(path, name) for name in (*VECTORS, *WHOLE, *NUMBERS, *TRUTHS, "chosen")},
            "generator": path.generator,
            "moves": {name: column for name, column in vars(Moves.of(path.moves)).items()},
        }
        for path in paths
    ]
    return {"paths": kept, "seconds": float(seconds)}


def paths_of(run: Mapping[str, Any], features: int) -> tuple[tuple[Path, ...], float] | None:
    """The paths and their seconds; None, or one of AttributeError, LookupError, TypeError and ValueError, for what is
    damaged."""
    paths = tuple(_path(one, number, features) for number, one in enumerate(run["paths"]))
    seconds = float(run["seconds"])
    return (paths, seconds) if paths and 0 <= seconds < np.inf else None


def false_claim(paths: Sequence[Path], search: LineSearch) -> str | None:
    """What paths say of their w that is not so, if they do."""
    for path in paths:
        measured = search.value(path.w)
        if not abs(measured - path.value) <= 1e-12:
            return f"path {path.number} says that the measure is {path.value!r} where it is {measured!r}"
    return None


def _path(kept: Mapping[str, Any], number: int, features: int) -> Path:
    known: dict[str, Any] = {name: _vector(kept[name], features) for name in VECTORS}
    known["chosen"] = None if kept["chosen"] is None else _vector(kept["chosen"], features)
    for name in WHOLE:
        known[name] = kept[name]
        if type(kept[name]) is not int or kept[name] < 0:
            raise ValueError(f"a path counts {name} by {kept[name]!r}")
    for name in NUMBERS:
        known[name] = float(kept[name])
        if np.isnan(known[name]):
            raise ValueError(f"{name} of a path is no number")
    for name in TRUTHS:
        known[name] = kept[name]
        if type(kept[name]) is not bool:
            raise ValueError(f"{name} of a path is neither true nor false")
    if known["number"] != number:
        raise ValueError("paths are not in their order")
    bits: Any = np.random.PCG64()
    bits.state = kept["generator"]
    moves = Moves(**kept["moves"])
    return Path(**known, generator=dict(kept["generator"]), moves=tuple(moves[i] for i in range(len(moves))))


def _vector(given: Any, features: int) -> Floats:
    if not isinstance(given, np.ndarray) or given.dtype != np.float64 or given.shape != (features,):
        raise ValueError("a path holds no weights where they should be")
    if not np.isfinite(given).all():
        raise ValueError("weights of a path are not finite")
    return given
