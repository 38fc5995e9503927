"""New users under items that stay as they are: one small convex problem a user, solved to a proven gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.parallel import threads
from rankopt.collaborative.alternation import best_users, users_alone
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.engines.threads import Threads
from rankopt.errors import DataError
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FoldInResult:
    """users (n, d), user_offsets (n,). value: Σ_u l_u + (λ/2)‖U‖² (+ (μ/2)‖b_u‖²); bound: what it cannot fall below for
    these items, of the majorant where kind says so."""

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


def folded(
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
        rated = loss.seen(EncodedRatings.of(ratings, weights))
    except DataError:  # no order to learn from
        return nothing
    problem = penalties.problem(rated).at_strength(lam, min(lam, 1.0))  # what items cost is taken off: let it be small
    items = Factors(users[rated.users], model.items[rated.items], model.offsets[rated.items], user_offsets[rated.users])
    blocks = loss.blocks(problem, Threads(threads()))  # here, whoever trained: as many as are allowed
    found = best_users(blocks, blocks.at(items), tol)
    users[rated.users], user_offsets[rated.users] = found.factors.users, found.factors.user_offsets
    kind = "blocks" if blocks.convex else "blocks of the majorant"
    return FoldInResult(users, user_offsets, *users_alone(problem, found), kind)
