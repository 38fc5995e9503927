"""The tie-aware bound: the reference is the best of all that are best for the measure [ORM, eq. 21]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.argmax import Argmax

__all__ = ["TieAware"]


@dataclass(frozen=True)
class TieAware:
    """H(s) + best - max over the y of greatest gain of r(y)ᵀs: convex minus convex."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: Argmax, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return argmax.best_by_score(scores)
