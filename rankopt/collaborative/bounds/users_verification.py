"""Users of another penalty than that of the training, checked from the ratings: whether they are worth it.

The bounds of a model are of the users that it was trained with. Those that its scores use may have been solved once
more for the same items at λ_U of their own; then Σ_u v_u l_u + (λ_U/2)‖U‖² (+ (κ/2)‖b_u‖²) must be no more with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.bounds.loss_verification import SlowLoss
from rankopt.collaborative.bounds.verification import ALLOWED, Claim, costs_of, loss_of
from rankopt.collaborative.factors import Factors
from rankopt.data.ratings.table import Ratings

__all__ = ["UsersClaim", "unlike_users"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UsersClaim:
    """The factors that scores use, λ_u (n,) of their users, and whether these are those of the training."""

    factors: Factors
    of_users: Floats
    trained: bool


def unlike_users(
    claim: Claim, users: UsersClaim, ratings: Ratings, loss: SlowLoss, weights: Floats | None = None
) -> Iterator[str]:
    """What is wrong with users, in words, beside the claim of the training and on its ratings."""
    own, trained = users.factors, claim.factors
    if not (np.isfinite(own.users).all() and np.isfinite(own.user_offsets).all()):
        yield "user factors or offsets are not all finite"
        return
    same = np.array_equal(own.users, trained.users)
    if claim.of_user_offsets is not None:  # else there are none
        same = same and np.array_equal(own.user_offsets, trained.user_offsets)
    if users.trained:
        if not same:
            yield "users are not those of the training, though user_strength_ = strength_ says so"
        return
    if same:
        yield "users are those of the training, though user_strength_ is not strength_"
        return

    def cost(factors: Factors) -> float:
        there: Any = replace(claim, factors=factors, of_users=users.of_users)
        return loss_of(factors, ratings, loss, weights) + costs_of(there)[0]

    with np.errstate(over="ignore", invalid="ignore"):
        found, before = cost(own), cost(trained)
    if not found <= before + ALLOWED * abs(before):
        yield f"users cost {found:.8g} at user_strength_, those of the training {before:.8g}: they are not its best"
