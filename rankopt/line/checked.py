"""What a sweep says of drawn lines beside all crossings, enumerated and valued by the measure itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankopt.data.arrangement import rows_of
from rankopt.line.best import best_interval
from rankopt.line.enumeration import all_crossings, value_at
from rankopt.line.steps import StepFunction
from rankopt.line.sweep import LineSweep
from rankopt.measures.measure import Measure

__all__ = ["LINES", "check_lines", "drawn_lines"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LINES = ("random", "tied slopes", "tied scores", "zeros", "whole", "through a point", "scaled", "flat", "many scales")
"""Kinds of lines that are drawn."""


def drawn_lines(rng: np.random.Generator, kind: str, size: int) -> tuple[Floats, Floats]:
    """Scores and slopes (N,) of lines of this kind."""
    scores, slopes = rng.normal(size=size), rng.normal(size=size)
    if kind in ("tied slopes", "whole"):
        slopes = rng.integers(-1, 2, size).astype(np.float64)
    if kind in ("tied scores", "whole"):
        scores = rng.integers(-2, 3, size).astype(np.float64)
    if kind == "through a point":
        scores = rng.normal() - slopes * rng.normal()
    if kind == "scaled":
        scores, slopes = scores * 10.0 ** rng.integers(-9, 10), slopes * 10.0 ** rng.integers(-9, 10)
    if kind == "many scales":
        scores, slopes = scores * 10.0 ** rng.integers(-9, 10, size), slopes * 10.0 ** rng.integers(-9, 10, size)
    return scores * (kind != "zeros"), slopes * (kind != "flat")


def check_lines(
    measure: Measure, relevance: Floats, offsets: Ints, scores: Floats, slopes: Floats, weights: Floats
) -> int:
    """Compare every interval of these lines, compiled and in NumPy; returns how many values were compared."""
    kept = np.flatnonzero(measure.defined(relevance, offsets) & (np.diff(offsets) > 0))
    if not kept.size:
        return 0
    rows, offsets = rows_of(offsets, kept), np.concatenate([[0], np.cumsum(np.diff(offsets)[kept])])
    relevance, scores, slopes, weights = relevance[rows], scores[rows], slopes[rows], weights[kept]
    crossings, compared = all_crossings(scores, slopes, offsets), 0
    low, high = (crossings[0], crossings[-1]) if crossings.size else (0.0, 0.0)
    gaps = np.concatenate([crossings[:-1] + np.diff(crossings) / 2, [low - 1 - abs(low), high + 1 + abs(high)]])
    values: dict[float, float] = {}  # asked once: nearly all points are those of both
    for small in (False, True):
        sweep = LineSweep(measure, relevance, offsets, weights, small)
        (events,) = sweep.events(scores, slopes[None])
        steps = StepFunction.of(events)
        for t in np.concatenate([steps.middles, gaps]).tolist():
            told = float(steps.at(t))
            if np.isnan(told) or np.any(np.abs(crossings - t) <= 4 * np.finfo(np.float64).eps * abs(t)):
                continue  # t is a jumping point, to rounding
            if t not in values:
                values[t] = value_at(measure, scores, slopes, relevance, weights, offsets, t)
            value = values[t]
            assert abs(told - value) <= 1e-10 * (1 + abs(value)), f"{measure} is {value} at {t} on a line, not {told}"
            compared += 1
        reached = best_interval(events)[2]
        assert reached == steps.values.max() or np.isclose(reached, steps.values.max()), "no best interval"
    return compared
