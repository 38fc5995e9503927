"""What rankings pay for the soft constraints that they break, beside the slopes by which a loss knows them.

Shown is the ranking that maximises c[π]ᵀs - price · units broken, so a reference stands in a margin with what it pays
taken off r̄ᵀs. A slope tells nothing of that. Here each slope has one number more a query, minus what its order pays,
and whatever mean of slopes a bound takes, it takes the same of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from formulations.sets.ranking_set import RankingSet

__all__ = ["PenalizedReferences", "charges_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def charges_of(sets: tuple[RankingSet, ...], rows: Ints, offsets: Ints, places: Ints) -> Floats:
    """(m,) what the order of each query, rows[places[q] : places[q + 1]] of the batch, pays in its set."""
    paid = np.zeros(len(sets))
    for q, admissible in enumerate(sets):
        if admissible.softened:
            paid[q] = admissible.charge(rows[places[q] : places[q + 1]] - offsets[q])
    return paid


@dataclass(frozen=True, eq=False)
class PenalizedReferences:
    """The references of an argmax under soft constraints, for a bound to choose from: (N + m,) a slope, and behind it
    minus what it pays in each query. All else is the argmax's own."""

    argmax: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.argmax, name)

    def best_reference(self, which: str = "average") -> Floats:
        return self._with(self.argmax.reference_rows(which), self.argmax.start, exchanged="best")

    def best_by_score(self, scores: Floats) -> Floats:
        return self._with(self.argmax.best_rows(scores), scores, exchanged="best")

    def by_score(self, scores: Floats) -> Floats:
        return self._with(self.argmax.liked_rows(scores), scores, exchanged="liked")

    def _with(self, rows: Ints, scores: Floats, exchanged: str) -> Floats:
        return np.concatenate([self.argmax.slope_of(rows, scores, exchanged), -self.argmax.charged(rows)])
