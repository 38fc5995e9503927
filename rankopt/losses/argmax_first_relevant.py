"""The first relevant document: r(π) pulls it above the others that stand before it [paper 4, φ_mrr].

    φ(π)·w = σ Σ (s_j - s_g)    over the others j that stand before the first relevant document g
    r_j = σ on these, r_g = -σ (how many they are), 0 elsewhere          σ = 1

The loss-augmented first is the relevant document of *lowest* score, while the order by score begins with that of
highest score, top. Its margin Σ_j max(s_j - top, 0) is no convex function where several are relevant. With σ n₋ top
added to both (`raised`), n₋ the number of others, it is Σ_j max(s_j, top), a maximum of linear functions like the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations import first_relevant_ranking
from formulations.solvers.solver import Solver
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import OptionError
from rankopt.losses.argmax import ArgmaxResult
from rankopt.losses.argmax_orders import OrdersArgmax, settled
from rankopt.losses.criterion import Criterion, pattern_loss_of
from rankopt.losses.decay import Decay
from rankopt.measures.binary import WinnerTakesAll
from rankopt.measures.first_relevant import ReciprocalRank
from rankopt.measures.measure import Measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    def takes(cls, measure: Measure) -> bool:
        return isinstance(measure, ReciprocalRank | WinnerTakesAll)

    @classmethod
    def of(cls, queries: Arrangement, measure: Measure, decay: Decay, solver: Solver) -> FirstRelevantArgmax:
        criterion = Criterion.of(measure, queries.graded, queries.offsets)
        return cls(criterion, settled(solver, criterion))

    @cached_property
    def problem(self) -> Any:
        grades, loss = pattern_loss_of(self.criterion)
        return first_relevant_ranking(np.zeros(grades.size), grades, loss, shared=self.shared, offsets=self.offsets)

    @property
    def unit(self) -> Floats:
        """(m,) the square of the greatest slope, σ n₋; that of pairs is 1 at most."""
        return np.asarray((self.strength * self._others) ** 2)

    @property
    def in_mixes(self) -> FirstRelevantArgmax:
        """With σ = 1/n₋: else its slopes, of whole documents where those of pairs are shares, swamp the other parts."""
        return replace(self, shared=True)

    @property
    def raised(self) -> FirstRelevantArgmax:
        """The map with σ n₋ top added to φ, whatever the order: of it the order by score is a maximiser."""
        return replace(self, lifted=True)

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        found = super().at(scores, prove)
        if not self.lifted:
            return found
        lift = self._lift(scores)
        more = np.add.reduceat(lift * scores, self.offsets[:-1])
        return replace(found, slope=found.slope + lift, value=found.value + more, bound=found.bound + more)

    def best_reference(self, which: str = "ideal") -> Floats:
        if which not in ("ideal", "average"):
            raise OptionError(f"reference {which!r} is neither 'ideal' nor 'average'")
        if not self.lifted:
            return np.zeros(self.shape)
        goods = np.add.reduceat(self._good.astype(np.float64), self.offsets[:-1])
        height = self.strength * self._others / np.maximum(goods, 1.0)
        return np.where(self._good, height[self.criterion.query], 0.0)

    def best_by_score(self, scores: Floats) -> Floats:
        return self._lift(scores) if self.lifted else np.zeros(self.shape)

    def by_score(self, scores: Floats) -> Floats:
        """The order by score, others that tie with the first relevant one half before it; relevant documents of equal
        score share."""
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
    def _good(self) -> NDArray[np.bool_]:
        return np.asarray(self.criterion.best_orders[0] > 0)

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
