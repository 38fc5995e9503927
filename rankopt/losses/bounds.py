"""Bounds of the regret, by their reference [ORM, eq. 20 to 22].

Convex: the reference does not depend on the scores. Tie-aware: the highest-scoring of all measure-optimal outputs.
Nonconvex: the highest-scoring output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from formulations.arrays import Floats
from rankopt.losses.oracle import MaxOracle


@dataclass(frozen=True)
class Convex:
    """H(s) + best - r̄ᵀs, with r̄ of a fixed measure-optimal y, or a mean of several.

    reference: a name that the feature map accepts. "average" is the mean of all optimal y and does not depend on the
        input order. Rankings also accept "first": equal gains in input order, as in the papers. Pairs accept "ideal":
        all better documents first. None selects "ideal" where the map has it, else "average".
    """

    reference: str | None = None
    convex: ClassVar[bool] = True

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.mean_of_best() if self.reference is None else argmax.mean_of_best(self.reference)


@dataclass(frozen=True)
class TieAware:
    """H(s) + best - max over the y of greatest gain of r(y)ᵀs: convex minus convex."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.best_then_score(scores)


@dataclass(frozen=True)
class Nonconvex:
    """H(s) + best - max over all y of r(y)ᵀs: convex minus convex, the tightest of the three bounds."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.top_scoring(scores)
