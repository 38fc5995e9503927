"""The best admissible orders of many queries: one linear problem a query, the set fixed, the profit new each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from formulations.errors import Unsupported
from formulations.sets.ranking_set import RankingSet
from formulations.solvers import accepting
from formulations.solvers.solver import Solver
from formulations.solving.set_batch import SetBatch, solve_sets
from rankopt.errors import OptionError

__all__ = ["AdmissibleBatch", "Orders"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DELTAS = (1e-3, 1e-5, 1e-7, 1e-9)
"""How little the scores count beside the measure where the measure comes first, from the first try on."""


@dataclass(frozen=True, eq=False)
class Orders:
    """An admissible order a query. rows: the document (row of the batch) at each place; value and proven bound (m,)."""

    rows: Ints
    value: Floats
    bound: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class AdmissibleBatch:
    """Queries with their sets S_q. gain b (N,) by document, rows offsets[q]:offsets[q+1]; discount a and decay c by
    place, places[q]:places[q+1] being the positions of query q. best: a maximiser of a[π]ᵀb over S_q.
    """

    sets: tuple[RankingSet, ...]
    gain: Floats
    discount: Floats
    decay: Floats
    offsets: Ints
    solver: Solver | str = "auto"
    best: Orders | None = None

    @cached_property
    def places(self) -> Ints:
        return np.concatenate([[0], np.cumsum([admissible.positions for admissible in self.sets])])

    def __len__(self) -> int:
        return len(self.sets)

    def argmax(self, by_gain: Floats, by_score: Floats, scores: Floats, chosen: Sequence[int] | None = None) -> Orders:
        """A maximiser of by_gain[q] a[π]ᵀb + by_score[q] c[π]ᵀs over S_q, for every (chosen) query q."""
        began = perf_counter()
        queries = np.arange(len(self)) if chosen is None else np.asarray(chosen)
        sizes = np.diff(self.offsets)
        every = SetBatch(
            self.sets,
            np.repeat(by_score, sizes) * scores,
            np.repeat(-by_gain, sizes) * self.gain,
            self.discount,
            self.decay,
            self.offsets,
            self.places,
        )
        batch = every if chosen is None else every.some(queries)
        try:
            answer = solve_sets(batch, self.solver)
        except Unsupported as error:
            known = ", ".join(["auto", *accepting(batch[0])])
            raise OptionError(f"argmax cannot rank under these constraints: {error}. Use one of {known}") from error
        rows = answer.order + np.repeat(self.offsets[queries], np.diff(batch.places))
        return Orders(rows, answer.value, answer.bound, perf_counter() - began)

    def measured(self, rows: Ints) -> Floats:
        """(m,) a[π]ᵀb of these orders."""
        return np.add.reduceat(self.discount * self.gain[rows], self.places[:-1])

    def placed(self, rows: Ints) -> Floats:
        """(N,) the decay of the position where each document stands, c[π]; 0 where it is not placed."""
        weights = np.zeros(self.gain.size)
        weights[rows] = self.decay
        return weights

    def with_best(self) -> AdmissibleBatch:
        """The batch with `best`."""
        none = np.zeros(len(self))
        return replace(self, best=self.argmax(none + 1.0, none, np.zeros(self.gain.size)))

    def orderable(self) -> NDArray[np.bool_]:
        """(m,) whether the best admissible order is worth more than the worst."""
        none = np.zeros(len(self))
        worst = self.argmax(none - 1.0, none, np.zeros(self.gain.size))
        return np.asarray(self.measured(self.best_orders.rows) + worst.value > 1e-12 * self._sizes(self.gain, True))

    @property
    def best_orders(self) -> Orders:
        assert self.best is not None, "with_best() has not been asked for"
        return self.best

    def best_by_score(self, scores: Floats) -> Ints:
        """(K,) of the orders that maximise a[π]ᵀb the one with the largest c[π]ᵀs.

        Maximises a[π]ᵀb + δ c[π]ᵀs (both brought to size 1). If the order found is best for a[π]ᵀb, then no other such
        has a larger c[π]ᵀs; else δ was too large, and a smaller one is tried. Below the last δ ties stay as they are.
        """
        best = self.measured(self.best_orders.rows)
        rows = self.best_orders.rows.copy()
        worth, size = self._sizes(self.gain, True), self._sizes(scores, False)
        left = np.flatnonzero(size > 0)
        by_gain = np.divide(1.0, worth, out=np.zeros_like(worth), where=worth > 0)
        by_score = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        places = self.places
        for delta in DELTAS:
            if not left.size:
                break
            found = self.argmax(by_gain, delta * by_score, scores, left.tolist())
            spots = np.concatenate([np.arange(places[q], places[q + 1]) for q in left])
            tried = rows.copy()
            tried[spots] = found.rows
            is_best = self.measured(tried) >= best - 1e-12 * worth
            kept = np.repeat(is_best, np.diff(places))
            rows[kept] = tried[kept]
            left = left[~is_best[left]]
        return rows

    def some(self, queries: Ints) -> AdmissibleBatch:
        """The batch of these queries, in this order."""
        places, best = self.places, None
        documents = [np.arange(self.offsets[q], self.offsets[q + 1]) for q in queries]
        spots = np.concatenate([np.arange(places[q], places[q + 1]) for q in queries])
        offsets = np.concatenate([[0], np.cumsum([part.size for part in documents])])
        if self.best is not None:
            moved = np.repeat(offsets[:-1] - self.offsets[queries], np.diff(places)[queries])
            best = Orders(self.best.rows[spots] + moved, self.best.value[queries], self.best.bound[queries], 0.0)
        return replace(
            self,
            sets=tuple(self.sets[q] for q in queries),
            gain=self.gain[np.concatenate(documents)],
            discount=self.discount[spots],
            decay=self.decay[spots],
            offsets=offsets,
            best=best,
        )

    def _sizes(self, values: Floats, measure: bool) -> Floats:
        """(m,) how large a[π]ᵀb or c[π]ᵀs can be."""
        weights = self.discount if measure else self.decay
        tallest = np.maximum.reduceat(np.abs(values), self.offsets[:-1])
        return np.asarray(np.add.reduceat(np.abs(weights), self.places[:-1]) * tallest)
