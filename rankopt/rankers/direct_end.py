"""What becomes of the ends of paths: one model, and what is proved of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.threads import at_most, threads
from rankopt.ascent.certificate import DirectionCertificate, proved
from rankopt.ascent.path import AscentProblem, Path
from rankopt.ascent.paths import AscentRun
from rankopt.engines.threads import Threads
from rankopt.optimize.certificate import Stop

__all__ = ["combined", "workers_of"]

Floats = NDArray[np.float64]

AT_ONCE = (Stop.TIME, Stop.INTERRUPTED)
"""Ends after which no round of lines is searched for the sake of the certificate: it holds what was tried anyway."""


def workers_of(engine: Any, paths: int) -> int:
    """How many paths are followed side by side: threads are, other engines share out the shards of a path."""
    if not isinstance(engine, Threads):
        return 1
    with at_most(engine.workers):
        return min(threads(), paths)


def combined(
    climb: AscentProblem, done: AscentRun, combine: str
) -> tuple[Floats, DirectionCertificate, Floats, Floats]:
    """w, its certificate, and the ends of the paths (K, d) with the measure there (K,)."""
    search, paths = climb.search, done.paths
    ends = [path.w if path.chosen is None else path.chosen for path in paths]
    values = np.array([search.value(w) for w in ends])
    if combine == "best" or len(paths) == 1:
        rated = values if paths[0].chosen is None else [path.rating for path in paths]
        best = int(np.argmax(rated))
        w, path = ends[best], paths[best]
        known = path if np.array_equal(w, path.w) else None
    else:
        widths = [search.deviation(end) or 1.0 for end in ends]
        w, known = np.mean([end / width for end, width in zip(ends, widths, strict=True)], axis=0), None
    value = search.value(w)
    listed, excess, stop = _proved(climb, w, value, known, done.stop)
    features = np.array([v for v in listed if isinstance(v, int)], dtype=np.int64)
    vectors = np.array([v for v in listed if not isinstance(v, int)], dtype=np.float64).reshape(-1, w.size)
    at_start = bool(np.array_equal(w, climb.w0))
    return w, DirectionCertificate(value, max(excess, 0.0), features, vectors, stop, at_start), np.array(ends), values


def _proved(
    climb: AscentProblem, w: Floats, value: float, known: Path | None, stop: Stop
) -> tuple[list[int | Floats], float, Stop]:
    """The directions that were tried from w, how far above the measure there the best of their lines reached, and why
    the ascent ended. Of a path that was left elsewhere all coordinates are searched for that."""
    if known is not None and not known.moved and (known.over or stop in AT_ONCE):
        listed = climb.listed(known)
        return (listed if known.over else listed[: known.place]), known.excess, stop
    if stop in AT_ONCE:
        return [], 0.0, stop
    listed = [*range(w.size)] if known is None else climb.listed(known)
    try:
        return listed, proved(climb.search, w, value, listed), stop
    except KeyboardInterrupt:
        return [], 0.0, Stop.INTERRUPTED
