"""Hinge loss of preferences with costs: all pairs, weighted by gain differences, or explicit pairs [paper 5, A.3].

The paper's Algorithm 3 omits 1/|P|, which its equation 16 has; with it lists of any length have the same weight.
Two sweeps with a Fenwick tree of counts and sums compute the violations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, Out, Shorts
from formulations.compiled import compiled, inlined, longest_query
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, alike, count_pairs, sort_falling
from rankopt.errors import OptionError
from rankopt.losses.loss import ConvexLoss, LossValue
from rankopt.measures.dcg import warn_if_large
from rankopt.measures.tied_ranking import query_of_row

Rule = Callable[[Floats], tuple[ArrayLike, ArrayLike, ArrayLike]]

GAINS: dict[str, Callable[[Floats], Floats]] = {
    "exponential": lambda grades: np.exp2(grades) - 1.0,
    "linear": lambda grades: grades,
}

PYTHON = 60_000  # nanoseconds that a document costs without compiled code, about


class PreferencePairs(NamedTuple):
    """P: document worse[p] ranks below document better[p], both rows of one query; cost[p] >= 0 is its weight."""

    worse: Ints
    better: Ints
    cost: Floats


@dataclass(frozen=True, eq=False)
class PreferenceHinge(ConvexLoss):
    """loss_q(s) = 1/|P_q| Σ_{(i, j) in P_q} C(i, j) max(0, 1 + s_i - s_j), where i ranks below j [paper 5, eq. 16];
    0 if P_q is empty.

    relevance: (N,) grades, any numbers. offsets: (m + 1,). gain: without `pairs`, P_q has all pairs with y_i < y_j and
    C(i, j) = g(y_j) - g(y_i). g is "exponential" (2^y - 1, the default: emphasizes the top positions), "linear", or a
    non-decreasing function of grades. The cost is O(n log n) for any number of grades.
    pairs: explicit `PreferencePairs` of rows; need not be transitive, may contradict each other; costs O(|P|).
    Raises OptionError for decreasing gains and for pairs across queries.
    """

    gain: str | Callable[[Floats], Floats] = "exponential"
    pairs: PreferencePairs | None = None

    @classmethod
    def by(cls, rule: Rule) -> Callable[..., PreferenceHinge]:
        """The factory (relevance, offsets) -> loss with P from a rule: it maps the grades (n,) of one query to worse,
        better (indices in it) and costs. A rule receives grades only, since training may reorder documents.

        >>> def all_below_the_first(grades):
        ...     rest = np.arange(1, grades.size)
        ...     return rest, np.zeros(grades.size - 1), grades[0] - grades[1:]
        >>> loss = PreferenceHinge.by(all_below_the_first)(np.array([2.0, 1.0, 0.0]), np.array([0, 3]))
        >>> loss.at(np.zeros(3)).value
        array([1.5])
        """
        return partial(_hinge_of_rule, rule)

    @cached_property
    def checked(self) -> PreferencePairs | None:
        """`pairs` sorted by query, as integers; each within one query."""
        if self.pairs is None:
            return None
        worse, better, cost = (np.atleast_1d(np.asarray(part)) for part in self.pairs)
        if not (worse.shape == better.shape == cost.shape) or worse.ndim != 1:
            raise OptionError("better, worse and cost of preferences must have the same length")
        worse, better, cost = worse.astype(np.int64), better.astype(np.int64), cost.astype(np.float64)
        rows = self.relevance.size
        if worse.size and (min(worse.min(), better.min()) < 0 or max(worse.max(), better.max()) >= rows):
            raise OptionError(f"preferences must refer to rows from 0 to {rows - 1}")
        query = query_of_row(self.offsets)
        across = np.flatnonzero(query[worse] != query[better])
        if across.size:
            p = int(across[0])
            raise OptionError(
                f"preference {p} is between documents {worse[p]} and {better[p]} of different queries, whose scores "
                "are not comparable; remove it"
            )
        if not (np.isfinite(cost).all() and (cost >= 0).all()):
            raise OptionError("costs of preferences must be finite and 0 or more")
        order = np.argsort(query[worse], kind="stable")
        return PreferencePairs(np.asarray(worse[order]), np.asarray(better[order]), np.asarray(cost[order]))

    @cached_property
    def gains(self) -> Floats:
        """(N,) g(y)."""
        gain = GAINS.get(self.gain) if isinstance(self.gain, str) else self.gain
        if gain is None or not callable(gain):
            raise OptionError(f"gain = {self.gain!r} is unknown; take {', '.join(map(repr, GAINS))}, or a function")
        levels, position = np.unique(self.relevance, return_inverse=True)
        with np.errstate(over="ignore"):
            found = np.asarray(gain(levels), dtype=np.float64)
        if self.gain == "exponential" and not np.isfinite(found).all():
            raise OptionError(
                f"gain = 'exponential' overflows for the grade {levels.max():g}; pass loss=functools.partial("
                "rankopt.losses.PreferenceHinge, gain='linear'), or use smaller grades"
            )
        warn_if_large(found)
        if found.shape != levels.shape or not np.isfinite(found).all() or (np.diff(found) < 0).any():
            raise OptionError(
                f"gain = {self.gain!r} must return one finite number for each grade, non-decreasing in the grade"
            )
        return np.ascontiguousarray(found[position])

    @cached_property
    def level(self) -> Shorts:
        """(N,) the grade of each document as 0, 1, 2, ... within its query."""
        return alike(self.offsets, self.relevance)

    @cached_property
    def share(self) -> Floats:
        """(m,) 1/|P_q|, 0 if P_q is empty."""
        pairs = count_pairs(self.level, self.offsets)
        if self.checked is not None:
            query = query_of_row(self.offsets)
            pairs = np.bincount(query[self.checked.worse], minlength=pairs.size).astype(np.float64)
        return np.divide(1.0, pairs, out=np.zeros(pairs.size), where=pairs > 0)

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes at `scores`, (N,); the hinge is evaluated, not bounded, so value and bound are one."""
        began, query = perf_counter(), query_of_row(self.offsets)
        above, below = self._by_sweep(scores) if self.checked is None else self._one_by_one(self.checked, scores)
        height = np.bincount(query, below, self.share.size) * self.share
        slope = self.share[query] * (above - below)
        value = height + np.bincount(query, slope * scores, self.share.size)
        return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)

    def _one_by_one(self, pairs: PreferencePairs, scores: Floats) -> tuple[Floats, Floats]:
        near = scores[pairs.better] - scores[pairs.worse] < 1.0
        cost = np.where(near, pairs.cost, 0.0)
        above: Floats = np.asarray(np.bincount(pairs.worse, cost, scores.size), dtype=np.float64)
        below: Floats = np.asarray(np.bincount(pairs.better, cost, scores.size), dtype=np.float64)
        return above, below

    def _by_sweep(self, scores: Floats) -> tuple[Floats, Floats]:
        above, below = np.zeros(scores.size), np.zeros(scores.size)
        arguments = (np.ascontiguousarray(scores, dtype=np.float64), self.level, self.gains, self.offsets)
        sums = sum_gains if sum_gains.pays(PYTHON * scores.size) else sum_gains.in_python
        share_ranges(self.offsets, QUERY_ROWS, lambda first, last: sums(*arguments, first, last, above, below))
        return above, below

    def select_queries(self, first: int, last: int) -> Self:
        pairs, some = self.checked, super().select_queries(first, last)
        if pairs is None:
            return some
        low, high = self.offsets[first], self.offsets[last]
        here = (pairs.worse >= low) & (pairs.worse < high)
        pairs = PreferencePairs(pairs.worse[here] - low, pairs.better[here] - low, pairs.cost[here])
        return replace(some, pairs=pairs)


def _hinge_of_rule(rule: Rule, relevance: Floats, offsets: Ints) -> PreferenceHinge:
    parts = []
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        worse, better, cost = (np.atleast_1d(np.asarray(part)) for part in rule(relevance[low:high]))
        parts.append((worse.astype(np.int64) + low, better.astype(np.int64) + low, cost.astype(np.float64)))
    return PreferenceHinge(relevance, offsets, pairs=PreferencePairs(*map(np.concatenate, zip(*parts, strict=True))))


@inlined
def _insert(count: Ints, total: Floats, level: int, gain: float) -> None:
    """One more document of this level (from 0) and gain."""
    i = level + 1
    while i < count.size:
        count[i] += 1
        total[i] += gain
        i += i & -i


@inlined
def _apart(count: Ints, total: Floats, level: int, gain: float) -> float:
    """Σ of their gains - `gain` over the documents of a lower level."""
    summed, found = 0.0, 0
    i = level
    while i > 0:
        found += count[i]
        summed += total[i]
        i -= i & -i
    return summed - found * gain


@compiled()
def sum_gains(
    scores: Floats, level: Shorts, gain: Floats, offsets: Ints, first: int, last: int, above: Out[Floats],
    below: Out[Floats],
) -> None:  # fmt: skip
    """For document j of the queries first <= q < last, above[j] = Σ gain_i - gain_j over the documents i of its query
    with level_i > level_j and s_i - s_j < 1; below[j] = Σ gain_j - gain_i over those with level_i < level_j and s_j -
    s_i < 1. Both sweeps only add, which avoids cancellation; the tree of the first counts levels from the top."""
    most = longest_query(offsets, first, last)
    rising, spare, key = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    counts, totals = np.empty(most + 1, np.int64), np.empty(most + 1)
    for q in range(first, last):
        low, size = offsets[q], offsets[q + 1] - offsets[q]
        levels = 0
        for j in range(size):
            rising[j], key[j] = j, -scores[low + j]
            levels = max(levels, level[low + j] + 1)
        sort_falling(rising[:size], key[:size], spare[:size])
        count, total = counts[: levels + 1], totals[: levels + 1]
        for i in range(levels + 1):
            count[i], total[i] = 0, 0.0
        reached = 0
        for position in range(size):
            j = low + rising[position]
            while reached < size and scores[low + rising[reached]] - scores[j] < 1.0:
                i = low + rising[reached]
                _insert(count, total, levels - 1 - level[i], gain[i])
                reached += 1
            above[j] = _apart(count, total, levels - 1 - level[j], gain[j])
        for i in range(levels + 1):
            count[i], total[i] = 0, 0.0
        reached = size - 1
        for position in range(size - 1, -1, -1):
            j = low + rising[position]
            while reached >= 0 and scores[j] - scores[low + rising[reached]] < 1.0:
                i = low + rising[reached]
                _insert(count, total, level[i], gain[i])
                reached -= 1
            below[j] = -_apart(count, total, level[j], gain[j])
