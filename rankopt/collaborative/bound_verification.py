"""A global bound checked again, sharing nothing with how it was found.

    sums      each column and row of Ψ by `math.fsum`, the correctly rounded sum, its last digit put against the claim
    value     θ (Σδ + b⁰ᵀs) - (θ²/2)(Σ s²/λ_b + Σ (Ψ1)²/κ + curvature) in rational numbers
    ‖Ψ‖₂      G = QDQᵀ + R for whatever Q, D LAPACK's symmetric eigenproblem gives: ‖G‖₂ <= max D ‖Q‖₂² + ‖R‖_F and
              ‖Q‖₂² <= 1 + ‖QᵀQ - I‖_F; no factor, no iteration. What rounding takes from the products is added. Where
              the smaller side is too wide, max (|Ψ|ᵀ|Ψ|x)_j / x_j in longer numbers, x > 0 whatever it is

So a slip in the reckoning of the bound, or in the theory of rounding there, would show here. That (Ψ, Σδ) lies below
the loss is another question: `verification` asks it of a saved ranker.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from rankopt.collaborative.global_bound import GlobalBound

Floats = NDArray[np.float64]
Places = NDArray[Any]

ALLOWED = 1e-8
"""By how much what is claimed may lie above what is found here, as a part of the terms."""

WIDEST = 5000

BLOCK = 1 << 12


@dataclass(frozen=True)
class VerifiedBound:
    """value: the bound as it was found here, at the shrinking that this norm allows; norm: of Ψ in the units of the
    regulariser, from above; holds: whether the claim is no more than that."""

    holds: bool
    value: float
    norm: float

    def __bool__(self) -> bool:
        return self.holds


def verify_global_bound(
    claimed: GlobalBound,
    psi: csr_array,
    height: float,
    prior: ArrayLike,
    lam_users: ArrayLike,
    lam_items: ArrayLike,
    lam_offsets: ArrayLike = inf,
    lam_user_offsets: ArrayLike | None = None,
    *,
    curvature: float = 0.0,
    widest: int = WIDEST,
) -> VerifiedBound:
    """Whether no more is claimed than this dual state proves; the arguments are those of `global_bound`."""
    penalties = (lam_users, lam_items, lam_offsets, lam_user_offsets)
    sums = _summed(psi, height, prior, *penalties, curvature, widest)
    theta = min(Fraction(float(claimed.shrink)), sums.most)
    value = theta * sums.linear - theta * theta * sums.square / 2
    allowed = Fraction(ALLOWED) * (theta * sums.size + theta * theta * sums.square)
    return VerifiedBound(Fraction(float(claimed.value)) <= value + allowed, float(value), sums.norm)


def proven_bound(
    psi: csr_array,
    height: float,
    prior: ArrayLike,
    lam_users: ArrayLike,
    lam_items: ArrayLike,
    lam_offsets: ArrayLike = inf,
    lam_user_offsets: ArrayLike | None = None,
    *,
    curvature: float = 0.0,
    widest: int = WIDEST,
) -> VerifiedBound:
    """The best bound that this dual state proves, found here; the arguments are those of `global_bound`."""
    penalties = (lam_users, lam_items, lam_offsets, lam_user_offsets)
    sums = _summed(psi, height, prior, *penalties, curvature, widest)
    theta = max(Fraction(0), sums.linear / sums.square) if sums.square else sums.most
    theta = min(theta, sums.most)
    value = max(Fraction(0), theta * sums.linear - theta * theta * sums.square / 2)
    return VerifiedBound(True, float(value), sums.norm)


class _Sums(NamedTuple):
    """θ linear - θ² square / 2 is a bound for 0 <= θ <= most; size: of the terms of linear."""

    linear: Fraction
    square: Fraction
    size: Fraction
    norm: float
    most: Fraction


def _summed(
    psi: csr_array,
    height: float,
    prior: ArrayLike,
    lam_users: ArrayLike,
    lam_items: ArrayLike,
    lam_offsets: ArrayLike,
    lam_user_offsets: ArrayLike | None,
    curvature: float,
    widest: int,
) -> _Sums:
    entries = psi.tocoo()
    users, items = entries.shape
    rows, columns, slopes = entries.row, entries.col, entries.data.astype(np.float64)
    linear, square = Fraction(float(height)), Fraction(float(curvature))
    size = abs(linear)
    for place, count, penalty, pull in (
        (columns, items, lam_offsets, np.broadcast_to(np.asarray(prior, dtype=np.float64), items)),
        (rows, users, lam_user_offsets, np.zeros(users)),
    ):
        if penalty is None:
            continue
        costs = np.broadcast_to(np.asarray(penalty, dtype=np.float64), count)
        order = np.argsort(place, kind="stable")
        cuts = np.searchsorted(place[order], np.arange(count + 1))
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
    return _Sums(linear, square, size, norm, most if curvature else min(most, Fraction(1)))


def _norm(rows: Places, columns: Places, data: Floats, shape: tuple[int, int], widest: int) -> float:
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


def _by_sizes(
    rows: NDArray[np.int32], columns: NDArray[np.int32], sizes: NDArray[np.longdouble], shape: tuple[int, int]
) -> float:
    """max over columns j of (|Ψ|ᵀ|Ψ|x)_j / x_j, x from a few turns of the same."""

    def added(place: Places, terms: NDArray[np.longdouble], count: int) -> NDArray[np.longdouble]:
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(place[order]) > 0))
        found = np.zeros(count, dtype=np.longdouble)
        found[place[order][starts]] = np.add.reduceat(terms[order], starts)
        return found

    x, least = np.ones(shape[1], dtype=np.longdouble), np.inf
    for _ in range(32):
        y = added(columns, sizes * added(rows, sizes * x[columns], shape[0])[rows], shape[1])
        least = min(least, float((y / x).max()) * (1.0 + 1e-11))
        x = np.maximum(y / y.max(), 1e-9)
    return sqrt(least) * (1.0 + 1e-14)
