"""New users under items that stay as they are: one small convex problem a user, solved to a proven gap.

The best users have the least Σ_u l_u + (λ_U/2)‖U‖² (+ (μ/2)‖b_u‖²). Of a convex loss that is one users' block; else one
of a majorant after the other, each touching the loss where the last one ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.parallel import threads
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import FactorProblem, ModelState
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.engines import Threads
from rankopt.errors import DataError
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]

MAX_MAJORANTS = 30
"""Convex majorants of a bound that is not convex, at most."""

MAX_CONVEX = 2
"""Solutions of a convex block, at most: where the first value was far above the best, so was its tolerance."""


@dataclass(frozen=True, eq=False)
class FoldInResult:
    """users (n, d), user_offsets (n,). value: Σ_u l_u + (λ/2)‖U‖² (+ (μ/2)‖b_u‖²); bound: what it cannot fall below for
    these items, of the majorant if `kind` is that."""

    users: Floats
    user_offsets: Floats
    value: float
    bound: float
    kind: str

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the value."""
        away = max(self.value - self.bound, 0.0)
        return away / abs(self.value) if self.value else np.inf if away else 0.0


def fold_in(
    loss: UserLoss, penalties: Penalties, lam: float, model: Factors, ratings: Ratings, weights: Floats | None = None,
    tol: float = 1e-3,
) -> FoldInResult:  # fmt: skip
    """The best users for the items of the model. ratings: over its items, in their order, with weights (n_ratings,); a
    user whose ratings tell the loss nothing has the factors 0."""
    n, d = ratings.n_users, model.dimensions
    users, user_offsets = np.zeros((n, d)), np.zeros(n)
    nothing = FoldInResult(users, user_offsets, 0.0, 0.0, "blocks")
    if not ratings.n_ratings:
        return nothing
    try:
        rated = loss.seen(EncodedRatings.from_ratings(ratings, weights))
    except DataError:  # no order to learn from
        return nothing
    problem = penalties.problem(rated).at_strength(lam, min(lam, 1.0))  # what items cost is taken off: let it be small
    items = Factors(users[rated.users], model.items[rated.items], model.offsets[rated.items], user_offsets[rated.users])
    blocks = loss.blocks(problem, Threads(threads()))  # local threads, independent of the engine of training
    found = best_users(blocks, blocks.at(items), tol)
    users[rated.users], user_offsets[rated.users] = found.factors.users, found.factors.user_offsets
    kind = "blocks" if blocks.convex else "blocks of the majorant"
    return FoldInResult(users, user_offsets, *_users_alone(problem, found), kind)


def best_users(blocks: Any, now: ModelState, tol: float) -> ModelState:
    """From a state, with its users replaced by better ones only, to a gap relative to the cost of users, or as close as
    their block gets; of a bound that is not convex until a majorant gains no more than that, or `MAX_MAJORANTS` were
    taken. Items cost the same throughout and count for nothing here."""
    cost, _ = _users_alone(blocks.problem, now)
    for _ in range(MAX_CONVEX if blocks.convex else MAX_MAJORANTS):
        found = blocks.with_users(now, 0.5 * tol * abs(cost) / (abs(now.value) or 1.0))
        before, (cost, bound) = cost, _users_alone(blocks.problem, found)
        now = found
        if (cost - bound if blocks.convex else before - cost) <= tol * abs(cost):
            break
    return now


def _users_alone(problem: FactorProblem, now: ModelState) -> tuple[float, float]:
    """What users cost, their losses with it, and what that cannot fall below for these items."""
    cost = now.lost + problem.users_penalty(now.factors)
    return cost, min(now.users - problem.items_penalty(now.factors), cost)
