"""Feature maps of the relevance vector: first relevant document [paper 4, φ_mrr] and pairs [paper 4, φ_po].

First relevant document: r(π) moves it above the irrelevant documents that precede it.

    φ(π)·w = σ Σ (s_j - s_g)    over the irrelevant j that precede the first relevant document g
    r_j = σ for these j, r_g = -σ (their number), 0 elsewhere          σ = 1

The loss-augmented g has the *lowest* score of the relevant documents; the ranking by score starts with the highest,
top. Its margin Σ_j max(s_j - top, 0) is not convex if several are relevant. Adding σ n₋ top to both (`raised`), n₋ the
number of irrelevant documents, gives Σ_j max(s_j, top), a maximum of linear functions.

Pairs: r(π) counts misordered pairs.

    φ(π)·w = κ Σ (s_j - s_i)    over the pairs of a better document i ranked below a worse one j
    r_i = κ (better documents below i - worse ones above i)          κ = 1 / number of pairs

The measure's gains decide which documents are better: relevant or not, or by grade. The paper has the factor 2 for κ;
without it the bound of AUC's regret is exactly the pairwise hinge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from formulations import first_relevant_ranking, pairwise_ranking
from formulations.arrays import Bools, Floats, Ints, Shorts
from formulations.sorting import count_pairs
from rankopt.errors import OptionError
from rankopt.losses.oracle import ArgmaxResult, OrdersArgmax
from rankopt.losses.segment_ops import mean_of_alike, mean_of_runs, sorted_rows
from rankopt.measures.binary import WinnerTakesAll
from rankopt.measures.first_relevant import ReciprocalRank
from rankopt.measures.measure import Measure


@dataclass(frozen=True, eq=False)
class FirstRelevantArgmax(OrdersArgmax):
    """gain(π) = RR@k. All orders that are best have slope 0, under every name of a reference.

    shared: σ = 1/n₋, so that slopes are of the size of those of pairs. lifted: see `raised`.
    """

    shared: bool = False
    lifted: bool = False
    reference: ClassVar[str] = "ideal"
    references: ClassVar[tuple[str, ...]] = ("ideal", "average")

    @classmethod
    def supports(cls, measure: Measure) -> bool:
        return isinstance(measure, ReciprocalRank | WinnerTakesAll)

    @cached_property
    def problem(self) -> Any:
        grades, gains = self.criterion.gain_table()
        return first_relevant_ranking(np.zeros(grades.size), grades, gains, shared=self.shared, offsets=self.offsets)

    @property
    def unit(self) -> Floats:
        """(m,) the square of the greatest slope, σ n₋; that of pairs is 1 at most."""
        return np.asarray((self.strength * self._others) ** 2)

    @property
    def in_mixes(self) -> FirstRelevantArgmax:
        """With σ = 1/n₋: slopes of counts would dominate the other parts, whose slopes are shares of pairs."""
        return replace(self, shared=True)

    @property
    def raised(self) -> FirstRelevantArgmax:
        """The map with σ n₋ top added to φ for every y: the ranking by score maximizes it."""
        return replace(self, lifted=True)

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        found = super().at(scores, prove)
        if not self.lifted:
            return found
        lift = self._lift(scores)
        more = np.add.reduceat(lift * scores, self.offsets[:-1])
        return replace(found, slope=found.slope + lift, value=found.value + more, bound=found.bound + more)

    def mean_of_best(self, which: str = "ideal") -> Floats:
        if which not in ("ideal", "average"):
            raise OptionError(f"target_ranking {which!r} is neither 'ideal' nor 'average'")
        if not self.lifted:
            return np.zeros(self.shape)
        relevant = np.add.reduceat(self._good.astype(np.float64), self.offsets[:-1])
        height = self.strength * self._others / np.maximum(relevant, 1.0)
        return np.where(self._good, height[self.criterion.query], 0.0)

    def best_then_score(self, scores: Floats) -> Floats:
        return self._lift(scores) if self.lifted else np.zeros(self.shape)

    def top_scoring(self, scores: Floats) -> Floats:
        """The order by score; those that tie with the first relevant one count half; equal relevant ones share."""
        top = self._top(scores)[self.criterion.query]
        slope = np.where(self._good, 0.0, (scores > top) + 0.5 * (scores == top))
        total = np.add.reduceat(slope, self.offsets[:-1])[self.criterion.query]
        slope = (slope - total * self._first(scores, top)) * self.strength[self.criterion.query]
        return np.asarray(slope + self._lift(scores)) if self.lifted else np.asarray(slope)

    @cached_property
    def strength(self) -> Floats:
        """(m,) σ."""
        return 1.0 / np.maximum(self._others, 1.0) if self.shared else np.ones(self.offsets.size - 1)

    @cached_property
    def _good(self) -> Bools:
        return np.asarray(self.criterion.optimal_rankings[0] > 0)

    @cached_property
    def _others(self) -> Floats:
        """(m,) n₋."""
        return np.add.reduceat((~self._good).astype(np.float64), self.offsets[:-1])

    def _top(self, scores: Floats) -> Floats:
        """(m,) the highest score of a relevant document."""
        return np.maximum.reduceat(np.where(self._good, scores, -np.inf), self.offsets[:-1])

    def _first(self, scores: Floats, top: Floats) -> Floats:
        """(N,) 1 on the relevant document of highest score; those of equal score share it."""
        heads = self._good & (scores == top)
        count = np.add.reduceat(heads.astype(np.float64), self.offsets[:-1])
        return np.asarray(heads / np.maximum(count, 1.0)[self.criterion.query])

    def _lift(self, scores: Floats) -> Floats:
        """(N,) the slope of σ n₋ top."""
        query = self.criterion.query
        return np.asarray(self._first(scores, self._top(scores)[query]) * (self.strength * self._others)[query])


def inversions(kind: Shorts, runs: Bools, ties: Bools) -> Floats:
    """(N,) the number of documents of higher kind below each one, less those of lower kind above it. kind: (N,) of the
    documents in ranked order. runs: (N,) whether a run begins; only pairs within runs count. ties: (N,) False for
    documents tied with the previous one; a run always begins with True. Pairs of tied documents count half."""
    n = kind.size
    run, tie = _bounds(runs), _bounds(ties | runs)
    difference = np.zeros(n)
    for own in np.unique(kind):
        rows = np.flatnonzero(kind == own)
        lower = np.concatenate([[0], np.cumsum(kind < own)])
        higher = np.concatenate([[0], np.cumsum(kind > own)])
        (begin, end), (first, last) = (ends[:, rows] for ends in (run, tie))
        before = (lower[first] + lower[last]) / 2 - lower[begin]
        behind = higher[end] - (higher[first] + higher[last]) / 2
        difference[rows] = behind - before
    return difference


def _bounds(begins: Bools) -> Ints:
    """(2, N) start and end of the segment of each position."""
    first = np.flatnonzero(np.append(True, begins[1:]))
    last = np.append(first[1:], begins.size)
    return np.repeat(np.array([first, last]), last - first, axis=1)


@dataclass(frozen=True, eq=False)
class PairwiseArgmax(OrdersArgmax):
    """gain(π) = the measure. `mean_of_best`: "ideal" (the default), all better documents first, which is 0;
    "average", the mean over all orders that are best."""

    reference: ClassVar[str] = "ideal"
    references: ClassVar[tuple[str, ...]] = ("ideal", "average")

    @classmethod
    def supports(cls, measure: Measure) -> bool:
        return measure.has_gain_table

    @cached_property
    def problem(self) -> Any:
        grades, gains = self.criterion.gain_table()
        return pairwise_ranking(np.zeros(grades.size), grades, gains, offsets=self.offsets)

    def mean_of_best(self, which: str = "ideal") -> Floats:
        if which not in ("ideal", "average"):
            raise OptionError(f"target_ranking {which!r} is neither 'ideal' nor 'average'")
        if which != "average":
            return np.zeros(self.shape)
        gain, _ = self.criterion.optimal_rankings
        rows = sorted_rows(self.criterion.query, gain)
        runs, slope = self._runs(), np.empty(self.shape)
        apart = self._slope_by_position(rows, runs, runs)[rows]  # all of a run are tied: every order of it
        slope[rows] = mean_of_runs(apart, self.criterion.query, gain[rows])
        return slope

    def best_then_score(self, scores: Floats) -> Floats:
        """Sorted by gain, then by score; within each run of positions that the measure does not distinguish by score
        again. Documents of equal gain and score share their mean."""
        (gain, _), query = self.criterion.optimal_rankings, self.criterion.query
        if self._apart_by_runs:
            return np.zeros(self.shape)
        runs = self._runs()
        by_gain = sorted_rows(query, gain, scores)
        rows = by_gain[sorted_rows(np.cumsum(runs), scores[by_gain])]
        slope = self._slope_by_position(rows, runs, self._apart(scores[rows]))
        ordered = slope[by_gain]
        slope[by_gain] = mean_of_alike(ordered, np.arange(ordered.size), query, gain[by_gain], scores[by_gain])
        return slope

    def top_scoring(self, scores: Floats) -> Floats:
        """The order by score, pairs of equal score half."""
        rows = sorted_rows(self.criterion.query, scores)
        return self._slope_by_position(rows, self._begins(), self._apart(scores[rows]))

    @cached_property
    def share(self) -> Floats:
        """(N,) κ of the query of each document."""
        criterion = self.criterion
        return np.asarray((1.0 / np.maximum(count_pairs(criterion.kind, self.offsets), 1.0))[criterion.query])

    @cached_property
    def _apart_by_runs(self) -> bool:
        """Whether no run of positions has documents of two kinds in the optimal rankings: these have no inversion."""
        gain, _ = self.criterion.optimal_rankings
        kind = self.criterion.kind[sorted_rows(self.criterion.query, gain)]
        return not (~self._runs()[1:] & (kind[1:] != kind[:-1])).any()

    def _slope_by_position(self, rows: Ints, runs: Bools, ties: Bools) -> Floats:
        slope = np.empty(rows.size)
        slope[rows] = inversions(self.criterion.kind[rows], runs, ties) * self.share
        return slope

    def _begins(self) -> Bools:
        """(N,) where a query begins."""
        begins = np.zeros(self.shape, dtype=bool)
        begins[self.offsets[:-1]] = True
        return begins

    def _runs(self) -> Bools:
        """(N,) whether a run of positions starts within which every order has the same value."""
        _, discount = self.criterion.optimal_rankings
        return self._begins() | self._apart(discount)

    def _apart(self, values: Floats) -> Bools:
        """(N,) which values are others than the one before."""
        return np.append(True, values[1:] != values[:-1])
