"""The convex bound: the reference never follows the scores [ORM, eq. 20].

The tie-aware bound: the reference is the best of all that are best for the measure [ORM, eq. 21].

The nonconvex bound: the reference is what the scores like most [ORM, eq. 22].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.oracle import MaxOracle


@dataclass(frozen=True)
class Convex:
    """H(s) + best - r̄ᵀs, r̄ of a fixed y (or a mean of such) that is best for the measure.

    reference: which one, a word that the feature map knows: "average", the mean of all that are best, so that the order
        of the input does not matter; for rankings also "first", equal gains in the order of the input, as in the
        papers; for pairs "ideal", all better documents first. None is what fits the map: "ideal" where it knows
        that, else "average".
    """

    reference: str | None = None
    convex: ClassVar[bool] = True

    def __call__(self, argmax: MaxOracle, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return argmax.mean_of_best() if self.reference is None else argmax.mean_of_best(self.reference)


@dataclass(frozen=True)
class TieAware:
    """H(s) + best - max over the y of greatest gain of r(y)ᵀs: convex minus convex."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return argmax.best_then_score(scores)


@dataclass(frozen=True)
class Nonconvex:
    """H(s) + best - max over all y of r(y)ᵀs: convex minus convex, the tightest of the three bounds."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return argmax.top_scoring(scores)
