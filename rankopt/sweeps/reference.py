"""Reference implementation: the measure along a line by enumeration of all crossings, independent of the sweeps.

It checks the sweeps on randomly drawn lines. At t every query is sorted by its scores s + t a and valued by the measure
itself. Where computed scores are too close for floats, the order is computed in exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.data.canonical_order import rows_of
from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import ranked
from rankopt.sweeps.step_function import StepFunction, best_interval
from rankopt.sweeps.sweep import LineSweep


def all_crossings(scores: Floats, slopes: Floats, offsets: Ints) -> Floats:
    """Where any two lines of one query cross, in rising order, each t once."""
    found = [np.zeros(0)]
    for low, high in pairwise(offsets.tolist()):
        first, second = np.triu_indices(high - low, 1)
        s, a = scores[low:high], slopes[low:high]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = (s[first] - s[second]) / (a[second] - a[first])
        found.append(t[np.isfinite(t)])
    return np.unique(np.concatenate(found) + 0.0)


def value_at(
    measure: Measure, scores: Floats, slopes: Floats, relevance: Floats, weights: Floats, offsets: Ints, t: float
) -> float:
    """Σ_q v_q measure_q(s + t a): scores, slopes and grades (N,), weights v (m,); documents tied at t are averaged."""
    keys = np.empty(scores.size)
    for low, high in pairwise(offsets.tolist()):
        s, a = scores[low:high], slopes[low:high]
        keys[low:high] = s + t * a if distinguishable(s, a, t) else _exact_ranks(s, a, t)
    return float(weights @ measure.values(ranked(relevance, keys, offsets)))


def distinguishable(s: Floats, a: Floats, t: float) -> bool:
    """Whether rounding leaves no doubt of the order of the scores s + t a, identical lines aside."""
    at = s + t * a
    order = np.argsort(at, kind="stable")
    doubt = (4 * np.finfo(np.float64).eps * (np.abs(s) + np.abs(t * a)))[order]
    alike = (np.diff(s[order]) == 0) & (np.diff(a[order]) == 0)
    return bool(np.all(alike | (np.diff(at[order]) > doubt[1:] + doubt[:-1])))


def _exact_ranks(s: Floats, a: Floats, t: float) -> Floats:
    exact = [Fraction(float(x)) + Fraction(float(y)) * Fraction(t) for x, y in zip(s, a, strict=True)]
    rank = {value: number for number, value in enumerate(sorted(set(exact)))}
    return np.array([rank[value] for value in exact], dtype=np.float64)


LINES = ("random", "tied slopes", "tied scores", "zeros", "integer", "through a point", "scaled", "flat", "many scales")
"""Kinds of lines that are drawn."""


def drawn_lines(rng: np.random.Generator, kind: str, size: int) -> tuple[Floats, Floats]:
    """Scores and slopes (N,) of lines of this kind."""
    scores, slopes = rng.normal(size=size), rng.normal(size=size)
    if kind in ("tied slopes", "integer"):
        slopes = rng.integers(-1, 2, size).astype(np.float64)
    if kind in ("tied scores", "integer"):
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
    defined = np.flatnonzero(measure.defined(relevance, offsets) & (np.diff(offsets) > 0))
    if not defined.size:
        return 0
    rows, offsets = rows_of(offsets, defined), np.concatenate([[0], np.cumsum(np.diff(offsets)[defined])])
    relevance, scores, slopes, weights = relevance[rows], scores[rows], slopes[rows], weights[defined]
    crossings, compared = all_crossings(scores, slopes, offsets), 0
    low, high = (crossings[0], crossings[-1]) if crossings.size else (0.0, 0.0)
    gaps = np.concatenate([crossings[:-1] + np.diff(crossings) / 2, [low - 1 - abs(low), high + 1 + abs(high)]])
    values: dict[float, float] = {}  # computed once: nearly all points are common to both
    for small in (False, True):
        sweep = LineSweep(measure, relevance, offsets, weights, small)
        (events,) = sweep.events(scores, slopes[None])
        steps = StepFunction.from_events(events)
        for t in np.concatenate([steps.middles, gaps]).tolist():
            swept = float(steps.at(t))
            if np.isnan(swept) or np.any(np.abs(crossings - t) <= 4 * np.finfo(np.float64).eps * abs(t)):
                continue  # t is a jumping point, to rounding
            if t not in values:
                values[t] = value_at(measure, scores, slopes, relevance, weights, offsets, t)
            value = values[t]
            assert abs(swept - value) <= 1e-10 * (1 + abs(value)), f"{measure} is {value} at {t} on a line, not {swept}"
            compared += 1
        reached = best_interval(events)[2]
        assert reached == steps.values.max() or np.isclose(reached, steps.values.max()), "no best interval"
    return compared
