"""The squared loss l_u(f) = Σ_j (w_uj/2)(f_j - y_uj)²: both blocks are ridge systems in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.blocks.best_offsets import best_offsets
from rankopt.collaborative.blocks.rated_shards import RatedShard, RidgesFor, item_shards, user_shards
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import FactorProblem, ModelState
from rankopt.collaborative.row_sums import squared_loss
from rankopt.engines.threads import Threads
from rankopt.risk.sharding import SHARD_ROWS

__all__ = ["Regression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regression:
    """Ridge after ridge: users for fixed items, items for fixed users."""

    problem: FactorProblem
    engine: Any = field(default_factory=Threads)
    known: dict[int, tuple[RatedShard, ...]] = field(default_factory=dict, repr=False)

    convex: ClassVar[bool] = True
    proves_whole: ClassVar[bool] = True

    def at_strength(self, lam_users: float, lam_items: float) -> Regression:
        return replace(self, problem=self.problem.at_strength(lam_users, lam_items))

    def begun(self, factors: Factors) -> ModelState:
        """The standing of given factors, bare."""
        return _bare(self.at(factors))

    def whole(self, now: ModelState) -> ModelState:
        """The standing with its dual state, the residuals, which take as much room as the ratings."""
        return now if now.slopes.size else self.at(now.factors)

    def value(self, factors: Factors) -> float:
        """J."""
        return self.at(factors).value

    def with_users(self, now: ModelState, precision: float) -> ModelState:
        """U and b_u of least J for the items as they are."""
        return self.at(self._users(now.factors))

    def with_items(self, now: ModelState, precision: float) -> ModelState:
        """M and b of least J for the users as they are."""
        return self.at(self._items(now.factors))

    def bend(self) -> float:
        """1: what a rating of weight 1 adds to the pull on an offset."""
        return 1.0

    def curvature(self, slopes: Floats) -> float:
        """Σ ψ²/w: what the heights would lose if the slopes were twice as steep, and half of it is lost already."""
        weights = self.problem.rated.weights
        return float((slopes * slopes / weights).sum() if weights.size else (slopes * slopes).sum())

    def around(self, now: ModelState, precision: float) -> tuple[ModelState, ModelState]:
        """Where it stands, of which all is known; and after both blocks, whatever the precision, bare."""
        return now, _bare(self.at(self._items(self._users(now.factors))))

    def offsets_only(self) -> ModelState:
        """The best model without factors."""
        users, items = best_offsets(self.problem)
        return self.at(replace(self.problem.without_factors(), offsets=items, user_offsets=users))

    def _users(self, factors: Factors) -> Factors:
        problem, none = self.problem, np.zeros(0)
        question = RidgesFor("users", factors.items, factors.offsets, none, problem.of_users, problem.of_user_offsets)
        found, offsets = self._answers(question)
        return replace(factors, users=found, user_offsets=offsets)

    def _items(self, factors: Factors) -> Factors:
        problem = self.problem
        question = RidgesFor(
            "items", factors.users, factors.user_offsets, problem.prior, problem.of_items, problem.of_offsets
        )
        found, away = self._answers(question)
        return replace(factors, items=found, offsets=problem.prior + away)

    def _answers(self, question: RidgesFor) -> tuple[Floats, Floats]:
        told = [one for one in self.engine.map(question, self._shards) if one is not None]
        return np.concatenate([one[0] for one in told]), np.concatenate([one[1] for one in told])

    @cached_property
    def _shards(self) -> tuple[RatedShard, ...]:
        """Of users and of items, at once: an engine keeps one set of shards."""
        rated, key = self.problem.rated, id(self.problem.rated)
        if key not in self.known:
            none = np.zeros(rated.n_users)
            self.known[key] = (*user_shards(rated, SHARD_ROWS, none), *item_shards(rated, SHARD_ROWS))
        return self.known[key]

    def at(self, factors: Factors) -> ModelState:
        """The standing of factors as they are. ψ is the weighted residual; δ_u = -Σ_j (ψ²/(2w) + ψ y), minus the
        conjugate of the loss there."""
        rated = self.problem.rated
        slopes = factors.scores(rated.bounds, rated.columns)
        loss, heights = squared_loss(rated.bounds, rated.values[:], rated.weights, slopes)
        return ModelState.at(self.problem, factors, loss, slopes, heights)


def _bare(now: ModelState) -> ModelState:
    """Without the dual state, which the factors determine."""
    return replace(now, slopes=np.zeros(0), heights=np.zeros(0))
