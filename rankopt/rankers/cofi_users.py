"""Users that are solved once more for the items found, at a penalty of their own: the relaxed lasso's second step.

What shrinks a model until its noise is gone shrinks what is good in it too. Once items are found, users have few
numbers each, and may be pulled to 0 less than they were while items were looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.alternation import AlternationResult
from rankopt.collaborative.best_users import best_users, users_alone
from rankopt.collaborative.blocks.user_loss import UserLoss
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.strength import LONG, RELAXED, USUAL, RegularizationChoice

__all__ = ["UserRefit", "UserRefitMixin"]

EQUAL = 1e-12
"""λ that differ by no more than rounding are one."""


@dataclass(frozen=True, eq=False)
class UserRefit:
    """ρ_U, the standing with users of that strength and its dual state, by how much of what users cost they may be
    above the best, and their measure on eval_set, NaN without one."""

    strength: float
    standing: ModelState
    gap: float
    judged: float


class UserRefitMixin:
    """What `user_strength` asks for, and λ_U of the users that there are."""

    user_strength: Any
    lam_: float
    lam_max_: float
    strength_: float
    user_strength_: float
    _tol: Any

    def _asked_of_users(
        self, loss: UserLoss, chosen: RegularizationChoice | None, counts: NDArray[np.int64]
    ) -> float | None:
        """ρ_U, None where users stay those of the training. counts: of the ratings of those who tell an order."""
        if not isinstance(self.user_strength, str):
            return None if self.user_strength is None else float(self.user_strength)
        if chosen is None or loss.sees_levels or not loss.convex:
            return None
        long, strong = np.median(counts) >= LONG, chosen.strength >= USUAL["orders"]
        return RELAXED * chosen.strength if long and strong else None

    @property
    def _lam_of_users(self) -> float:
        """λ_U of `user_factors_`."""
        same = self.user_strength_ == self.strength_
        return self.lam_ if same else self.user_strength_ * (self.lam_max_ or 1.0)

    def _relaxed(
        self,
        blocks: Any,
        done: AlternationResult,
        asked: float | None,
        lam_max: float,
        judge: Callable[..., float] | None,
    ) -> UserRefit | None:
        """The best users at λ_U = ρ_U λ_max for the items of a run. None where no ρ_U is asked for; where there are no
        factors, or λ_U is that of the run; where nothing is gained; and where eval_set says that they are worse."""
        best, lam = done.best.factors, blocks.problem.lam_users
        if asked is None or not (lam_max and best.items.any()) or math.isclose(asked * lam_max, lam, rel_tol=EQUAL):
            return None
        others = blocks.at_strength(asked * lam_max, lam)
        start = others.at(best)
        found = best_users(others, start, self._tol)
        if not found.value < start.value:
            return None
        judged = math.nan if judge is None else judge(found)
        cost, bound = users_alone(others.problem, found)
        gap = (cost - bound) / cost if cost > 0.0 else math.inf
        return None if judged < done.judged else UserRefit(asked, others.whole(found), gap, judged)
