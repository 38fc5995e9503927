"""A whole model of factors checked from the ratings and the dual states that it holds, sharing nothing with training.

J            user by user by a slow way (`loss_verification`), penalties by plain sums
dual state   of drawn users, whether the plane δ + ⟨ψ, f⟩ lies below the loss: its height against that of the highest
             plane of this slope, a linear program
blocks       the closed minima over U (and b_u) and over M, b of what the planes leave
whole        the bound for factors of every width, by `bound_verification`

Users of another penalty than that of the training, checked from the ratings.

The bounds of a model are of the users that it was trained with. Those that its scores use may have been solved once
more for the same items at λ_U of their own; then Σ_u v_u l_u + (λ_U/2)‖U‖² (+ (κ/2)‖b_u‖²) must be no more with them,
and above what their own dual state proves by no more than the gap that is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.display import CompactReprMixin
from rankopt.collaborative.bound_verification import VerifiedBound, proven_bound
from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.loss_verification import SlowLoss
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]

ALLOWED = 1e-6
"""By how much numbers may be worse than claimed, as a part of J."""


@dataclass(frozen=True, eq=False)
class VerifiedClaim:
    """What a model says of itself: its factors, in the order of the ratings, the penalties λ_u (n,), λ_j (m,), μ_j (m,)
    (infinite: b is b⁰), κ_u (n,) or None, b⁰ (m,), the dual states of the users' block and the items', and the
    certificate."""

    factors: Factors
    of_users: Floats
    of_items: Floats
    of_offsets: Floats
    of_user_offsets: Floats | None
    prior: Floats
    duals: Sequence[tuple[Floats, Floats]]
    certificate: FactorCertificate


@dataclass(frozen=True)
class VerifiedFactors(CompactReprMixin):
    """primal, users, items, bound: J, the bounds of both blocks and of the whole, as they were found here; NaN where no
    bound of the whole is claimed. planes: how many users' planes were checked; worst: by how much one stands above the
    highest that lies below the loss. wrong: what is not as claimed, in words; empty where all holds."""

    primal: float
    users: float
    items: float
    bound: float
    planes: int
    worst: float
    wrong: tuple[str, ...]
    of: int = 0
    too_long: int = 0

    @property
    def holds(self) -> bool:
        return not self.wrong

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        told = f"J = {self.primal:.8g}, users' block >= {self.users:.8g}, items' block >= {self.items:.8g}"
        told += "" if np.isnan(self.bound) else f", the whole >= {self.bound:.8g}"
        told += f", planes of {self.planes} of {self.of} users checked"
        told += f" ({self.too_long} of the drawn lists are too long for it)" if self.too_long else ""
        return f"{told}: {'all as claimed' if self.holds else '; '.join(self.wrong)}"


def verify_factors(
    claim: VerifiedClaim,
    ratings: Ratings,
    loss: SlowLoss,
    weights: Floats | None = None,
    planes: int = 50,
    seed: int = 0,
) -> VerifiedFactors:
    """Whether a model is as good as it says. ratings, weights: those it was trained on. planes: of how many users,
    drawn with this seed, the planes are checked, of a squared loss of all. Lists whose program is too large (about
    1,100 ratings of five grades under a loss of pairs, 4,000 under a measure) are counted as `too_long`; where there
    are no others nothing holds."""
    weight = np.ones(ratings.n_ratings) if weights is None else weights
    broken = _not_finite(claim)
    if broken:
        return VerifiedFactors(np.nan, -np.inf, -np.inf, np.nan, 0, np.nan, broken)
    lists = [slice(*ratings.bounds[u : u + 2].tolist()) for u in range(ratings.n_users)]
    seen = np.array([rows.stop > rows.start and loss.told(ratings.values[rows]) for rows in lists], dtype=bool)
    factors, said, wrong = claim.factors, claim.certificate, []
    with np.errstate(over="ignore", invalid="ignore"):
        primal = float(sum(costs_of(claim)))
        primal = primal + loss_of(factors, ratings, loss, weights) if np.isfinite(primal) else np.inf
    if not np.isfinite(primal):  # beyond what numbers hold, where no comparison finds anything
        return VerifiedFactors(np.inf, -np.inf, -np.inf, np.nan, 0, np.nan, (f"J is inf, not {said.primal:.8g}",))
    scale = max(abs(primal), 1e-300)
    if not abs(primal - said.primal) <= ALLOWED * scale:
        wrong.append(f"J is {primal:.8g}, not {said.primal:.8g}")
    able, too_long = drawn_users(ratings, loss, seen, planes, seed)
    checked, worst = 0, 0.0
    for name, (slopes, heights) in zip(("users'", "items'"), claim.duals, strict=True):
        above, more = planes_above(name, slopes, heights, ratings, seen, able, loss, weight)
        worst = max(worst, above)
        wrong += more
        if loss.highest is None:
            continue
        checked = len(able)
        if too_long and not able:
            wrong.append(f"no plane of the {name} dual state could be checked: all drawn lists are too long")
    bounds = [blocks_of(claim, ratings, *dual) for dual in claim.duals]
    users, items = bounds[0][0], max(both[1] for both in bounds)
    for name, found, told in (("users'", users, said.users), ("items'", items, said.items)):
        if not told <= found + ALLOWED * scale:
            wrong.append(f"the {name} block is bounded by {found:.8g}, not {told:.8g}")
    whole = np.nan
    if said.kind == "global":
        proven = max((_whole(claim, ratings, loss, weight, *dual) for dual in claim.duals), key=lambda one: one.value)
        whole = proven.value
        if said.proof == "cholesky" and not said.singular >= (1.0 - ALLOWED) * proven.norm:
            wrong.append(f"the largest singular value is {proven.norm:.8g}, not at most {said.singular:.8g}")
        if not said.bound <= whole + ALLOWED * scale:
            wrong.append(f"the whole is bounded by {whole:.8g}, not {said.bound:.8g}")
    return VerifiedFactors(primal, users, items, whole, checked, worst, tuple(wrong), int(seen.sum()), too_long)


def planes_above(
    name: str, slopes: Floats, heights: Floats, ratings: Ratings, seen: NDArray[np.bool_], users: list[int],
    loss: SlowLoss, weight: Floats,
) -> tuple[float, list[str]]:  # fmt: skip
    """By how much planes of these users stand above the loss, at most, and what is wrong with a dual state in words."""
    wrong, worst = [], 0.0
    if any(heights[~seen]) or any(slopes[np.repeat(~seen, np.diff(ratings.bounds))]):
        wrong.append(f"the {name} dual state says something of users who order nothing")
    highest = loss.highest
    for u in users if highest is not None else ():
        assert highest is not None
        rows = slice(*ratings.bounds[u : u + 2].tolist())
        above = float(heights[u]) - highest(ratings.values[rows], slopes[rows], weight[rows])
        worst = max(worst, above)
        if above > ALLOWED * (1.0 + abs(float(heights[u]))):
            wrong.append(f"the {name} plane of user {ratings.users.item(u)!r} stands {above:.3g} above the loss")
            break
    return worst, wrong


def drawn_users(
    ratings: Ratings, loss: SlowLoss, seen: NDArray[np.bool_], planes: int, seed: int
) -> tuple[list[int], int]:
    """The users whose planes are checked, and how many were drawn besides whose programs are too large."""
    if loss.highest is None:
        return [], 0
    some = np.flatnonzero(seen)
    some = some if loss.squared else np.random.default_rng(seed).permutation(some)[:planes]
    able = [u for u in some.tolist() if loss.able(ratings.values[ratings.bounds[u] : ratings.bounds[u + 1]])]
    return able, some.size - len(able)


def _not_finite(claim: VerifiedClaim) -> tuple[str, ...]:
    """Which parts of a claim hold what is no number: no comparison would find them."""
    factors, both = claim.factors, dict(zip(("users'", "items'"), claim.duals, strict=True))
    parts = {
        "user factors": factors.users, "item factors": factors.items, "item offsets": factors.offsets,
        "user offsets": factors.user_offsets, "priors": claim.prior,
        **{f"slopes of the {name} dual state": slopes for name, (slopes, _) in both.items()},
        **{f"heights of the {name} dual state": heights for name, (_, heights) in both.items()},
    }  # fmt: skip
    return tuple(f"{name} are not all finite" for name, array in parts.items() if not np.isfinite(array).all())


def loss_of(factors: Factors, ratings: Ratings, loss: SlowLoss, weights: Floats | None = None) -> float:
    """Σ_u v_u l_u, infinite where scores are beyond what numbers hold. weights: of the ratings."""
    scores, total = _scores(factors, ratings), 0.0
    if not np.isfinite(scores).all():
        return np.inf
    for low, high in zip(ratings.bounds[:-1].tolist(), ratings.bounds[1:].tolist(), strict=True):
        y, weight = ratings.values[low:high], np.ones(high - low) if weights is None else weights[low:high]
        if low < high and loss.told(y):
            total += float(loss.value(y, scores[low:high], weight))
    return total


def _scores(factors: Factors, ratings: Ratings) -> Floats:
    rows, columns = ratings.user_of(), ratings.columns
    found = factors.offsets[columns] + factors.user_offsets[rows]
    for d in range(factors.items.shape[1]):  # one factor at a time: no table of ratings × factors
        found = found + factors.users[rows, d] * factors.items[columns, d]
    return np.asarray(found)


def costs_of(claim: VerifiedClaim) -> tuple[float, float]:
    """What U, b_u cost, and M, b."""
    factors, away = claim.factors, claim.factors.offsets - claim.prior
    moved = np.isfinite(claim.of_offsets)
    users = float((claim.of_users[:, None] * factors.users**2).sum()) / 2.0
    if claim.of_user_offsets is not None:
        users += float(claim.of_user_offsets @ factors.user_offsets**2) / 2.0
    items = float((claim.of_items[:, None] * factors.items**2).sum()) / 2.0
    return users, items + float(claim.of_offsets[moved] @ away[moved] ** 2) / 2.0


def blocks_of(claim: VerifiedClaim, ratings: Ratings, slopes: Floats, heights: Floats) -> tuple[float, float]:
    """Lower bounds of J over U, b_u for these M, b, and over M, b for these U, b_u."""
    psi, factors = _table(ratings, slopes), claim.factors
    by_user, by_item = np.asarray(psi.sum(axis=1)).ravel(), np.asarray(psi.sum(axis=0)).ravel()
    of_u, of_m = costs_of(claim)
    steep = ((psi @ factors.items) ** 2).sum(axis=1) / claim.of_users
    users = heights.sum() + by_item @ factors.offsets + of_m - steep.sum() / 2.0
    if claim.of_user_offsets is not None:
        users -= (by_user**2 / claim.of_user_offsets).sum() / 2.0
    steep = ((psi.T @ factors.users) ** 2).sum(axis=1) / claim.of_items
    items = heights.sum() + by_item @ claim.prior + by_user @ factors.user_offsets + of_u - steep.sum() / 2.0
    return float(users), float(items - (by_item**2 / claim.of_offsets).sum() / 2.0)


def _whole(
    claim: VerifiedClaim, ratings: Ratings, loss: SlowLoss, weight: Floats, slopes: Floats, heights: Floats
) -> VerifiedBound:
    curvature = float((slopes * slopes / weight).sum()) if loss.squared else 0.0
    height = float(heights.sum()) + curvature / 2.0
    penalties = (claim.of_users, claim.of_items, claim.of_offsets, claim.of_user_offsets)
    return proven_bound(_table(ratings, slopes), height, claim.prior, *penalties, curvature=curvature)


def _table(ratings: Ratings, slopes: Floats) -> Any:
    return csr_array((slopes, ratings.columns, ratings.bounds), shape=(ratings.n_users, ratings.n_items))


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
