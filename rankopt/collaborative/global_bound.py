"""Global lower bound of the nonconvex problem, from the dual state of the convex blocks.

    J(U, M, b) = Σ_u l_u(f_u) + Σ_u (λ_u/2) ‖U_u‖² + Σ_j (μ_j/2) ‖M_j‖² + Σ_j (λ_bj/2)(b_j - b⁰_j)² (+ Σ_u (κ_u/2) b_u²)
    f_uj = ⟨U_u, M_j⟩ + b_j (+ b_u)

on the rated pairs, l_u with its weight. Let l_u(f) >= δ_u + ψ_uᵀf for all f: a mean of planes. The sum of these
planes is separable, and the minimum over each variable is known:

    U, M    ⟨Ψ, UMᵀ⟩ + ... >= 0  where ‖Λ^-½ Ψ Μ^-½‖₂ <= 1: the trace norm's dual, since ½(‖U‖² + ‖M‖²) >= ‖UMᵀ‖_*
    b       b⁰ᵀs - Σ_j s_j² / (2 λ_bj),  s = Ψᵀ1                          b_u    - Σ_u (Ψ1)_u² / (2 κ_u)

If the norm is σ > 1, or if it improves the bound, the plane is mixed with 0 + 0ᵀf, which is below every loss >= 0: Ψ
and Σδ times θ <= 1/σ. Of all such θ the best is taken:

    J >= max over 0 <= θ <= min(1, 1/σ) of θ (Σδ + b⁰ᵀs) - (θ²/2) (Σ_j s_j²/λ_bj + Σ_u (Ψ1)_u²/κ_u + curvature)

`curvature` is 0 for losses of kinks. A quadratic loss has a plane for each θψ of its own, by its conjugate: the loss
(v/2)(f - y)² lies above ψ f - ψ y - ψ²/(2v), so that Σδ is -Σ ψ y and the curvature Σ ψ²/v; there
only θ <= 1/σ is required, and θ > 1 is allowed.

Block gaps speak of one factor while the other is fixed; this bound, and it alone, speaks of all U, M of every width.
Rounding: what the sums may have lost is subtracted. `certificate_of` gives both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.arrays import Floats
from rankopt.collaborative.linear_algebra import UNIT
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.singular_value import SingularValue, largest_singular_value
from rankopt.errors import OptionError
from rankopt.optimize.certificate import Certificate, Stop

MORE = 1.0 + 1e-9  # covers what the reckoning of what is lost loses itself


@dataclass(frozen=True, eq=False)
class GlobalBound:
    """value <= J(U, M, b) for every U, M, b, of any number of factors; singular: of Ψ in the units of the regularizer,
    whose bound must not exceed 1 / shrink; shrink: θ."""

    value: float
    singular: SingularValue
    shrink: float

    def gap(self, objective: float) -> float:
        """What is left open of an objective, relative to it; infinite where the objective is 0 and the bound below."""
        open_ = max(objective - self.value, 0.0)
        return open_ / abs(objective) if objective else (inf if open_ else 0.0)

    def __str__(self) -> str:
        return f"J >= {self.value:.8g} for factors of every width, {self.singular!r}, shrunk by {self.shrink:.6g}"


def global_bound(
    psi: csr_array, height: float, prior: ArrayLike, lam_users: ArrayLike, lam_items: ArrayLike,
    lam_offsets: ArrayLike = inf, lam_user_offsets: ArrayLike | None = None, *, curvature: float = 0.0,
) -> GlobalBound:  # fmt: skip
    """The bound of a dual state.

    psi: (users, items), the slopes ψ, which carry the weights of the users. height: Σδ, with these weights. prior:
    (items,) b⁰. lam_users, lam_items: λ and μ, one number or one a user, an item. lam_offsets: λ_b, the same; infinite
    where b stays b⁰. lam_user_offsets: κ, None where there are no offsets of users. curvature: see above.
    Raises OptionError for what is not positive, or not of the shape of psi.
    """
    psi = csr_array(psi, dtype=np.float64)
    users, items = psi.shape
    of_users, of_items = _positive(lam_users, users, "lam_users"), _positive(lam_items, items, "lam_items")
    fixed = np.broadcast_to(np.asarray(prior, dtype=np.float64), (items,))
    if not (np.isfinite(fixed).all() and np.isfinite(height) and curvature >= 0):
        raise OptionError("prior and height must be finite and curvature not negative")
    rows = np.repeat(np.arange(users), np.diff(psi.indptr))
    rate = 1.0 / np.sqrt(of_users[rows] * of_items[psi.indices])
    measured = csr_array((psi.data * rate, psi.indices, psi.indptr), shape=psi.shape)
    singular = largest_singular_value(measured)
    # An entry was rounded four times: that moves the matrix by 5 u ‖Ψ‖_F at most.
    norm = singular.bound + 8.0 * UNIT * float(np.linalg.norm(measured.data)) * MORE
    most = nextafter(nextafter(1.0 / norm, 0.0), 0.0) if norm > 0 else inf
    most = most if curvature else min(1.0, most)
    linear, linear_lost, square, square_lost = height, 4.0 * UNIT * abs(height), curvature, 4.0 * UNIT * curvature
    for axis, penalty, pull in (
        (0, _positive(lam_offsets, items, "lam_offsets"), fixed),
        (1, None if lam_user_offsets is None else _positive(lam_user_offsets, users, "lam_user_offsets"), None),
    ):
        if penalty is None:
            continue
        total, lost = _sums(psi, axis)
        if pull is not None:
            linear += float(pull @ total)
            linear_lost += float(np.abs(pull) @ lost) + UNIT * (items + 8) * float(np.abs(pull) @ np.abs(total))
        square += float((total * total / penalty).sum())
        square_lost += float((((2.0 * np.abs(total) + lost) * lost) / penalty).sum())
        square_lost += UNIT * (total.size + 8) * float((total * total / penalty).sum())
    linear -= MORE * (linear_lost + 4.0 * UNIT * abs(linear))
    square += MORE * (square_lost + 4.0 * UNIT * square)
    best = linear / square if square > 0 else most
    theta = min(max(best, 0.0), most) if np.isfinite(most) else max(best, 0.0)
    value = theta * linear - 0.5 * theta * theta * square if theta > 0 else 0.0
    value -= 8.0 * UNIT * (abs(theta * linear) + theta * theta * square)
    return GlobalBound(float(value), singular, float(theta))


def _sums(psi: csr_array, axis: int) -> tuple[Floats, Floats]:
    """The sums of columns (0) or rows (1), and more than what rounding took from each."""
    by = psi.indices if axis == 0 else np.repeat(np.arange(psi.shape[0]), np.diff(psi.indptr))
    size = psi.shape[1 - axis]
    total = np.bincount(by, psi.data, size).astype(np.float64)
    terms = np.bincount(by, minlength=size)
    lost = MORE * UNIT * (terms + 2) * np.bincount(by, np.abs(psi.data), size)
    return total, np.asarray(lost, dtype=np.float64)


def _positive(value: ArrayLike, size: int, name: str) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (size,)) or np.isnan(array).any() or (array <= 0).any():
        raise OptionError(f"{name} must be positive, one number or one for each of {size}, not {value!r}")
    return np.broadcast_to(array, (size,))


def certificate_of(blocks: Any, now: ModelState, stop: Stop, compute_bound: bool = True) -> Certificate:
    """Certificate of the blocks, and the global one if requested and the loss is convex and nonnegative."""
    if not (compute_bound and blocks.has_global_bound):
        parts = {"users": now.users, "items": now.items, "singular": np.nan, "proof": "", "convex": bool(blocks.convex)}
        return Certificate("blocks", now.value, -inf, stop, parts=parts)
    found = best_bound(blocks, now)
    proof = {"singular": found.singular.bound, "proof": found.singular.proof}
    return Certificate("global", now.value, found.value, stop, parts={"users": now.users, "items": now.items, **proof})


def best_bound(blocks: Any, now: ModelState) -> GlobalBound:
    """The best bound that the dual variables of a state give."""
    now, problem = blocks.complete(now), blocks.problem
    of_offsets = problem.of_offsets if problem.of_offsets.size else np.inf
    penalties = (problem.prior, problem.of_users, problem.of_items, of_offsets)
    of_user_offsets = problem.of_user_offsets if problem.of_user_offsets.size else None
    found = []
    for slopes, heights in [(now.slopes, now.heights), *([] if now.of_items is None else [now.of_items])]:
        table = problem.rated.table(slopes)
        if problem.unrated:
            left, right = now.factors.sides()
            pairs = np.asarray(problem.unrated * (left @ right.T) + table)
            bounds = np.arange(len(left) + 1) * len(right)
            table = csr_array((pairs.ravel(), np.tile(np.arange(len(right)), len(left)), bounds), shape=pairs.shape)
        curvature = blocks.curvature(table.data)
        height = float(heights.sum()) + 0.5 * curvature
        found.append(global_bound(table, height, *penalties, of_user_offsets, curvature=curvature))
    return max(found, key=lambda one: one.value)
