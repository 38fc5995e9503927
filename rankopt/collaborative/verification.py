"""Verify a factor model from the ratings and its dual states, by code independent of training.

J            user by user by a slow way (`loss_verification`), penalties by plain sums
dual state   of drawn users, whether the plane δ + ⟨ψ, f⟩ lies below the loss: its height against that of the highest
             plane of this slope, a linear program
blocks       the closed minima over U (and b_u) and over M, b of what the planes leave
global       the bound for factors of every width:
    sums         each column and row of Ψ by `math.fsum`, correctly rounded, its last digit put against the claim
    value        θ (Σδ + b⁰ᵀs) - (θ²/2)(Σ s²/λ_b + Σ (Ψ1)²/κ + curvature) in rational numbers
    ‖Ψ‖₂         G = QDQᵀ + R for whatever Q, D LAPACK's symmetric eigenproblem gives: ‖G‖₂ <= max D ‖Q‖₂² + ‖R‖_F and
                 ‖Q‖₂² <= 1 + ‖QᵀQ - I‖_F; no factor, no iteration. What rounding takes from the products is added.
                 Where the smaller side is too wide, max (|Ψ|ᵀ|Ψ|x)_j / x_j in longer numbers, x > 0 whatever it is

So an error in the computation of the bound, or in its rounding analysis, would be detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum, inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Shorts, generator
from formulations.display import CompactReprMixin
from rankopt.collaborative.global_bound import GlobalBound
from rankopt.collaborative.loss_verification import SlowLoss
from rankopt.collaborative.problem import Factors
from rankopt.optimize.certificate import Certificate
from rankopt.ratings.table import Ratings

ALLOWED = 1e-6  # by how much numbers may be worse than claimed, as a part of J


@dataclass(frozen=True, eq=False)
class VerifiedClaim:
    """Claims of a model: its factors, in the order of the ratings, the penalties λ_u (n,), λ_j (m,), μ_j (m,)
    (infinite: b is b⁰), κ_u (n,) or None, b⁰ (m,), the dual states of both blocks, and the certificate."""

    factors: Factors
    of_users: Floats
    of_items: Floats
    of_offsets: Floats
    of_user_offsets: Floats | None
    prior: Floats
    duals: Sequence[tuple[Floats, Floats]]
    certificate: Certificate


@dataclass(frozen=True)
class VerifiedFactors(CompactReprMixin):
    """primal, users, items, bound: J, the bounds of both blocks and the global bound, as recomputed here; NaN if no
    global bound is claimed. planes: how many users' planes were checked; worst: the largest excess over the
    highest plane below the loss. wrong: what is not as claimed, in words; empty where all holds."""

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
        text = f"J = {self.primal:.8g}, users' block >= {self.users:.8g}, items' block >= {self.items:.8g}"
        text += "" if np.isnan(self.bound) else f", the whole >= {self.bound:.8g}"
        text += f", planes of {self.planes} of {self.of} users checked"
        text += f" ({self.too_long} of the drawn lists are too long for it)" if self.too_long else ""
        return f"{text}: {'all as claimed' if self.holds else '; '.join(self.wrong)}"


def verify_factors(
    claim: VerifiedClaim, ratings: Ratings, loss: SlowLoss, weights: Floats | None = None, planes: int = 50,
    seed: int = 0,
) -> VerifiedFactors:  # fmt: skip
    """Check the claims of a model. ratings, weights: those it was trained on. planes: of how many users,
    drawn with this seed, the planes are checked, of a squared loss of all. Lists whose program is too large (about
    1,100 ratings of five grades under a loss of pairs, 4,000 under a measure) are counted as `too_long`; where there
    are no others nothing holds."""
    weight = np.ones(ratings.n_ratings) if weights is None else weights
    broken = _not_finite(claim)
    if broken:
        return VerifiedFactors(np.nan, -np.inf, -np.inf, np.nan, 0, np.nan, broken)
    lists = [slice(*ratings.bounds[u : u + 2].tolist()) for u in range(ratings.n_users)]
    seen = np.array([rows.stop > rows.start and loss.has_order(ratings.values[rows]) for rows in lists], dtype=bool)
    factors, claimed, wrong = claim.factors, claim.certificate, []
    with np.errstate(over="ignore", invalid="ignore"):
        primal = float(sum(costs_of(claim)))
        primal = primal + loss_of(factors, ratings, loss, weights) if np.isfinite(primal) else np.inf
    if not np.isfinite(primal):  # beyond what numbers hold, where no comparison finds anything
        return VerifiedFactors(np.inf, -np.inf, -np.inf, np.nan, 0, np.nan, (f"J is inf, not {claimed.primal:.8g}",))
    scale = max(abs(primal), 1e-300)
    if not abs(primal - claimed.primal) <= ALLOWED * scale:
        wrong.append(f"J is {primal:.8g}, not {claimed.primal:.8g}")
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
    for name, found, text in (("users'", users, claimed.users), ("items'", items, claimed.items)):
        if not text <= found + ALLOWED * scale:
            wrong.append(f"the {name} block is bounded by {found:.8g}, not {text:.8g}")
    global_bound = np.nan
    if claimed.kind == "global":
        penalties, proofs = (claim.of_users, claim.of_items, claim.of_offsets, claim.of_user_offsets), []
        for slopes, heights in claim.duals:
            curvature = float((slopes * slopes / weight).sum()) if loss.squared else 0.0
            table, height = _table(ratings, slopes), float(heights.sum()) + curvature / 2.0
            proofs.append(verify_global_bound(None, table, height, claim.prior, *penalties, curvature=curvature))
        proven = max(proofs, key=lambda one: one.value)
        global_bound = proven.value
        if claimed.proof == "cholesky" and not claimed.singular >= (1.0 - ALLOWED) * proven.norm:
            wrong.append(f"the largest singular value is {proven.norm:.8g}, not at most {claimed.singular:.8g}")
        if not claimed.bound <= global_bound + ALLOWED * scale:
            wrong.append(f"the whole is bounded by {global_bound:.8g}, not {claimed.bound:.8g}")
    return VerifiedFactors(primal, users, items, global_bound, checked, worst, tuple(wrong), int(seen.sum()), too_long)


def all_pairs(
    claim: VerifiedClaim, ratings: Ratings, weights: Floats | None, unrated: float
) -> tuple[VerifiedClaim, Ratings, Floats | None]:
    """The same of all pairs of users with ratings and items, where those without a rating are ratings of 0 of this
    weight; unchanged if it is 0. The slopes of a dual state are then S + α F; claimed are S, of the ratings, and F."""
    if not unrated:
        return claim, ratings, weights
    sizes, m = np.diff(ratings.bounds), ratings.n_items
    users = np.repeat(np.flatnonzero(sizes).astype(np.int32), m)
    items = np.tile(np.arange(m, dtype=np.int32), np.count_nonzero(sizes))
    rank = np.cumsum(sizes > 0) - 1
    at = rank[ratings.user_of()] * m + ratings.columns
    values, weight = np.zeros(users.size), np.full(users.size, unrated)
    values[at], weight[at] = ratings.values, 1.0 if weights is None else weights
    full = Ratings.from_indices(ratings.users, users, ratings.items, items, values)
    slopes = unrated * _scores(claim.factors, full)
    duals = [(slopes + np.bincount(at, own, slopes.size), heights) for own, heights in claim.duals]
    return replace(claim, duals=duals), full, weight


def planes_above(
    name: str, slopes: Floats, heights: Floats, ratings: Ratings, seen: Bools, users: list[int],
    loss: SlowLoss, weight: Floats,
) -> tuple[float, list[str]]:  # fmt: skip
    """By how much planes of these users exceed the loss, at most, and what is wrong with a dual state in words."""
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


def drawn_users(ratings: Ratings, loss: SlowLoss, seen: Bools, planes: int, seed: int) -> tuple[list[int], int]:
    """The users whose planes are checked, and how many others were drawn whose programs are too large."""
    if loss.highest is None:
        return [], 0
    some = np.flatnonzero(seen)
    some = some if loss.squared else generator("seed", seed).permutation(some)[:planes]
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
        if low < high and loss.has_order(y):
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


def _table(ratings: Ratings, slopes: Floats) -> Any:
    return csr_array((slopes, ratings.columns, ratings.bounds), shape=(ratings.n_users, ratings.n_items))


Indices = NDArray[Any]

ALLOWED_BOUND = 1e-8  # by how much what is claimed may lie above what is found here, as a part of the terms
WIDEST = 5000

BLOCK = 1 << 12


@dataclass(frozen=True)
class VerifiedBound:
    """value: the bound as it was found here, at the shrinking that this norm allows; norm: of Ψ in the units of the
    regularizer, from above; holds: whether the claim is no more than that."""

    holds: bool
    value: float
    norm: float

    def __bool__(self) -> bool:
        return self.holds


def verify_global_bound(
    claimed: GlobalBound | None, psi: csr_array, height: float, prior: ArrayLike, lam_users: ArrayLike,
    lam_items: ArrayLike, lam_offsets: ArrayLike = inf, lam_user_offsets: ArrayLike | None = None, *,
    curvature: float = 0.0, widest: int = WIDEST,
) -> VerifiedBound:  # fmt: skip
    """Whether no more is claimed than this dual state proves; None claims nothing and asks for the best bound. The
    other arguments are those of `global_bound`."""
    entries = psi.tocoo()
    users, items = entries.shape
    rows, columns, slopes = entries.row, entries.col, entries.data.astype(np.float64)
    linear, square = Fraction(float(height)), Fraction(float(curvature))
    size = abs(linear)
    for index, count, penalty, pull in (
        (columns, items, lam_offsets, np.broadcast_to(np.asarray(prior, dtype=np.float64), items)),
        (rows, users, lam_user_offsets, np.zeros(users)),
    ):
        if penalty is None:
            continue
        costs = np.broadcast_to(np.asarray(penalty, dtype=np.float64), count)
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], np.arange(count + 1))
        for one in range(count):
            total = fsum(slopes[order[cuts[one] : cuts[one + 1]]].tolist())
            ends = [Fraction(nextafter(total, way)) for way in (-inf, inf)]
            towards = Fraction(float(pull[one]))
            linear += min(towards * end for end in ends)
            size += abs(towards * Fraction(total))
            if np.isfinite(costs[one]):
                square += max(end * end for end in ends) / Fraction(float(costs[one]))
    of_users = np.broadcast_to(np.asarray(lam_users, dtype=np.longdouble), users)
    of_items = np.broadcast_to(np.asarray(lam_items, dtype=np.longdouble), items)
    units = np.sqrt(of_users[rows] * of_items[columns])
    norm = _norm(rows, columns, (slopes / units).astype(np.float64), (users, items), widest)
    most = 1 / Fraction(norm) if norm > 0 else Fraction(1)
    most = most if curvature else min(most, Fraction(1))
    # The bound is θ linear - θ² square / 2 for 0 <= θ <= most; size: of the terms of linear.
    if claimed is None:
        theta = min(max(Fraction(0), linear / square) if square else most, most)
        value = max(Fraction(0), theta * linear - theta * theta * square / 2)
        return VerifiedBound(True, float(value), norm)
    theta = min(Fraction(float(claimed.shrink)), most)
    value = theta * linear - theta * theta * square / 2
    allowed = Fraction(ALLOWED_BOUND) * (theta * size + theta * theta * square)
    return VerifiedBound(Fraction(float(claimed.value)) <= value + allowed, float(value), norm)


def _norm(rows: Indices, columns: Indices, data: Floats, shape: tuple[int, int], widest: int) -> float:
    """Not below the largest singular value."""
    if not data.size or not data.any():
        return 0.0
    if min(shape) > widest:
        return _by_sizes(rows, columns, np.abs(data).astype(np.longdouble), shape)
    long, short = (rows, columns) if shape[0] >= shape[1] else (columns, rows)
    order = np.argsort(long, kind="stable")
    gram = np.zeros((min(shape), min(shape)))
    for begin in range(0, max(shape), BLOCK):
        low, high = np.searchsorted(long[order], [begin, begin + BLOCK])
        here, part = order[low:high], np.zeros((BLOCK, min(shape)))
        part[long[here] - begin, short[here]] = data[here]
        gram += part.T @ part
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    apart = float(np.linalg.norm(gram - (vectors * values) @ vectors.T))
    skew = float(np.linalg.norm(vectors.T @ vectors - np.eye(values.size)))
    # Products of m or n terms: G loses u m ‖Ψ‖_F², QDQᵀ loses u n Σ|D| = u n ‖Ψ‖_F², and QᵀQ u n ‖Q‖_F² = u n².
    n, unit = values.size, 2.0**-52
    lost = unit * (max(shape) + n + 16.0) * float(data @ data) * (1.0 + 1e-9)
    highest = float(values[-1]) * (1.0 + skew + unit * n * (n + 16.0)) + apart * (1.0 + unit * n * n) + lost
    return sqrt(highest * (1.0 + 1e-14))


def _by_sizes(rows: Shorts, columns: Shorts, sizes: NDArray[np.longdouble], shape: tuple[int, int]) -> float:
    """max over columns j of (|Ψ|ᵀ|Ψ|x)_j / x_j, x from a few turns of the same."""

    def added(index: Indices, terms: NDArray[np.longdouble], count: int) -> NDArray[np.longdouble]:
        order = np.argsort(index, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(index[order]) > 0))
        found = np.zeros(count, dtype=np.longdouble)
        found[index[order][starts]] = np.add.reduceat(terms[order], starts)
        return found

    x, least = np.ones(shape[1], dtype=np.longdouble), np.inf
    for _ in range(32):
        y = added(columns, sizes * added(rows, sizes * x[columns], shape[0])[rows], shape[1])
        least = min(least, float((y / x).max()) * (1.0 + 1e-11))
        x = np.maximum(y / y.max(), 1e-9)
    return sqrt(least) * (1.0 + 1e-14)
