"""Slots that have weights of their own: a score a slot for each document [ORM, section 7.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.scorers.linear import Linear, linear_scores
from rankopt.scorers.validation import check_slots, check_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slots:
    """s_ij = ⟨w_j, x_i⟩ for slot j, w being (slots, d) in a row."""

    linear: Linear
    slots: int

    @property
    def dimensions(self) -> int:
        return self.linear.dimensions * self.slots

    @property
    def features(self) -> Any:
        return self.linear.features

    def with_features(self, features: Any) -> Slots:
        return Slots(self.linear.with_features(features), self.slots)

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        check_weights(w, self.dimensions, self.slots)
        return np.stack([self.linear.scores(own, first, last) for own in w.reshape(self.slots, -1)], axis=1)

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        for r in slopes:
            check_slots(r, self.slots)
        by_slot = [
            self.linear.pull(tuple(np.ascontiguousarray(r[:, j]) for r in slopes), bounds) for j in range(self.slots)
        ]
        return tuple(np.hstack(part) for part in zip(*by_slot, strict=True))


def slot_scores(features: Any, coef: Floats) -> Floats:
    """(N, k) the score of each document for each slot."""
    return np.stack([linear_scores(features, own) for own in coef], axis=1)
