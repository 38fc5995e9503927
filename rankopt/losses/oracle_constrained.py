"""Feature map of constrained rankings: the best admissible ranking of each query, one LP a query [ORM, section 7.1].

    max_{π in S_q} by_gain a[π]ᵀb + by_score c[π]ᵀs - charge p(π)

The sets S_q are fixed; the profit changes with the scores. Slopes are those of `PositionalOracle`; a and c are
truncated to the positions of the set. p(π) is the penalty of the soft constraints that π violates.

The predicted ranking maximizes c[π]ᵀs - p(π), and the best one maximizes a[π]ᵀb - p(π). A margin compares c[π]ᵀs - p(π)
with the same quantity of its reference (`charges`). The bounded regret is that of the measure alone, relative to the
greatest a[π]ᵀb of all admissible rankings, penalized or not: it is therefore never negative.

Each slope is extended by one number a query, the negative penalty of its ranking. A bound averages it with the slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from formulations import RankingSet
from formulations.arrays import Bools, Floats, Ints, Shorts
from formulations.constraints.structure import kinds
from formulations.errors import UnsupportedProblemError
from formulations.solvers import compatible_solvers
from formulations.solvers.solver import Solver
from formulations.solving.constrained_batch import SetBatch, solve_sets
from formulations.sorting import alike
from rankopt.data.canonical_order import Arrangement, rows_of
from rankopt.errors import OptionError
from rankopt.losses.oracle import ArgmaxResult
from rankopt.losses.position_weights import PositionWeights
from rankopt.losses.segment_ops import shared
from rankopt.measures.measure import PositionalMeasure


@dataclass(frozen=True, eq=False)
class PenalizedReferences:
    """The references of an argmax under soft constraints, for a bound to choose from: (N + m,) a slope, and behind it
    minus what it pays in each query. All else is the argmax's own."""

    argmax: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.argmax, name)

    def mean_of_best(self, which: str = "average") -> Floats:
        return self._with(self.argmax.reference_rows(which), self.argmax.start, exchanged="best")

    def best_then_score(self, scores: Floats) -> Floats:
        return self._with(self.argmax.best_rows(scores), scores, exchanged="best")

    def top_scoring(self, scores: Floats) -> Floats:
        return self._with(self.argmax.liked_rows(scores), scores, exchanged="liked")

    def _with(self, rows: Ints, scores: Floats, exchanged: str) -> Floats:
        return np.concatenate([self.argmax.slope_of(rows, scores, exchanged), -self.argmax.charged(rows)])


@dataclass(frozen=True, eq=False)
class Orders:
    """One admissible ranking a query. rows: the document (row of the batch) at each position; value and bound (m,)."""

    rows: Ints
    value: Floats
    bound: Floats
    seconds: float


DELTAS = (1e-3, 1e-5, 1e-7, 1e-9)
"""Weight of the scores relative to the measure in lexicographic problems, at the first attempt."""


@dataclass(frozen=True, eq=False)
class AdmissibleArgmax:
    """The loss-augmented rankings of queries under constraint sets, and their references.

    sets: S_q of each query. gain: b (N,) by document, rows offsets[q] : offsets[q + 1]. discount, position_weights: a
    and c by position; position_offsets[q : q + 2] bound the positions of query q.
    start: (N,) the scores at w₀, which break ties of the best reference. optimal_rankings: maximizers of a[π]ᵀb over
    S_q. unpaid: under soft constraints, the same without penalties.
    Documents of equal score and gain that the set does not distinguish share their slopes. Other ties follow the order
    of the documents, which in training is canonical (`data.canonical`).
    """

    sets: tuple[RankingSet, ...]
    gain: Floats
    discount: Floats
    position_weights: Floats
    offsets: Ints
    solver: Solver | str
    start: Floats
    optimal_rankings: Orders
    unpaid: Orders | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.gain.shape

    @cached_property
    def soft(self) -> bool:
        """Whether a set has soft constraints, which may be violated at a penalty."""
        return any(admissible.soft_constraints for admissible in self.sets)

    @cached_property
    def position_offsets(self) -> Ints:
        return np.concatenate([[0], np.cumsum([admissible.positions for admissible in self.sets])])

    @cached_property
    def kind(self) -> Shorts:
        """(N,) equal for documents of one query that the set does not distinguish."""
        return alike(self.offsets, np.concatenate([_kinds(admissible) for admissible in self.sets]))

    @cached_property
    def kind_and_gain(self) -> Shorts:
        return alike(self.offsets, self.kind, self.gain)

    def __len__(self) -> int:
        return len(self.sets)

    def argmax(
        self,
        by_gain: Floats,
        by_score: Floats,
        scores: Floats,
        chosen: Sequence[int] | None = None,
        charge: Floats | None = None,
    ) -> Orders:
        """A maximizer of by_gain[q] a[π]ᵀb + by_score[q] c[π]ᵀs - charge[q] p(π) over S_q, for every (chosen) q."""
        began = perf_counter()
        queries = np.arange(len(self)) if chosen is None else np.asarray(chosen)
        sizes = np.diff(self.offsets)
        every = SetBatch(
            self.sets,
            np.repeat(by_score, sizes) * scores,
            np.repeat(-by_gain, sizes) * self.gain,
            self.discount,
            self.position_weights,
            self.offsets,
            self.position_offsets,
            charge,
        )
        batch = every if chosen is None else every.some(queries)
        try:
            answer = solve_sets(batch, self.solver)
        except UnsupportedProblemError as error:
            known = ", ".join(["auto", *compatible_solvers(batch[0])])
            raise OptionError(f"argmax cannot rank under these constraints: {error}. Use one of {known}") from error
        rows = answer.order + np.repeat(self.offsets[queries], np.diff(batch.position_offsets))
        return Orders(rows, answer.value, answer.bound, perf_counter() - began)

    def measured(self, rows: Ints) -> Floats:
        """(m,) a[π]ᵀb of these orders."""
        return np.add.reduceat(self.discount * self.gain[rows], self.position_offsets[:-1])

    def charged(self, rows: Ints) -> Floats:
        """(m,) what these orders pay for the soft constraints that they break."""
        paid = np.zeros(len(self))
        for q, admissible in enumerate(self.sets):
            if admissible.soft_constraints:
                paid[q] = admissible.charge(rows[slice(*self.position_offsets[q : q + 2])] - self.offsets[q])
        return paid

    def worth(self, rows: Ints) -> Floats:
        """(m,) a[π]ᵀb of these orders, less what they pay."""
        return self.measured(rows) - self.charged(rows) if self.soft else self.measured(rows)

    def assigned(self, rows: Ints) -> Floats:
        """(N,) c[π], the weight of the position of each document; 0 if it is not ranked."""
        weights = np.zeros(self.gain.size)
        weights[rows] = self.position_weights
        return weights

    def sizes(self, values: Floats, measure: bool) -> Floats:
        """(m,) how large a[π]ᵀb or c[π]ᵀs can be."""
        weights = self.discount if measure else self.position_weights
        tallest = np.maximum.reduceat(np.abs(values), self.offsets[:-1])
        return np.asarray(np.add.reduceat(np.abs(weights), self.position_offsets[:-1]) * tallest)

    @classmethod
    def build(
        cls, sets: Sequence[RankingSet], gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints, start:
        Floats, solver: Solver | str = "auto",
    ) -> AdmissibleArgmax:  # fmt: skip
        """The argmax with its best orders; the bound of these is that of the programs solved."""
        none = Orders(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), 0.0)
        bare = cls(tuple(sets), gain, discount, position_weights, offsets, solver, start, none)
        ones = np.ones(len(bare))
        zeros = np.zeros(gain.size)
        unpaid = bare.argmax(ones, 0.0 * ones, zeros, charge=0.0 * ones) if bare.soft else None
        return replace(bare, optimal_rankings=bare.argmax(ones, 0.0 * ones, zeros), unpaid=unpaid)

    @classmethod
    def from_queries(
        cls, queries: Arrangement, measure: PositionalMeasure, position_weights: PositionWeights,
        sets_of: Callable[[Arrangement], Sequence[RankingSet]], start_of: Callable[[Arrangement], Floats],
        solver: Solver | str = "auto",
    ) -> tuple[Arrangement, AdmissibleArgmax]:  # fmt: skip
        """The queries whose admissible rankings differ in value, and their argmax.

        sets_of: the set of each query; DataError if one is empty. start_of: (N,) scores at w₀. Queries with one gain
        are skipped. A set may distinguish documents that the measure does not distinguish in full rankings: all
        rankings of two documents have the same P@2, but one of k = 1 shows the better one or not.
        """
        starts = queries.offsets[:-1]
        gain = measure.gain(queries.graded, queries.offsets)
        differing = np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)
        queries = queries.learnable(differing, f"{measure} distinguishes")
        sets = sets_of(queries)
        lengths = [(one.documents, one.positions) for one in sets]
        found = cls.build(
            sets,
            measure.gain(queries.graded, queries.offsets),
            np.concatenate([measure.discount(n)[:k] for n, k in lengths]),
            np.concatenate([position_weights.weights(n, measure)[:k] for n, k in lengths]),
            queries.offsets,
            start_of(queries),
            solver,
        )
        useful = found.orderable()
        chosen = queries.learnable(useful, f"{measure} distinguishes in the admissible rankings")
        return chosen, found.some(np.flatnonzero(useful & (queries.weights > 0)))

    @property
    def best(self) -> Floats:
        """(m,) the greatest a[π]ᵀb, ignoring penalties."""
        return (self.unpaid or self.optimal_rankings).value

    @property
    def worst_unpaid(self) -> Floats | None:
        """(m,) the least a[π]ᵀb, ignoring penalties; None without soft constraints."""
        none = np.zeros(len(self))
        return -self.argmax(none - 1.0, none, np.zeros(self.gain.size), charge=none).value if self.soft else None

    @property
    def charges(self) -> PenalizedReferences | None:
        """The references with what they pay; None where no set has soft constraints."""
        return PenalizedReferences(self) if self.soft else None

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        """Bounds are always proven by dual variables; a fractional relaxation gives a bound above the value."""
        ones = np.ones(len(self))
        answer, best = self.argmax(-ones, ones, scores), self.unpaid or self.optimal_rankings
        slope = shared(self.assigned(answer.rows), scores, self.kind_and_gain, self.offsets)
        bound = answer.bound + (best.bound - best.value)
        earned = self.measured(answer.rows) + (self.charged(answer.rows) if self.soft else 0.0)
        return ArgmaxResult(slope, earned, answer.value, bound, answer.seconds)

    def mean_of_best(self, which: str = "average") -> Floats:
        """A measure-optimal admissible ranking, with ties broken by the score at w₀, then by document order; the mean
        over exchanges of indistinguishable documents."""
        return self.slope_of(self.reference_rows(which), self.start)

    def best_then_score(self, scores: Floats) -> Floats:
        """Of the admissible orders that are best for the measure the one that is best for the scores."""
        return self.slope_of(self.best_rows(scores), scores)

    def top_scoring(self, scores: Floats) -> Floats:
        """The admissible order that is best for the scores."""
        return self.slope_of(self.liked_rows(scores), scores, "liked")

    def slope_of(self, rows: Ints, scores: Floats, exchanged: str = "best") -> Floats:
        """r of these rankings, averaged over exchanges of indistinguishable documents. Optimal rankings also
        distinguish gains; highest-scoring ones do not."""
        kind = self.kind_and_gain if exchanged == "best" else self.kind
        return shared(self.assigned(rows), scores, kind, self.offsets)

    def reference_rows(self, which: str = "average") -> Ints:
        """The orders of the best reference."""
        if which != "average":
            raise OptionError(
                f"target_ranking must be 'average' under constraints; got {which!r}. It follows the input order, which "
                "may be inadmissible; 'average' uses a best admissible order, or a mean of several"
            )
        sizes, scores = np.diff(self.offsets), self.start  # brought to size 1, equal ones falling by document order
        size = np.maximum.reduceat(np.abs(scores), self.offsets[:-1])
        position = (np.arange(scores.size) - np.repeat(self.offsets[:-1], sizes)) / np.repeat(sizes, sizes)
        return self.best_rows(scores / np.repeat(np.where(size > 0, size, 1.0), sizes) - 1e-6 * position)

    def liked_rows(self, scores: Floats) -> Ints:
        """The highest-scoring rankings."""
        ones = np.ones(len(self))
        return self.argmax(0.0 * ones, ones, scores).rows

    def select_queries(self, first: int, last: int) -> AdmissibleArgmax:
        return self.some(np.arange(first, last))

    def orderable(self) -> Bools:
        """(m,) whether the best admissible order is worth more than the worst."""
        none = np.zeros(len(self))
        worst = self.argmax(none - 1.0, none, np.zeros(self.gain.size))
        lost = worst.value + self.charged(worst.rows) if self.soft else worst.value
        return np.asarray(self.measured(self.optimal_rankings.rows) + lost > 1e-12 * self.sizes(self.gain, True))

    def best_rows(self, scores: Floats) -> Ints:
        """(K,) the ranking with the largest c[π]ᵀs among the maximizers of a[π]ᵀb. Maximizes a[π]ᵀb + δ c[π]ᵀs (both
        scaled to 1) less p(π), which each term includes. If the result maximizes a[π]ᵀb, no other maximizer has a
        larger c[π]ᵀs; else δ was too large and a smaller one is tried. After the last δ, ties remain."""
        best = self.worth(self.optimal_rankings.rows)
        rows = self.optimal_rankings.rows.copy()
        worth, size = self.sizes(self.gain, True), self.sizes(scores, False)
        left = np.flatnonzero(size > 0)
        by_gain = np.divide(1.0, worth, out=np.zeros_like(worth), where=worth > 0)
        by_score = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        position_offsets = self.position_offsets
        for delta in DELTAS:
            if not left.size:
                break
            found = self.argmax(by_gain, delta * by_score, scores, left.tolist(), by_gain + delta * by_score)
            tried = rows.copy()
            tried[rows_of(position_offsets, left)] = found.rows
            is_best = self.worth(tried) >= best - 1e-12 * worth
            replaced = np.repeat(is_best, np.diff(position_offsets))
            rows[replaced] = tried[replaced]
            left = left[~is_best[left]]
        return rows

    def some(self, queries: Ints) -> AdmissibleArgmax:
        """The queries of these positions, in this order."""
        position_offsets = self.position_offsets
        documents, spots = rows_of(self.offsets, queries), rows_of(position_offsets, queries)
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[queries])])
        moved = np.repeat(offsets[:-1] - self.offsets[queries], np.diff(position_offsets)[queries])

        def cut(orders: Orders) -> Orders:
            return Orders(orders.rows[spots] + moved, orders.value[queries], orders.bound[queries], 0.0)

        return replace(
            self,
            sets=tuple(self.sets[q] for q in queries), gain=self.gain[documents], discount=self.discount[spots],
            position_weights=self.position_weights[spots], offsets=offsets, start=self.start[documents],
            optimal_rankings=cut(self.optimal_rankings), unpaid=None if self.unpaid is None else cut(self.unpaid),
        )  # fmt: skip


def _kinds(admissible: RankingSet) -> Ints:
    """(n,) equal for documents that the set does not distinguish: same block or none, same columns."""
    if admissible.soft_constraints:
        features = np.column_stack([kinds(admissible.compiled_with_soft), admissible.cell_penalties.T])
        return np.asarray(np.unique(features, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)
    stated = admissible.compiled
    if stated.blocks_of is None:
        return kinds(stated)
    kind = stated.blocks_of + 1
    kind[stated.own_row] = 0  # they are in no block
    return kind
