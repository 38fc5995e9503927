"""Users of another penalty than that of the training, checked from the ratings.

The bounds of a model are of the users that it was trained with. Those that its scores use may have been solved once
more for the same items at λ_U of their own; then Σ_u v_u l_u + (λ_U/2)‖U‖² (+ (κ/2)‖b_u‖²) must be no more with them,
and above what their own dual state proves by no more than the gap that is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.bounds.loss_verification import SlowLoss
from rankopt.collaborative.bounds.verification import (
    ALLOWED,
    VerifiedClaim,
    blocks_of,
    costs_of,
    drawn_users,
    loss_of,
    planes_above,
)  # fmt: skip
from rankopt.collaborative.factors import Factors
from rankopt.data.ratings.table import Ratings

__all__ = ["UsersClaim", "unlike_users"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UsersClaim:
    """The factors that scores use, λ_u (n,) of their users, whether these are those of the training, and if not their
    dual state, slopes (ratings,) and heights (n,), and their gap, a part of what they cost."""

    factors: Factors
    of_users: Floats
    trained: bool
    dual: tuple[Floats, Floats]
    gap: float


def unlike_users(
    claim: VerifiedClaim, users: UsersClaim, ratings: Ratings, loss: SlowLoss, weights: Floats | None = None,
    planes: int = 50, seed: int = 0,
) -> Iterator[str]:  # fmt: skip
    """What is wrong with users, in words, beside the claim of the training and on its ratings; planes, seed: as in
    `verify_factors`."""
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

    slopes, heights = users.dual
    if slopes.shape != (ratings.n_ratings,) or heights.shape != (ratings.n_users,):
        yield "users of another strength than that of the training have no dual state"
        return
    here = replace(claim, factors=own, of_users=users.of_users)
    with np.errstate(over="ignore", invalid="ignore"):
        found = loss_of(own, ratings, loss, weights) + costs_of(here)[0]
        before = loss_of(trained, ratings, loss, weights) + costs_of(replace(here, factors=trained))[0]
        of_items = costs_of(here)[1]
        least = blocks_of(here, ratings, slopes, heights)[0] - of_items
    if not found <= before + ALLOWED * abs(before):
        yield f"users cost {found:.8g} at user_strength_, those of the training {before:.8g}: they are not its best"
        return
    weight = np.ones(ratings.n_ratings) if weights is None else weights
    lists = zip(ratings.bounds[:-1].tolist(), ratings.bounds[1:].tolist(), strict=True)
    seen = np.array([low < high and loss.told(ratings.values[low:high]) for low, high in lists], dtype=bool)
    able, _ = drawn_users(ratings, loss, seen, planes, seed)
    yield from planes_above("relaxed users'", slopes, heights, ratings, seen, able, loss, weight)[1]
    most = users.gap * abs(found) + ALLOWED * (abs(found) + of_items)
    if loss.highest is not None and not found - least <= most:
        yield f"users cost {found:.8g}, of which {least:.8g} is proved to be needed: more than user_gap_ apart"
