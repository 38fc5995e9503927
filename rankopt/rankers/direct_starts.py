"""Starts of coordinate ascent on a measure: by name, from another ranker or from weights; perturbed restarts.

Orders do not depend on the scale of w, but steps, draws and penalties do: a start is multiplied by the power of two
that brings the deviation of its scores inside queries nearest to 1, which moves no bit of any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from formulations.registry import load
from rankopt.errors import OptionError
from rankopt.losses.smooth import smoothable
from rankopt.optimize.line_search import LineSearch
from rankopt.rankers import STARTS
from rankopt.rankers.options import as_numbers
from rankopt.rankers.starts import get_start, workers

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]

NAMED = {"smooth": "rankopt.rankers.smooth:SmoothRanker", "ridge": STARTS["ridge"], "zeros": STARTS["zeros"]}
"""Starts by name: a ranker, or a function of w₀."""

APART = 0.5
"""The deviation of the scores by which restarts are moved away from the start, whose own is about 1."""

SMOOTHED = "nDCG@10"
"""What the smooth start climbs where the measure itself cannot be smoothed on these queries."""


def check_start(start: Any) -> None:
    """Raise OptionError for what is no start."""
    if isinstance(start, str):
        if start not in NAMED:
            raise OptionError(f"init = {start!r} is unknown; use {', '.join(map(repr, NAMED))}, a ranker or an array")
    elif hasattr(start, "fit"):
        if isinstance(start, type):
            raise OptionError(f"init = {start.__name__} is a class; give a ranker of it: {start.__name__}()")
        if getattr(start, "normalize", None) is not None:
            raise OptionError(
                f"init = {start} cannot normalize by itself, or it would learn weights of other features; give "
                "normalize to the ranker that it starts"
            )
    elif np.ndim(as_numbers("init", start)) != 1:
        raise OptionError(f"init has the shape {np.shape(start)}; give one number a feature")


def start_weights(ranker: Any, queries: Queries, weights: Floats, arranged: Arrangement) -> Floats:
    """The weights (d,) of `ranker.init` on its training queries, weights (m,), in whatever scale."""
    start = ranker.init
    if isinstance(start, str) and start == "zeros":
        return np.zeros(queries.n_features)
    if isinstance(start, str) and start != "smooth":
        return np.asarray(get_start(start, NAMED)(ranker, arranged))
    if isinstance(start, str):
        engine, n_jobs = workers(ranker)
        smooth = load(NAMED["smooth"])
        taken = smoothable(ranker.measure, arranged.graded, arranged.offsets)
        start = smooth(ranker.measure if taken else SMOOTHED, engine=engine, n_jobs=n_jobs)
    if hasattr(start, "fit"):
        fitted = clone(start).fit(queries, query_weight=weights)
        coef = getattr(fitted, "coef_", None)
        if not isinstance(coef, np.ndarray) or coef.shape != (queries.n_features,):
            raise OptionError(f"init = {start} has no coef_ of one weight a feature; give a linear ranker")
        return coef
    w = as_numbers("init", start)
    if w.shape != (queries.n_features,) or not np.isfinite(w).all():
        raise OptionError(f"init has shape {w.shape}; it needs {queries.n_features} finite numbers, one a feature")
    return w


def begun_at(search: LineSearch, start: Floats, count: int, seed: int) -> list[tuple[Floats, dict[str, Any]]]:
    """Where each of `count` paths begins, and the generator of its draws: the first at the start, the others away from
    it at random, each by draws of its own, so that more paths change none of those before."""
    start = scaled(start, search.deviation(start))
    units = np.where(search.deviations > 0, search.deviations, 1.0)
    begun = []
    for number in range(count):
        generator = np.random.PCG64(np.random.SeedSequence([seed, number]))
        w = start
        if number:
            away = np.random.Generator(generator).normal(size=start.size) / units
            width = search.deviation(away)
            apart = APART if start.any() else 1.0
            w = start + away * (apart / width) if width > 0 else start
        begun.append((w, dict(generator.state)))
    return begun


def scaled(w: Floats, deviation: float) -> Floats:
    """w times the power of two that brings this deviation nearest to 1."""
    if not (0 < deviation < np.inf):
        return w
    made = np.ldexp(w, -int(np.round(np.log2(deviation))))
    return made if np.isfinite(made).all() else w
