"""Measures along a line: the sweep for each kind of measure, and a general one over all crossings.

The general sweep values the rankings between crossings by the measure itself. It is used for measures without a
`sweep_kind`, and for data too small to compile kernels. O(n³) memory and time for the n documents of a query, in
blocks.

The sweep and its per-query constants are chosen from the data alone, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.parallel import share, threads
from formulations.sorting import falling_rows
from rankopt.errors import OptionError
from rankopt.losses.loss import Loss, LossValue
from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import position_in_query, query_of_row, ranked, totals
from rankopt.sweeps.intersections import ROUNDING
from rankopt.sweeps.step_function import StepEvents, joined

BLOCK = 1 << 17  # documents of rankings that are valued at once, about


def sweep_crossings(
    measure: Measure, scores: Floats, slopes: Floats, relevance: Floats, weights: Floats, offsets: Ints
) -> StepEvents:
    """The events of Σ_q v_q measure_q(s + t a): scores s, slopes a and grades (N,), weights v (m,)."""
    found = [StepEvents(0.0, *(np.zeros(0) for _ in range(3)))]
    for weight, (low, high) in zip(weights, pairwise(offsets.tolist()), strict=True):
        rows = slice(low, high)
        found.append(_of_query(measure, scores[rows], slopes[rows], relevance[rows], float(weight)))
    return joined(found)


def _of_query(measure: Measure, s: Floats, a: Floats, grades: Floats, weight: float) -> StepEvents:
    upper, steeper = np.nonzero(a[:, None] < a)  # every pair that crosses: the upper document before it, and after it
    with np.errstate(over="ignore"):
        rise = a[steeper] - a[upper]
        times = (s[upper] - s[steeper]) / rise + 0.0
        far = np.abs(s[upper]) + np.abs(s[steeper]) + np.abs(times) * (np.abs(a[upper]) + np.abs(a[steeper]))
        widths = ROUNDING * far / rise
    finite = times < np.inf
    upper, steeper, times, widths = upper[finite], steeper[finite], times[finite], widths[finite]
    jumps, which = np.unique(times, return_inverse=True)
    values = weight * _values(measure, s, a, grades, upper, steeper, which, jumps.size)
    widest = np.zeros(jumps.size)
    np.maximum.at(widest, which, widths)
    steps = np.diff(values)
    moved = (steps != 0) & (jumps > -np.inf)
    begun = int(jumps.size > 0 and jumps[0] == -np.inf)
    return StepEvents(float(values[begun]), jumps[moved], steps[moved], widest[moved])


def _values(
    measure: Measure, s: Floats, a: Floats, grades: Floats, upper: Ints, steeper: Ints, which: Ints, jumps: int
) -> Floats:
    """(jumps + 1,) the values before the first jump, between them, and after the last."""
    n = s.size
    moved = np.zeros((jumps + 1, n), dtype=np.int32)  # change of the number of documents above after each jump
    np.add.at(moved, (which + 1, upper), 1)
    np.add.at(moved, (which + 1, steeper), -1)
    moved[0] = ((a[:, None] > a) | ((a[:, None] == a) & (s[:, None] < s))).sum(axis=1)
    above = np.cumsum(moved, axis=0, out=moved)
    values, rows = np.empty(jumps + 1), max(1, BLOCK // n)
    for begin in range(0, jumps + 1, rows):
        scores = -above[begin : begin + rows].astype(np.float64)
        offsets = np.arange(len(scores) + 1) * n
        values[begin : begin + rows] = measure.values(ranked(np.tile(grades, len(scores)), scores.ravel(), offsets))
    return values


LONGEST_LIST = 32  # measures that depend on more positions than these are swept by all pairs, not by a truncated list


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """A compiled sweep, its arguments before and after scores, slopes and order, and (m,) the constant it omits.

    kernel: returns the number of events of the queries first <= q < last, writes those that fit into the buffers times,
    steps and widths, and into starts[q] the value at -∞.
    """

    kernel: Any
    before: tuple[Any, ...]
    behind: tuple[Any, ...]
    constant: Floats


def sweep_plans(measure: Measure, relevance: Floats, offsets: Ints, weights: Floats) -> tuple[SweepPlan, ...]:
    """The sweeps whose events add up to Σ_q v_q measure_q: relevance (N,), offsets, weights v (m,). Selected by the
    measure's `sweep_kind`: "positions" from its discount and gain, "precision", "cascade", "first relevant"; "sum"
    combines the sweeps of all its `summands`."""
    if measure.sweep_kind == "sum":
        summed: Any = measure
        parts = [sweep_plans(part, relevance, offsets, weights * own) for part, own in summed.summands(offsets)]
        return tuple(way for ways in parts for way in ways)
    return (WAYS[measure.sweep_kind](measure, relevance, offsets, weights),)


def _by_positions(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    """From discount and gain: a truncated list if the discount ends early, else all pairs."""
    lengths = np.diff(offsets)
    gain, discount = measure.gain(relevance, offsets), measure.discounts(offsets)
    constant = -np.asarray(measure.constant(relevance, offsets))
    query, filled = query_of_row(offsets), lengths > 0
    final = np.zeros(lengths.size)
    final[filled] = discount[offsets[1:][filled] - 1]
    cutoffs = np.zeros(lengths.size, np.int64)
    differs = discount != final[query]
    np.maximum.at(cutoffs, query[differs], position_in_query(offsets)[differs] + 1)
    if cutoffs.max(initial=0) <= LONGEST_LIST:
        from rankopt.sweeps.truncated_sweeps import sweep_positions

        return SweepPlan(sweep_positions, (), (gain, discount, cutoffs, weights), weights * constant)
    if _even(discount, offsets):
        from rankopt.sweeps.full_sweeps import sweep_pairs

        return SweepPlan(sweep_pairs, (), (gain, discount, weights), weights * constant)
    from rankopt.sweeps.full_sweeps import DISCOUNT

    usual = _usual(gain, offsets)
    constant += usual * totals(discount, offsets)
    nothing = np.zeros(gain.size)
    inputs = (gain - usual[query], nothing, discount)
    return _uncut(DISCOUNT, 0, inputs, nothing, offsets, weights, weights * constant)


def _uncut(
    kind: int, cutoff: int, inputs: tuple[Floats, ...], kinds: Floats, offsets: Ints, weights: Floats, constant: Floats
) -> SweepPlan:
    """inputs: per-document and per-position arguments of the sweep. kinds: of the documents, as in `counting`."""
    from rankopt.sweeps.full_sweeps import counting, sweep_uncut

    return SweepPlan(sweep_uncut, (kind, cutoff), (*inputs, *counting(inputs[0], kinds, offsets), weights), constant)


def _even(discount: Floats, offsets: Ints) -> bool:
    """Whether the discount decreases by a constant step within each query."""
    falls = discount[:-1] - discount[1:]
    inside = np.ones(discount.size, dtype=bool)
    inside[offsets[1:][offsets[1:] > 0] - 1] = False
    query, position = query_of_row(offsets), position_in_query(offsets)
    first = offsets[:-1][query]  # the first row of the same query
    later = np.flatnonzero(inside & (position > 0))
    return bool(np.all(falls[later] == falls[first[later]]))


def _usual(gain: Floats, offsets: Ints) -> Floats:
    """(m,) the most frequent gain of each query: documents with it need not be followed."""
    usual = np.zeros(offsets.size - 1)
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        if high > low:
            values, counts = np.unique(gain[low:high], return_counts=True)
            usual[q] = values[np.argmax(counts)]
    return usual


def _precision(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.sweeps.full_sweeps import PRECISION

    relevant, nothing = measure.relevant(relevance), np.zeros(weights.size)
    shares = weights / np.maximum(totals(relevant, offsets), 1)
    if measure.cutoff and measure.cutoff <= LONGEST_LIST:
        return _cut_plan(PRECISION, measure.cutoff, relevant, shares)
    inputs = (relevant, relevant, _reciprocals(offsets))
    return _uncut(PRECISION, _cutoff(measure, offsets), inputs, relevant, offsets, shares, nothing)


def _cascade(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.sweeps.full_sweeps import CASCADE

    stopped, nothing = measure.stopping(relevance), np.zeros(weights.size)
    if measure.cutoff and measure.cutoff <= LONGEST_LIST:
        return _cut_plan(CASCADE, measure.cutoff, stopped, weights)
    going_on = np.log1p(-np.minimum(stopped, np.nextafter(1.0, 0.0)))  # of a grade so high that p rounds to 1, too
    inputs = (stopped, going_on, _reciprocals(offsets))
    return _uncut(CASCADE, _cutoff(measure, offsets), inputs, stopped, offsets, weights, nothing)


def _cut_plan(kind: int, cutoff: int, gain: Floats, weights: Floats) -> SweepPlan:
    from rankopt.sweeps.truncated_sweeps import sweep_cuts

    return SweepPlan(sweep_cuts, (kind, cutoff), (gain, weights), np.zeros(weights.size))


def _first_relevant(measure: Any, relevance: Floats, offsets: Ints, weights: Floats) -> SweepPlan:
    from rankopt.sweeps.truncated_sweeps import sweep_envelope

    inputs = (measure.relevant(relevance), weights)
    return SweepPlan(sweep_envelope, (_cutoff(measure, offsets),), inputs, np.zeros(weights.size))


def _cutoff(measure: Measure, offsets: Ints) -> int:
    return measure.cutoff or int(np.diff(offsets).max(initial=1))


def _reciprocals(offsets: Ints) -> Floats:
    return 1.0 / (position_in_query(offsets) + 1)


WAYS: dict[str, Callable[[Any, Floats, Ints, Floats], SweepPlan]] = {
    "positions": _by_positions,
    "precision": _precision,
    "cascade": _cascade,
    "first relevant": _first_relevant,
}
"""The `sweep_kind` of a measure, and the matching sweep."""


TURNS = 4  # parts of its work that a thread takes, at least: it is even then, though queries are not
LEAST, MOST = 1 << 9, 1 << 15
"""Approximate rows of complete queries in a part: fewer cost more scheduling, more cost more event memory."""

LOCAL, KEEP = threading.local(), 1 << 21  # initial and maximum capacity of a thread's event buffer
PAIRS = 1 << 14  # maximum of pairs within a query for which data are too small to compile kernels for


@dataclass(frozen=True, eq=False)
class LineSweep:
    """M(t) = Σ_q v_q measure_q(s + t a), documents of equal score averaged, as a step function of t.

    relevance: (N,) grades. offsets: (m + 1,). weights: (m,) v. The measure is defined on every query.
    small: whether the complete data are so small that no kernel is compiled.

    A shard may hold it instead of a loss. The measure's `sweep_kind` selects the sweep, see `sweep_plans`; a measure
    without one is valued between all crossings.
    """

    measure: Measure
    relevance: Floats
    offsets: Ints
    weights: Floats
    small: bool = False

    @classmethod
    def from_measure(cls, measure: Measure, relevance: Floats, offsets: Ints, weights: Floats) -> LineSweep:
        """Of all data that belong together."""
        lengths = np.diff(offsets)
        return cls(measure, relevance, offsets, weights, bool(lengths @ lengths <= PAIRS))

    def select_queries(self, first: int, last: int) -> LineSweep:
        """The measure of the queries first <= q < last."""
        low, high = self.offsets[first], self.offsets[last]
        offsets = self.offsets[first : last + 1] - low
        return LineSweep(self.measure, self.relevance[low:high], offsets, self.weights[first:last], self.small)

    convex: ClassVar[bool] = False

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        raise OptionError(
            f"{self.measure} has no planes because it is a step function of the scores; train a loss of LOSSES "
            "with planes, or optimize the measure along lines"
        )

    def majorant(self, scores: Floats) -> Loss:
        return self

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)

    def value(self, scores: Floats) -> float:
        """Σ_q v_q measure_q at these scores (N,), documents of equal score averaged: as `evaluate` has it."""
        return float(self.weights @ self.measure.values(ranked(self.relevance, scores, self.offsets)))

    def order(self, scores: Floats) -> Ints | None:
        """The documents of each query by decreasing score, shared by all lines through these scores (N,); None if
        unused."""
        if self.small or self.measure.sweep_kind == "crossings":
            return None
        return falling_rows(self.offsets, scores) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def events(self, scores: Floats, slopes: Floats, order: Ints | None = None) -> list[StepEvents]:
        """The events along each of D lines: scores s (N,), slopes a (D, N). order: of these scores, if it is known."""
        scores, slopes = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(slopes, np.float64)
        order = self.order(scores) if order is None else order
        if order is None:
            arguments = (self.relevance, self.weights, self.offsets)
            return [sweep_crossings(self.measure, scores, line, *arguments) for line in slopes]
        lines, ways = len(slopes), self._ways
        ranges = self._ranges(lines * len(ways))
        found: list[StepEvents] = [StepEvents(0.0, *np.zeros((3, 0)))] * (lines * len(ways) * len(ranges))
        starts = np.zeros((lines, len(ways), self.offsets.size - 1))

        def sweep(task: int) -> None:
            job, part = divmod(task, len(ranges))
            line, way = divmod(job, len(ways))
            found[task] = self._events(ways[way], scores, slopes[line], order, *ranges[part], starts[line, way])

        share(len(found), sweep)
        starts += np.array([way.constant for way in ways])
        own, each = starts.sum(axis=1), len(ways) * len(ranges)
        parts = [found[line * each : (line + 1) * each] for line in range(lines)]
        return [replace(joined(pieces), start=float(own[line].sum())) for line, pieces in enumerate(parts)]

    def _events(
        self, way: SweepPlan, scores: Floats, slopes: Floats, order: Ints, first: int, last: int, starts: Floats
    ) -> StepEvents:
        """The events of some queries in one way; writes their values at -∞ into starts (m,)."""
        buffers = _buffers(4 * int(self.offsets[last] - self.offsets[first]))
        arguments = (*way.before, scores, slopes, order, *way.behind, self.offsets, first, last, starts)
        count = way.kernel(*arguments, *buffers)
        if count > buffers[0].size:
            buffers = _buffers(count + count // 4)
            way.kernel(*arguments, *buffers)
        own = np.empty((3, count))  # one piece: of large ones systems give large pages
        for row, array in zip(own, buffers, strict=True):
            row[:] = array[:count]
        return StepEvents(0.0, *own)

    def _ranges(self, jobs: int) -> list[tuple[int, int]]:
        """Ranges of complete queries, so many that every thread gets several. The result of a query depends on it
        alone, so the partition does not change results."""
        rows, wanted = int(self.offsets[-1]), -(-TURNS * threads() // max(jobs, 1)) if threads() > 1 else 1
        part = min(MOST, max(LEAST, -(-rows // wanted)))
        marks = np.append(np.arange(0, rows, part), rows)
        return list(pairwise(np.unique(np.searchsorted(self.offsets, marks)).tolist()))

    @cached_property
    def _ways(self) -> tuple[SweepPlan, ...]:
        return sweep_plans(self.measure, self.relevance, self.offsets, self.weights)


def _buffers(events: int) -> list[Floats]:
    """A thread-local buffer for so many events at least: allocating it anew costs half a sweep."""
    if events > KEEP:
        return [np.empty(events) for _ in range(3)]
    if not hasattr(LOCAL, "buffers") or LOCAL.buffers[0].size < events:
        LOCAL.buffers = [np.empty(events) for _ in range(3)]
    buffers: list[Floats] = LOCAL.buffers
    return buffers
