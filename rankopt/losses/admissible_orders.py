"""Orders of sets: the best of many queries at once, each under its own set, one linear problem a query.

    max_{π in S_q} by_gain a[π]ᵀb + by_score c[π]ᵀs - charge p(π)

with p(π) what π pays for the soft constraints that it breaks. The sets are fixed, the profit is new each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from formulations import RankingSet
from formulations.arrays import Shorts
from formulations.errors import Unsupported
from formulations.sets.candidates import kinds
from formulations.solvers import accepting
from formulations.solvers.solver import Solver
from formulations.solving.set_batch import SetBatch, solve_sets
from rankopt.errors import OptionError
from rankopt.losses.charges import charges_of
from rankopt.losses.ties import alike

__all__ = ["AdmissibleOrders", "Orders"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Orders:
    """An admissible order a query. rows: the document (row of the batch) at each place; value and proven bound (m,)."""

    rows: Ints
    value: Floats
    bound: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class AdmissibleOrders:
    """Queries with their sets S_q. gain b (N,) by document, rows offsets[q]:offsets[q+1]; discount a and decay c by
    place, places[q]:places[q+1] being the positions of query q."""

    sets: tuple[RankingSet, ...]
    gain: Floats
    discount: Floats
    decay: Floats
    offsets: Ints
    solver: Solver | str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.gain.shape

    @cached_property
    def soft(self) -> bool:
        """Whether a set has constraints that may be broken at a price."""
        return any(admissible.softened for admissible in self.sets)

    @cached_property
    def places(self) -> Ints:
        return np.concatenate([[0], np.cumsum([admissible.positions for admissible in self.sets])])

    @cached_property
    def kind(self) -> Shorts:
        """(N,) documents of one query that the set does not tell apart have equal ones."""
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
        """A maximiser of by_gain[q] a[π]ᵀb + by_score[q] c[π]ᵀs - charge[q] p(π) over S_q, for every (chosen) query q;
        charge: 1 unless said."""
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
            charge,
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

    def charged(self, rows: Ints) -> Floats:
        """(m,) what these orders pay for the soft constraints that they break."""
        return charges_of(self.sets, rows, self.offsets, self.places)

    def worth(self, rows: Ints) -> Floats:
        """(m,) a[π]ᵀb of these orders, less what they pay."""
        return self.measured(rows) - self.charged(rows) if self.soft else self.measured(rows)

    def placed(self, rows: Ints) -> Floats:
        """(N,) the decay of the position where each document stands, c[π]; 0 where it is not placed."""
        weights = np.zeros(self.gain.size)
        weights[rows] = self.decay
        return weights

    def sizes(self, values: Floats, measure: bool) -> Floats:
        """(m,) how large a[π]ᵀb or c[π]ᵀs can be."""
        weights = self.discount if measure else self.decay
        tallest = np.maximum.reduceat(np.abs(values), self.offsets[:-1])
        return np.asarray(np.add.reduceat(np.abs(weights), self.places[:-1]) * tallest)


def _kinds(admissible: RankingSet) -> Ints:
    """(n,) documents that the set does not tell apart have equal ones: of one block or of none, of the same columns."""
    if admissible.softened:
        told = np.column_stack([kinds(admissible.priced), admissible.cell_prices.T])
        return np.asarray(np.unique(told, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)
    stated = admissible.stated
    if stated.blocks_of is None:
        return kinds(stated)
    kind = stated.blocks_of + 1
    kind[stated.own_row] = 0  # they are in no block
    return kind
