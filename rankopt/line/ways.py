"""Which sweep suits a measure, and what it is told of queries: asked of the data alone, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.measure import Measure
from rankopt.measures.segments import position_in_query, query_of_row, totals

__all__ = ["SweepPlan", "sweep_plans"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLACES = 32
"""What depends on more places than these is swept by all pairs, not by a list of places."""


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """A compiled sweep, what it is told before and behind scores, slopes and order, and (m,) what it leaves out."""

    kernel: Any
    before: tuple[Any, ...]
    behind: tuple[Any, ...]
    constant: Floats


def sweep_plans(measure: Measure, relevance: Floats, offsets: Ints, weights: Floats) -> tuple[SweepPlan, ...]:
    """The sweeps whose events are, together, those of Σ_q v_q measure_q: relevance (N,), offsets, weights v (m,).

    By the measure's `along_line`: "places" from its discount and gain, "precision", "cascade", "first relevant"; "sum"
    the sweeps of all its `summands`, each in its own way.
    """
    if measure.along_line == "sum":
        summed: Any = measure
        parts = [sweep_plans(part, relevance, offsets, weights * own) for part, own in summed.summands(offsets)]
        return tuple(way for ways in parts for way in ways)
    return (WAYS[measure.along_line](measure, relevance, offsets, weights),)


def _places(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    """From discount and gain: the first places where the discount ends soon, pairs where it goes on."""
    lengths = np.diff(offsets)
    gain, discount = measure.gain(relevance, offsets), measure.discounts(offsets)
    constant = -np.asarray(measure.constant(relevance, offsets))
    query, filled = query_of_row(offsets), lengths > 0
    final = np.zeros(lengths.size)
    final[filled] = discount[offsets[1:][filled] - 1]
    places = np.zeros(lengths.size, np.int64)
    differs = discount != final[query]
    np.maximum.at(places, query[differs], position_in_query(offsets)[differs] + 1)
    if places.max(initial=0) <= PLACES:
        from rankopt.line.places import sweep_places

        return SweepPlan(sweep_places, (), (gain, discount, places, weights), weights * constant)
    if _even(discount, offsets):
        from rankopt.line.pairs import sweep_pairs

        return SweepPlan(sweep_pairs, (), (gain, discount, weights), weights * constant)
    from rankopt.line.uncut import DISCOUNT

    usual = _usual(gain, offsets)
    constant += usual * totals(discount, offsets)
    nothing = np.zeros(gain.size)
    told = (gain - usual[query], nothing, discount)
    return _uncut(DISCOUNT, 0, told, nothing, offsets, weights, weights * constant)


def _uncut(
    kind: int, cutoff: int, told: tuple[Floats, ...], kinds: Floats, offsets: Ints, weights: Floats, constant: Floats
) -> SweepPlan:
    """told: what walks are told of documents and places. kinds: of the documents, as `counting` has them."""
    from rankopt.line.uncut import counting, sweep_uncut

    return SweepPlan(sweep_uncut, (kind, cutoff), (*told, *counting(told[0], kinds, offsets), weights), constant)


def _even(discount: Floats, offsets: Ints) -> bool:
    """Whether the discount falls by the same from each place of a query to the next."""
    falls = discount[:-1] - discount[1:]
    inside = np.ones(discount.size, dtype=bool)
    inside[offsets[1:][offsets[1:] > 0] - 1] = False
    query, place = query_of_row(offsets), position_in_query(offsets)
    first = offsets[:-1][query]  # the first row of the same query
    later = np.flatnonzero(inside & (place > 0))
    return bool(np.all(falls[later] == falls[first[later]]))


def _usual(gain: Floats, offsets: Ints) -> Floats:
    """(m,) the gain that most documents of a query have: they need not walk."""
    usual = np.zeros(offsets.size - 1)
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        if high > low:
            values, counts = np.unique(gain[low:high], return_counts=True)
            usual[q] = values[np.argmax(counts)]
    return usual


def _precision(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.line.uncut import PRECISION

    relevant, nothing = measure.relevant(relevance), np.zeros(weights.size)
    shares = weights / np.maximum(totals(relevant, offsets), 1)
    if measure.cutoff and measure.cutoff <= PLACES:
        return _cut(PRECISION, measure.cutoff, relevant, shares)
    told = (relevant, relevant, _reciprocals(offsets))
    return _uncut(PRECISION, _cutoff(measure, offsets), told, relevant, offsets, shares, nothing)


def _cascade(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.line.uncut import CASCADE

    stopped, nothing = measure.stopping(relevance), np.zeros(weights.size)
    if measure.cutoff and measure.cutoff <= PLACES:
        return _cut(CASCADE, measure.cutoff, stopped, weights)
    going_on = np.log1p(-np.minimum(stopped, np.nextafter(1.0, 0.0)))  # of a grade so high that p rounds to 1, too
    told = (stopped, going_on, _reciprocals(offsets))
    return _uncut(CASCADE, _cutoff(measure, offsets), told, stopped, offsets, weights, nothing)


def _cut(kind: int, cutoff: int, gain: Floats, weights: Floats) -> SweepPlan:
    from rankopt.line.cuts import sweep_cuts

    return SweepPlan(sweep_cuts, (kind, cutoff), (gain, weights), np.zeros(weights.size))


def _first_relevant(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.line.envelope import sweep_envelope

    told = (measure.relevant(relevance), weights)
    return SweepPlan(sweep_envelope, (_cutoff(measure, offsets),), told, np.zeros(weights.size))


def _cutoff(measure: Measure, offsets: Ints) -> int:
    return measure.cutoff or int(np.diff(offsets).max(initial=1))


def _reciprocals(offsets: Ints) -> Floats:
    return 1.0 / (position_in_query(offsets) + 1)


WAYS: dict[str, Callable[[Any, Floats, Ints, Floats], SweepPlan]] = {
    "places": _places,
    "precision": _precision,
    "cascade": _cascade,
    "first relevant": _first_relevant,
}
"""What a measure says of itself, and the sweep that suits it."""
