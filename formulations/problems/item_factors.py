"""The items' block of a factor model, as column generation sees it: all items and offsets for users that stay.

sets         planes i of users' losses, l_u(f) >= heights[i] + ⟨planes[i], f⟩ for all scores f of the items, u = user[i]
primal       min Σ_u weights[u] ξ_u + (lam/2)‖M‖² + (lam_offsets/2)‖b - prior‖²,   ξ_u >= 0,
             ξ_u >= heights[i] + Σ_j planes[i, j] (b_j + ⟨users[u], M_j⟩)   for each plane i of user u
dual         max Σ_i α_i (heights[i] + ⟨planes[i], prior⟩) - ‖Σ_i α_i planes[i]ᵀ users[u]‖² / (2 lam)
                 - ‖Σ_i α_i planes[i]‖² / (2 lam_offsets),     α >= 0,   Σ α_i over the planes of u at most weights[u]
recovery     M_j = -Σ_i α_i planes[i, j] users[u] / lam,   b = prior - Σ_i α_i planes[i] / lam_offsets
integrality  its variables are real

One group a user: what a user contributes is a mean of messages planes[i, j] users[u], no rating [paper 5, section 7].
The form has one λ, so the columns of b are measured in units √(lam_offsets / lam): `unpacked` takes a step apart.

>>> from formulations import solve
>>> program = item_factors([[-1.0, 1.0]], [1.0], [0], [[0.5]], [0.0, 0.0], lam=1.0, lam_offsets=4.0)
>>> solution = solve(program, "active_set")
>>> solution.value
0.5
>>> unpacked(solution.dual["step"], [0.0, 0.0], 1, lam=1.0, lam_offsets=4.0)
(array([[ 0.5],
       [-0.5]]), array([ 0.25, -0.25]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import finite, whole
from formulations.errors import InvalidProblem
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.problems.margin_dual import margin_dual

__all__ = ["item_factors", "unpacked"]

Floats = NDArray[np.float64]


def item_factors(
    planes: ArrayLike,
    heights: ArrayLike,
    user: ArrayLike,
    users: ArrayLike,
    prior: ArrayLike,
    *,
    lam: float,
    lam_offsets: float,
    weights: ArrayLike = 1.0,
) -> GroupedSimplexQP:
    """The dual program of all items; dense, so meant for some hundred planes and items.

    Args:
        planes: (p, m) slopes, a row a plane, a column an item, 0 where the user of the plane rated it not.
        heights: (p,) what each plane is at scores of 0.
        user: (p,) whose loss each plane belongs to, counted from 0.
        users: (n, d) the factors of the users.
        prior: (m,) what offsets are pulled to.
        lam, lam_offsets: weights of the two regularisers, positive.
        weights: how much the loss of each user counts, positive, (n,) or one number.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, a weight is not positive.
    """
    slopes, at = finite("planes", np.asarray(planes, dtype=np.float64), 2), np.asarray(heights, dtype=np.float64)
    factors = finite("users", np.asarray(users, dtype=np.float64), 2)
    towards = finite("prior", np.asarray(prior, dtype=np.float64), 1)
    members, size = whole("user", np.asarray(user)), slopes.shape[1]
    if at.shape != (len(slopes),) or members.shape != at.shape or towards.shape != (size,):
        raise InvalidProblem(
            f"planes {slopes.shape} need a height {at.shape} and a user {members.shape} each, and prior "
            f"{towards.shape} an entry for each column"
        )
    if members.size and (members.min() < 0 or members.max() >= len(factors)):
        raise InvalidProblem(f"users run from 0 to {len(factors) - 1}, but planes name others")
    if not (lam_offsets > 0 and np.isfinite(lam_offsets)):
        raise InvalidProblem(f"lam_offsets is {lam_offsets}, but the program needs a positive finite one")
    messages = slopes[:, :, None] * factors[members][:, None, :]
    columns = np.concatenate([messages.reshape(len(slopes), -1), slopes * np.sqrt(lam / lam_offsets)], axis=1)
    counted = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(factors),))
    return margin_dual(columns, at + slopes @ towards, lam=lam, groups=members, capacity=counted)


def unpacked(
    step: ArrayLike, prior: ArrayLike, factors: int, *, lam: float, lam_offsets: float
) -> tuple[Floats, Floats]:
    """M (m, factors) and b (m,) of a step of the dual program."""
    towards, moved = np.asarray(prior, dtype=np.float64), np.asarray(step, dtype=np.float64)
    cut = towards.size * factors
    return moved[:cut].reshape(towards.size, factors), towards + moved[cut:] * np.sqrt(lam / lam_offsets)
