"""The measure along a line by enumeration, which shares nothing with the sweeps: what these are checked against.

At t every query is put in order by its scores s + t a and valued by the measure itself. Where computed scores are too
close for floats to tell, the order is that of the exact numbers.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import ranked

__all__ = ["all_crossings", "value_at"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        keys[low:high] = s + t * a if _told_apart(s, a, t) else _exact_places(s, a, t)
    return float(weights @ measure.values(ranked(relevance, keys, offsets)))


def _told_apart(s: Floats, a: Floats, t: float) -> bool:
    """Whether rounding cannot have changed the order of the scores s + t a, but of lines that are identical."""
    at = s + t * a
    order = np.argsort(at)
    error = (2 * np.finfo(np.float64).eps * (np.abs(s) + np.abs(t * a)) + np.finfo(np.float64).tiny)[order]
    close = np.diff(at[order]) <= error[1:] + error[:-1]
    alike = (np.diff(s[order]) == 0) & (np.diff(a[order]) == 0)
    return not bool(np.any(close & ~alike))


def _exact_places(s: Floats, a: Floats, t: float) -> Floats:
    exact = [Fraction(float(x)) + Fraction(float(y)) * Fraction(t) for x, y in zip(s, a, strict=True)]
    place = {value: number for number, value in enumerate(sorted(set(exact)))}
    return np.array([place[value] for value in exact], dtype=np.float64)
