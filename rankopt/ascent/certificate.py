"""Certificate of an ascent: no direction of a list leads higher; and its verification by enumeration.

The verification is independent of the sweeps. Along each direction every pair of documents of a query is crossed.
Between consecutive crossings, and beyond the first and the last, the query's documents are sorted by s + t a at the
midpoint and valued by the measure itself, ties averaged. M is the sum of these values over queries.

Intervals are left out if scores in floats cannot determine their order. Exact and slow: O(n³) for a query of n
documents and a direction, in blocks; for long lists a sample of the directions can be verified.

Paths are converted to arrays and numbers by name for checkpoints, and back with validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from formulations.arrays import Floats, check_type, generator
from rankopt.ascent.ascent import AscentPath, Move
from rankopt.data.queries import Queries
from rankopt.data.validation import in_order_of
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse
from rankopt.measures.tied_ranking import ranked
from rankopt.optimize.certificate import Certificate, History
from rankopt.optimize.line_search import LineSearch
from rankopt.options import COUNT, as_numbers, check
from rankopt.scorers.linear import linear_scores
from rankopt.sweeps.reference import all_crossings, distinguishable

AT_ONCE = 16  # directions whose lines are held in memory at once


def prove_epsilon(search: LineSearch, w: Floats, value: float, directions: Sequence[int | Floats]) -> float:
    """epsilon of these directions at w: by how much the best open interval of any of them exceeds M(w) = value."""
    excess = 0.0
    for begin in range(0, len(directions), AT_ONCE):
        found = search.along_all(w, directions[begin : begin + AT_ONCE], "middle")
        excess = max(excess, *(line.best - value for line in found))
    return excess


BLOCK = 1 << 18  # documents of rankings that are valued at once, about
ALLOWED = 1e-9  # by how much sums of values in another order may differ


@dataclass(frozen=True)
class Verified:
    """Result of verifying a certificate: whether it `holds`; the measure at w; the largest measure on any open interval
    of the verified directions, and the index of that direction in the list (features first)."""

    holds: bool
    value: float
    largest: float
    direction: int
    directions: int

    def __bool__(self) -> bool:
        return self.holds


def verify_directions(
    certificate: Certificate,
    coef: Floats,
    queries: Queries,
    measure: str | Measure,
    query_weight: Any = None,
    only: int | None = None,
    seed: int = 0,
) -> Verified:
    """Whether the measure at w = coef equals the certificate's value, and no direction of its list exceeds its claim.
    only: number of directions, drawn with this seed; None for all."""
    check_type("queries", queries, Queries, error=DataError)
    check_type("certificate", certificate, Certificate, error=OptionError)
    parsed, queries = parse(measure), queries.grouped()
    scores, weights = linear_scores(queries.features, coef), _weights(queries, parsed, query_weight)
    value = float(np.nansum(evaluate(queries, scores, parsed).values[0] * weights))
    count = certificate.directions
    check("only", only, (COUNT, None))
    chosen = np.arange(count)
    if only is not None and only < count:
        chosen = np.sort(generator("seed", seed).permutation(count)[:only])
    largest, worst = value, -1
    for number in chosen.tolist():
        reached = highest(
            queries, scores, linear_scores(queries.features, _vector(certificate, number)), parsed, weights
        )
        if reached > largest:
            largest, worst = reached, number
    holds = abs(value - certificate.value) <= ALLOWED and largest <= certificate.value + certificate.epsilon + ALLOWED
    return Verified(bool(holds), value, largest, worst, int(chosen.size))


def highest(queries: Queries, scores: Floats, slopes: Floats, measure: Measure, weights: Floats) -> float:
    """The largest Σ_q weights_q measure_q(scores + t slopes) over all t distinguishable from jumps."""
    total, ends, steps = 0.0, [], []
    for q, (low, high) in enumerate(pairwise(queries.offsets.tolist())):
        if weights[q]:
            own = slice(low, high)
            zones, values = _of_query(scores[own], slopes[own], np.asarray(queries.relevance)[own], measure)
            total += weights[q] * values[0]
            ends.append(zones)
            steps.append(weights[q] * np.diff(values))
    zones, jumps = np.concatenate(ends), np.concatenate(steps)
    zones, jumps = zones[jumps != 0], jumps[jumps != 0]
    order = np.lexsort((zones[:, 1], zones[:, 0]))
    begins, closed = zones[order, 0], np.maximum.accumulate(zones[order, 1])
    values = total + np.cumsum(jumps[order])
    attained = np.append(begins[1:] > closed[:-1], True)  # past this jump lies an interval before the next begins
    return float(np.append(values[attained[: values.size]], total).max())


def _of_query(s: Floats, a: Floats, grades: Floats, measure: Measure) -> tuple[Floats, Floats]:
    """(K, 2) where the value may change, from and to, in rising order; (K + 1,) the values around."""
    times = all_crossings(s, a, np.array([0, s.size]))
    first = _measure_values(_ranks(-a, s)[None], grades, measure)
    if not times.size:
        return np.zeros((0, 2)), first
    middles = times[:-1] + np.diff(times) / 2
    distinct = np.flatnonzero([distinguishable(s, a, t) for t in middles])
    values = np.concatenate(
        [first, _at(middles[distinct], s, a, grades, measure), _measure_values(_ranks(a, s)[None], grades, measure)]
    )
    # The value changes between the first crossing after an interval and the last before the next distinguishable one.
    behind, before = np.append(0, distinct + 1), np.append(distinct, times.size - 1)
    return np.column_stack([times[behind], times[before]]), values


def _ranks(first: Floats, second: Floats) -> Floats:
    """Numbers in the order of (first, second), equal where both are."""
    return np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)


def _at(times: Floats, s: Floats, a: Floats, grades: Floats, measure: Measure) -> Floats:
    values, rows = np.empty(times.size), max(1, BLOCK // s.size)
    for begin in range(0, times.size, rows):
        values[begin : begin + rows] = _measure_values(s + times[begin : begin + rows, None] * a, grades, measure)
    return values


def _measure_values(scores: Floats, grades: Floats, measure: Measure) -> Floats:
    """The measure of the same documents under each row of scores (T, n)."""
    offsets = np.arange(len(scores) + 1) * grades.size
    return np.asarray(measure.values(ranked(np.tile(grades, len(scores)), scores.ravel(), offsets)))


def _vector(certificate: Certificate, number: int) -> Floats:
    features, vectors = certificate.features, certificate.vectors
    if number >= features.size:
        return np.asarray(vectors[number - features.size])
    unit = np.zeros(vectors.shape[1])
    unit[features[number]] = 1.0
    return unit


def _weights(queries: Queries, measure: Measure, given: Any) -> Floats:
    """(m,) of the queries on which the measure is defined, summing to 1."""
    if queries.relevance is None:
        raise DataError("a certificate cannot be verified because the queries have no relevance; pass y")
    passed = in_order_of("query_weight", given, queries.query_ids)
    weights = np.ones(len(queries)) if given is None else as_numbers("query_weight", passed)
    if weights.shape != (len(queries),):
        raise DataError(
            f"query_weight has shape {weights.shape}, not one number for each of {len(queries)} queries; pass these."
        )
    weights = np.where(measure.defined(np.asarray(queries.relevance), queries.offsets), weights, 0.0)
    if not weights.sum() > 0:
        raise DataError(
            f"a certificate cannot be verified because {measure} is undefined on every query; pass other queries"
        )
    return np.asarray(weights / weights.sum())


VECTORS = ("w", "begun", "advance")
COUNTS = ("number", "round", "index", "lines")
NUMBERS = ("value", "excess", "rating")
TRUTHS = ("moved", "over")


def as_data(paths: Sequence[AscentPath], seconds: float) -> dict[str, Any]:
    """The paths and the seconds that they took."""
    stored = [
        {
            **{name: getattr(path, name) for name in (*VECTORS, *COUNTS, *NUMBERS, *TRUTHS, "chosen")},
            "generator": path.generator,
            "moves": History.from_rows(Move, path.moves),
        }
        for path in paths
    ]
    return {"paths": stored, "seconds": float(seconds)}


def paths_of(run: Mapping[str, Any], features: int) -> tuple[tuple[AscentPath, ...], float] | None:
    """The paths and their seconds; None, or one of AttributeError, LookupError, TypeError and ValueError, for what is
    damaged."""
    paths = tuple(_path(one, number, features) for number, one in enumerate(run["paths"]))
    seconds = float(run["seconds"])
    return (paths, seconds) if paths and 0 <= seconds < np.inf else None


def false_claim(paths: Sequence[AscentPath], search: LineSearch) -> str | None:
    """The first false claim of the paths about their w, or None."""
    for path in paths:
        measured = search.value(path.w)
        if not abs(measured - path.value) <= 1e-12:
            return f"path {path.number} claims that the measure is {path.value!r} where it is {measured!r}"
    return None


def _path(stored: Mapping[str, Any], number: int, features: int) -> AscentPath:
    known: dict[str, Any] = {name: _checked_vector(stored[name], features) for name in VECTORS}
    known["chosen"] = None if stored["chosen"] is None else _checked_vector(stored["chosen"], features)
    for name in COUNTS:
        known[name] = stored[name]
        if type(stored[name]) is not int or stored[name] < 0:
            raise ValueError(f"{name} of a path must be a count; got {stored[name]!r}")
    for name in NUMBERS:
        known[name] = float(stored[name])
        if np.isnan(known[name]):
            raise ValueError(f"{name} of a path is not a number")
    for name in TRUTHS:
        known[name] = stored[name]
        if type(stored[name]) is not bool:
            raise ValueError(f"{name} of a path must be a boolean")
    if known["number"] != number:
        raise ValueError("paths are not sorted")
    bits: Any = np.random.PCG64()
    bits.state = stored["generator"]
    moves = stored["moves"]
    if not isinstance(moves, History) or moves.row != "Move":
        raise ValueError("moves of a path must be a history")
    return AscentPath(**known, generator=dict(stored["generator"]), moves=tuple(moves))


def _checked_vector(value: Any, features: int) -> Floats:
    if not isinstance(value, np.ndarray) or value.dtype != np.float64 or value.shape != (features,):
        raise ValueError("weights of a path have the wrong shape or type")
    if not np.isfinite(value).all():
        raise ValueError("weights of a path are not finite")
    return value
