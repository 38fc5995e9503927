"""Rankings under measures that are no inner products: AP, RR with several relevant documents, ERR [paper 4, φ_dorm].

r(π) = c[π] as for every ranking; what a document earns depends on the grades above it, so the loss-augmented order is
the longest path of a lattice, not an assignment of rank two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import pattern_ranking
from formulations.forms.position_weights import laid_out
from rankopt.losses.argmax_orders import OrdersArgmax
from rankopt.losses.decay import Decay
from rankopt.losses.pattern_losses import pattern_loss_of
from rankopt.losses.positional_references import liked, liked_of_best, mean_of_best

__all__ = ["PatternArgmax"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatternArgmax(OrdersArgmax):
    """gain(π) = the measure of the pattern of grades. decay: c."""

    decay: Decay

    @cached_property
    def problem(self) -> Any:
        grades, loss = pattern_loss_of(self.criterion)
        return pattern_ranking(np.zeros(grades.size), grades, loss, decay=self._weights, offsets=self.offsets)

    def best_reference(self, which: str = "average") -> Floats:
        gain, _ = self.criterion.best_orders
        return mean_of_best(which, gain, self.weights, self.offsets)

    def best_by_score(self, scores: Floats) -> Floats:
        gain, discount = self.criterion.best_orders
        return liked_of_best(scores, gain, discount, self.weights, self.offsets)

    def by_score(self, scores: Floats) -> Floats:
        return liked(scores, self.weights, self.offsets)

    @cached_property
    def weights(self) -> Floats:
        """(N,) c of every place of every query."""
        return laid_out(self._weights, self.offsets)

    def _weights(self, n: int) -> Floats:
        return self.decay.weights(n, self.criterion.measure)
