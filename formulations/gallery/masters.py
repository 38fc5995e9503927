"""The column-generation dual of large-margin learning: n slacks, or one.

primal       min (lam/2)‖w - w₀‖² + Σ_g capacity[g] ξ_g,   ξ_g >= 0,
             ξ_g >= offsets[i] + ⟨slopes[i], w⟩   for each plane i of group g          [ORM, eq. 34; paper 2, eq. 5, 6]
dual         max Σ_i α_i (offsets[i] + ⟨slopes[i], w₀⟩) - ‖slopesᵀα‖² / (2 lam)
             α >= 0,   Σ_{i in g} α_i <= capacity[g]                                   [paper 2, eq. 10, 11]
recovery     w = w₀ - slopesᵀα / lam

One group with capacity 1 is the bundle method's master; one group a query is the program with n slacks.

>>> from formulations import solve
>>> program = margin_dual([[1.0], [-1.0]], [1.0, 0.0], lam=1.0)
>>> solution = solve(program, "active_set")
>>> solution.value, solution.dual["step"]
(0.625, array([-0.5]))

The column-generation dual of large-margin learning with a 1-norm: a linear program over planes.

primal       min lam ‖w‖₁ + Σ_g capacity[g] ξ_g,   ξ_g >= 0,
             ξ_g >= offsets[i] + ⟨slopes[i], w⟩   for each plane i of group g          [ORM, section 3.1, Ω = ‖w‖₁]
variables    α[i], one a plane
maximise     Σ offsets[i] α[i]
subject to   feature    -lam <= Σ_i slopes[i, j] α[i] <= lam   for each feature j
             group      Σ α[i] over the planes i of group g is at most capacity[g]
             0 <= α[i] <= capacity[group of i]   (the group says so already: with it any prices prove a bound)
recovery     w = the prices of the rows `feature`; a feature whose row does not press has weight 0
integrality  its variables are real

Every feasible α proves a lower bound of the primal, and any α >= 0 becomes feasible by scaling. One group with
capacity 1 is the bundle method's master; one group a query is the program with n slacks.

>>> from formulations import solve
>>> program = l1_margin_dual([[1.0, 0.1], [-1.0, 0.2]], [1.0, 0.0], lam=0.5)
>>> solution = solve(program, "highs")
>>> solution.value, abs(solution.dual["feature"])
(0.75, array([0.5, 0. ]))

The items' block of a factor model, as column generation sees it: all items and offsets for users that stay.

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
>>> program = item_block_dual([[-1.0, 1.0]], [1.0], [0], [[0.5]], [0.0, 0.0], lam=1.0, lam_offsets=4.0)
>>> solution = solve(program, "active_set")
>>> solution.value
0.5
>>> unpacked(solution.dual["step"], [0.0, 0.0], 1, lam=1.0, lam_offsets=4.0)
(array([[ 0.5],
       [-0.5]]), array([ 0.25, -0.25]))

The users' block of a factor model, as column generation sees it: one user's factors for items that stay as they are.

sets         planes i of the user's loss, l(f) >= heights[i] + ⟨planes[i], f⟩ for all scores f of the n rated items
primal       min (lam/2)‖U - U₀‖² + weight ξ,   ξ >= 0,
             ξ >= heights[i] + ⟨planes[i], offsets + items U⟩   for each plane i      [paper 5, eq. 9, U alone]
dual         max Σ_i α_i (heights[i] + ⟨planes[i], offsets + items U₀⟩) - ‖itemsᵀ planesᵀα‖² / (2 lam)
             α >= 0,   Σ_i α_i <= weight
recovery     U = U₀ - itemsᵀ ψ / lam,  ψ = planesᵀα the dual state of this user, δ = heightsᵀα
integrality  its variables are real

The users of a block share nothing: each is a program of its own, with as many features as there are factors. A loss
that is no less than 0 has the plane 0, which ξ >= 0 is; so each α is a valid state, and Σ over users of value and of
bound enclose the block.

>>> from formulations import solve
>>> films = [[1.0, 0.0], [0.0, 1.0]]
>>> program = user_block_dual([[-1.0, 1.0]], [1.0], films, [0.5, 0.0], lam=4.0)
>>> solution = solve(program, "active_set")
>>> solution.value, solution.dual["step"]
(0.25, array([ 0.25, -0.25]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from formulations.arrays import finite, whole
from formulations.errors import InvalidProblemError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Block
from formulations.problems.simplex_qp import GroupedSimplexQP


def margin_dual(
    subgradients: ArrayLike,
    intercepts: ArrayLike,
    *,
    lam: float,
    groups: ArrayLike | None = None,
    group_mass: ArrayLike = 1.0,
    w0: ArrayLike | None = None,
    gram: ArrayLike | None = None,
) -> GroupedSimplexQP:
    """The dual program of the planes offsets[i] + ⟨slopes[i], w⟩.

    Args:
        subgradients: (m, d), a row a plane.
        intercepts: (m,) the height of each plane at w = 0.
        lam: weight of the regulariser, positive.
        groups: (m,) the group (slack) of each plane, counted from 0; all one group by default.
        group_mass: (G,) the weight of each group's slack, or one number for the only group.
        w0: (d,) the point that the regulariser pulls to, 0 by default.
        gram: (m, m) slopes slopesᵀ where the caller keeps it.
    """
    rows = np.asarray(subgradients, dtype=np.float64)
    heights = np.asarray(intercepts, dtype=np.float64)
    if w0 is not None:
        heights = heights + rows @ np.asarray(w0, dtype=np.float64)
    members = np.zeros(heights.shape, dtype=np.int64) if groups is None else np.asarray(groups)
    known = None if gram is None else np.asarray(gram, dtype=np.float64)
    return GroupedSimplexQP(rows, heights, members, np.atleast_1d(np.asarray(group_mass, dtype=float)), lam, known)


def l1_margin_dual(
    subgradients: ArrayLike,
    intercepts: ArrayLike,
    *,
    lam: float,
    groups: ArrayLike | None = None,
    group_mass: ArrayLike = 1.0,
) -> LinearProgram:
    """The dual program of the planes offsets[i] + ⟨slopes[i], w⟩ under the penalty lam ‖w‖₁.

    Args:
        subgradients: (m, d), a row a plane.
        intercepts: (m,) the height of each plane at w = 0.
        lam: weight of the 1-norm, positive.
        groups: (m,) the group (slack) of each plane, counted from 0; all one group by default.
        group_mass: (G,) the weight of each group's slack, positive, or one number for the only group.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, lam or a capacity is not positive.
    """
    rows = finite("subgradients", np.asarray(subgradients, dtype=np.float64), 2)
    heights = finite("intercepts", np.asarray(intercepts, dtype=np.float64), 1)
    room = finite("group_mass", np.atleast_1d(np.asarray(group_mass, dtype=np.float64)), 1)
    planes, features = rows.shape
    members = np.zeros(planes, dtype=np.int64) if groups is None else whole("groups", np.asarray(groups))
    if not planes or heights.size != planes or members.shape != (planes,):
        raise InvalidProblemError("slopes, offsets and groups need one entry a plane, and one plane at least")
    if not (lam > 0 and np.isfinite(lam)):
        raise InvalidProblemError(f"lam is {lam}, but the program needs a positive finite one")
    if (room <= 0).any() or members.min() < 0 or members.max() >= room.size:
        raise InvalidProblemError(f"groups run from 0 to {room.size - 1}, and capacities must be positive")
    held = csr_array((np.ones(planes), (members, np.arange(planes))), (room.size, planes))
    return LinearProgram(
        objective=heights,
        matrix=csr_array(vstack([csr_array(rows.T), held])),
        row_lower=np.concatenate([np.full(features, -lam), np.full(room.size, -np.inf)]),
        row_upper=np.concatenate([np.full(features, lam), room]),
        lower=np.zeros(planes),
        upper=room[members],
        variables=(Block("α", (planes,)),),
        rows=(Block("feature", (features,)), Block("group", (room.size,))),
    )


Floats = NDArray[np.float64]


def item_block_dual(
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
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, a weight is not positive.
    """
    slopes, at = finite("planes", np.asarray(planes, dtype=np.float64), 2), np.asarray(heights, dtype=np.float64)
    factors = finite("users", np.asarray(users, dtype=np.float64), 2)
    towards = finite("prior", np.asarray(prior, dtype=np.float64), 1)
    members, size = whole("user", np.asarray(user)), slopes.shape[1]
    if at.shape != (len(slopes),) or members.shape != at.shape or towards.shape != (size,):
        raise InvalidProblemError(
            f"planes {slopes.shape} need a height {at.shape} and a user {members.shape} each, and prior "
            f"{towards.shape} an entry for each column"
        )
    if members.size and (members.min() < 0 or members.max() >= len(factors)):
        raise InvalidProblemError(f"users run from 0 to {len(factors) - 1}, but planes name others")
    if not (lam_offsets > 0 and np.isfinite(lam_offsets)):
        raise InvalidProblemError(f"lam_offsets is {lam_offsets}, but the program needs a positive finite one")
    messages = slopes[:, :, None] * factors[members][:, None, :]
    columns = np.concatenate([messages.reshape(len(slopes), -1), slopes * np.sqrt(lam / lam_offsets)], axis=1)
    counted = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(factors),))
    return margin_dual(columns, at + slopes @ towards, lam=lam, groups=members, group_mass=counted)


def unpacked(
    step: ArrayLike, prior: ArrayLike, factors: int, *, lam: float, lam_offsets: float
) -> tuple[Floats, Floats]:
    """M (m, factors) and b (m,) of a step of the dual program."""
    towards, moved = np.asarray(prior, dtype=np.float64), np.asarray(step, dtype=np.float64)
    cut = towards.size * factors
    return moved[:cut].reshape(towards.size, factors), towards + moved[cut:] * np.sqrt(lam / lam_offsets)


def user_block_dual(
    planes: ArrayLike,
    heights: ArrayLike,
    items: ArrayLike,
    offsets: ArrayLike,
    *,
    lam: float,
    weight: float = 1.0,
    start: ArrayLike | None = None,
) -> GroupedSimplexQP:
    """The dual program of one user.

    Args:
        planes: (p, n) slopes, a row a plane, a column an item that the user rated.
        heights: (p,) what each plane is at scores of 0.
        items: (n, d) the factors of these items.
        intercepts: (n,) their scores without the user's factors.
        lam: weight of the regulariser, positive.
        weight: how much the loss counts, positive.
        start: (d,) U₀, 0 by default.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, lam or weight is not positive.
    """
    slopes, at = finite("planes", np.asarray(planes, dtype=np.float64), 2), np.asarray(heights, dtype=np.float64)
    factors = finite("items", np.asarray(items, dtype=np.float64), 2)
    fixed = finite("offsets", np.asarray(offsets, dtype=np.float64), 1)
    if slopes.shape[1] != len(factors) or fixed.shape != (len(factors),) or at.shape != (len(slopes),):
        raise InvalidProblemError(
            f"planes {slopes.shape} need a height each, {at.shape}, and a row of items {factors.shape} and of offsets "
            f"{fixed.shape} for each column"
        )
    return margin_dual(slopes @ factors, at + slopes @ fixed, lam=lam, group_mass=weight, w0=start)
