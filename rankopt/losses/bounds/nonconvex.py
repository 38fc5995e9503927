"""The nonconvex bound: the reference is what the scores like most [ORM, eq. 22]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.argmax import Argmax

__all__ = ["Nonconvex"]


@dataclass(frozen=True)
class Nonconvex:
    """H(s) + best - max over all y of r(y)ᵀs: convex minus convex, the tightest of the three bounds."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: Argmax, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return argmax.by_score(scores)
