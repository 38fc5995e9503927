"""The squared loss l_u(f) = Σ_j (w_uj/2)(f_j - y_uj)²: both blocks are ridge systems in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.best_offsets import best_offsets
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.normal_equations import solve_ridges
from rankopt.collaborative.problem import Problem, Standing
from rankopt.collaborative.row_sums import squared_loss

__all__ = ["Regression"]

Floats = NDArray[np.float64]


AT_ONCE = 1 << 18
"""Ratings that offsets are gathered for at a time."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Ridge after ridge: users for fixed items, items for fixed users."""

    problem: Problem

    convex: ClassVar[bool] = True
    proves_whole: ClassVar[bool] = True

    def at_strength(self, lam_users: float, lam_items: float) -> Regression:
        return replace(self, problem=self.problem.at_strength(lam_users, lam_items))

    def begun(self, factors: Factors) -> Standing:
        """The standing of given factors."""
        return self.at(factors)

    def value(self, factors: Factors) -> float:
        """J."""
        return self.at(factors).value

    def with_users(self, now: Standing, precision: float) -> Standing:
        """U and b_u of least J for the items as they are."""
        return self.at(self._users(now.factors))

    def with_items(self, now: Standing, precision: float) -> Standing:
        """M and b of least J for the users as they are."""
        return self.at(self._items(now.factors))

    def curvature(self, slopes: Floats) -> float:
        """Σ ψ²/w: what the heights would lose if the slopes were twice as steep, and half of it is lost already."""
        weights = self.problem.rated.weights
        return float((slopes * slopes / weights).sum() if weights.size else (slopes * slopes).sum())

    def around(self, now: Standing, precision: float) -> tuple[Standing, Standing]:
        """Where it stands, of which all is known; and after both blocks, whatever the precision."""
        return now, self.at(self._items(self._users(now.factors)))

    def offsets_only(self) -> Standing:
        """The best model without factors."""
        users, items = best_offsets(self.problem)
        return self.at(replace(self.problem.without_factors(), offsets=items, user_offsets=users))

    def _users(self, factors: Factors) -> Factors:
        problem, rated = self.problem, self.problem.rated
        left = factors.offsets[rated.columns]
        np.subtract(rated.values, left, out=left)
        found, offsets = solve_ridges(
            rated.bounds, rated.columns, left, rated.weights, factors.items, problem.of_users, problem.of_user_offsets
        )
        return replace(factors, users=found, user_offsets=offsets)

    def _items(self, factors: Factors) -> Factors:
        problem, rated = self.problem, self.problem.rated
        left = rated.values[rated.item_order]
        for begin in range(0, left.size, AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            left[part] -= factors.user_offsets[rated.item_users[part]]
            left[part] -= problem.prior[rated.columns[rated.item_order[part]]]
        weights = rated.weights[rated.item_order] if rated.weights.size else rated.weights
        found, away = solve_ridges(
            rated.item_bounds, rated.item_users, left, weights, factors.users, problem.of_items, problem.of_offsets
        )
        return replace(factors, items=found, offsets=problem.prior + away)

    def at(self, factors: Factors) -> Standing:
        """The standing of factors as they are. ψ is the weighted residual; δ_u = -Σ_j (ψ²/(2w) + ψ y), minus the
        conjugate of the loss there."""
        rated = self.problem.rated
        slopes = factors.scores(rated.bounds, rated.columns)
        loss, heights = squared_loss(rated.bounds, rated.values, rated.weights, slopes)
        return Standing.at(self.problem, factors, loss, slopes, heights)
