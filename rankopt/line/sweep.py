"""A measure of a batch of queries, swept along lines by the way that suits it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.threads import share, threads
from rankopt.errors import OptionError
from rankopt.line.crossings import sweep_crossings
from rankopt.line.events import Events, joined
from rankopt.losses.loss import Loss, LossAt
from rankopt.measures.measure import Measure
from rankopt.measures.segments import position_in_query, query_of_row, totals
from rankopt.measures.tied_ranking import ranked

__all__ = ["Sweep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PART = 1 << 12
"""Rows of whole queries, about, that one thread takes at a time."""

KEPT, KEEP = threading.local(), 1 << 21
"""Room for events that a thread keeps, and how much it keeps at most."""

PLACES = 32
"""What depends on more places than these is walked, not listed."""

PAIRS = 1 << 14
"""Pairs of documents of one query in data so small that nothing is compiled for them, at most."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """M(t) = Σ_q v_q measure_q(s + t a), documents of equal score averaged, as a step function of t.

    relevance: (N,) grades. offsets: (m + 1,). weights: (m,) v. The measure is defined on every query.
    small: whether the data that these are a part of are so small that nothing is compiled for them.

    A shard may hold it in place of a loss. Which sweep suits a measure it says itself, as `along_line`: "places" from
    its discount and gain, "precision", "cascade", "first relevant", or "crossings" for any other.
    """

    measure: Measure
    relevance: Floats
    offsets: Ints
    weights: Floats
    small: bool = False

    @classmethod
    def of(cls, measure: Measure, relevance: Floats, offsets: Ints, weights: Floats) -> Sweep:
        """Of all data that belong together."""
        lengths = np.diff(offsets)
        return cls(measure, relevance, offsets, weights, bool(lengths @ lengths <= PAIRS))

    def only(self, first: int, last: int) -> Sweep:
        """The measure of the queries first <= q < last."""
        low, high = self.offsets[first], self.offsets[last]
        offsets = self.offsets[first : last + 1] - low
        return Sweep(self.measure, self.relevance[low:high], offsets, self.weights[first:last], self.small)

    convex: ClassVar[bool] = False

    def at(self, scores: Floats, prove: bool = False) -> LossAt:
        raise OptionError(
            f"{self.measure} itself has no planes because it is a step function of the scores; train a loss of LOSSES "
            "by planes, or the measure along lines"
        )

    def majorant(self, scores: Floats) -> Loss:
        return self

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)

    def value(self, scores: Floats) -> float:
        """Σ_q v_q measure_q at these scores (N,), documents of equal score averaged: as `evaluate` has it."""
        return float(self.weights @ self.measure.values(ranked(self.relevance, scores, self.offsets)))

    def order(self, scores: Floats) -> Ints | None:
        """The documents of each query by falling score, which all lines through these scores (N,) share; None where
        sweeps ask for none."""
        if self.small or self.measure.along_line == "crossings":
            return None
        from rankopt.line.crossing import by_falling_score

        order, scores = np.empty(scores.size, np.int64), np.ascontiguousarray(scores, np.float64)
        share(len(self._ranges), lambda part: by_falling_score(scores, self.offsets, *self._ranges[part], order))
        return order

    def events(self, scores: Floats, slopes: Floats, order: Ints | None = None) -> list[Events]:
        """The events along each of D lines: scores s (N,), slopes a (D, N). order: of these scores, if it is known."""
        scores, slopes = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(slopes, np.float64)
        order = self.order(scores) if order is None else order
        if order is None:
            given = (self.relevance, self.weights, self.offsets)
            return [sweep_crossings(self.measure, scores, line, *given) for line in slopes]
        lines = len(slopes)
        ranges = self._ranges if lines < threads() else [(0, self.offsets.size - 1)]  # a line is one job, or several
        found: list[Any] = [None] * (lines * len(ranges))
        starts = np.zeros((lines, self.offsets.size - 1))

        def sweep(task: int) -> None:
            line, part = divmod(task, len(ranges))
            found[task] = self._told(scores, slopes[line], order, *ranges[part], starts[line])

        share(len(found), sweep)
        starts += self.weights * self._prepared.constant
        parts = [found[line * len(ranges) : (line + 1) * len(ranges)] for line in range(lines)]
        return [replace(joined(told), start=float(own.sum())) for told, own in zip(parts, starts, strict=True)]

    def _told(self, scores: Floats, slopes: Floats, order: Ints, first: int, last: int, starts: Floats) -> Events:
        kernel, (before, after) = self._prepared.kernel, self._prepared.arguments
        told = _room(4 * int(self.offsets[last] - self.offsets[first]))
        count = kernel(*before, scores, slopes, order, *after, self.offsets, first, last, starts, *told)
        if count > told[0].size:
            told = _room(count + count // 4)
            kernel(*before, scores, slopes, order, *after, self.offsets, first, last, starts, *told)
        return Events(0.0, *(array[:count].copy() for array in told))

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """Whole queries, cut by the data alone."""
        marks = np.append(np.arange(0, self.offsets[-1], PART), self.offsets[-1])
        cuts = np.unique(np.searchsorted(self.offsets, marks)).tolist()
        return list(pairwise(cuts))

    @cached_property
    def _prepared(self) -> _Prepared:
        return PREPARED[self.measure.along_line](self)


def _room(events: int) -> list[Floats]:
    """Room for so many events at least, kept by this thread: memory that is new costs as much as half a sweep."""
    if events > KEEP:
        return [np.empty(events) for _ in range(3)]
    if not hasattr(KEPT, "room") or KEPT.room[0].size < events:
        KEPT.room = [np.empty(events) for _ in range(3)]
    kept: list[Floats] = KEPT.room
    return kept


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A compiled sweep, what it is told before and behind scores, slopes and order, and (m,) what it leaves out."""

    kernel: Any
    arguments: tuple[tuple[Any, ...], tuple[Any, ...]]
    constant: Floats


def _places(sweep: Sweep) -> _Prepared:
    """From discount and gain: the first places where the discount ends soon, walks where it goes on."""
    measure: Any = sweep.measure
    offsets, lengths = sweep.offsets, np.diff(sweep.offsets)
    gain, discount = measure.gain(sweep.relevance, offsets), measure.discounts(offsets)
    constant = -np.asarray(measure.constant(sweep.relevance, offsets))
    query, filled = query_of_row(offsets), lengths > 0
    final = np.zeros(lengths.size)
    final[filled] = discount[offsets[1:][filled] - 1]
    places = np.zeros(lengths.size, np.int64)
    differs = discount != final[query]
    np.maximum.at(places, query[differs], position_in_query(offsets)[differs] + 1)
    if places.max(initial=0) <= PLACES:
        from rankopt.line.places import sweep_places

        return _Prepared(sweep_places, ((), (gain, discount, places, sweep.weights)), constant)
    if _even(discount, offsets):
        from rankopt.line.pairs import sweep_pairs

        return _Prepared(sweep_pairs, ((), (gain, discount, sweep.weights)), constant)
    from rankopt.line.walks import DISCOUNT, sweep_walks

    usual = _usual(gain, offsets)
    constant += usual * totals(discount, offsets)
    arguments = (gain - usual[query], np.zeros(gain.size), discount, sweep.weights)
    return _Prepared(sweep_walks, ((DISCOUNT, 0), arguments), constant)


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


def _precision(sweep: Sweep) -> _Prepared:
    from rankopt.line.walks import PRECISION, sweep_walks

    measure: Any = sweep.measure
    relevant = measure.relevant(sweep.relevance)
    weights = sweep.weights / np.maximum(totals(relevant, sweep.offsets), 1)
    if measure.cutoff and measure.cutoff <= PLACES:
        return _cut(sweep, PRECISION, relevant, weights)
    arguments = (relevant, relevant, _reciprocals(sweep.offsets), weights)
    return _Prepared(sweep_walks, ((PRECISION, _cutoff(sweep)), arguments), np.zeros(weights.size))


def _cascade(sweep: Sweep) -> _Prepared:
    from rankopt.line.walks import CASCADE, sweep_walks

    measure: Any = sweep.measure
    stopped = measure.stopping(sweep.relevance)
    if measure.cutoff and measure.cutoff <= PLACES:
        return _cut(sweep, CASCADE, stopped, sweep.weights)
    arguments = (stopped, np.log1p(-stopped), _reciprocals(sweep.offsets), sweep.weights)
    return _Prepared(sweep_walks, ((CASCADE, _cutoff(sweep)), arguments), np.zeros(sweep.weights.size))


def _cut(sweep: Sweep, kind: int, gain: Floats, weights: Floats) -> _Prepared:
    from rankopt.line.cuts import sweep_cuts

    return _Prepared(sweep_cuts, ((kind, _cutoff(sweep)), (gain, weights)), np.zeros(weights.size))


def _first_relevant(sweep: Sweep) -> _Prepared:
    from rankopt.line.envelope import sweep_envelope

    measure: Any = sweep.measure
    arguments = (measure.relevant(sweep.relevance), sweep.weights)
    return _Prepared(sweep_envelope, ((_cutoff(sweep),), arguments), np.zeros(sweep.weights.size))


def _cutoff(sweep: Sweep) -> int:
    return sweep.measure.cutoff or int(np.diff(sweep.offsets).max(initial=1))


def _reciprocals(offsets: Ints) -> Floats:
    return 1.0 / (position_in_query(offsets) + 1)


PREPARED = {"places": _places, "precision": _precision, "cascade": _cascade, "first relevant": _first_relevant}
"""What a measure says of itself, and the sweep that suits it."""
