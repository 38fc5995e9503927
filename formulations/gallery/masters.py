"""Duals of column generation: master problems of large-margin learning, and blocks of factor models."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from formulations.arrays import Floats, check_positive, finite, integers, numbers
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
    box: ArrayLike | None = None,
) -> GroupedSimplexQP:
    """The column-generation dual of large-margin learning, for n slacks or one.

    primal       min (lam/2)‖w - w₀‖² + Σ_g group_mass[g] ξ_g,   ξ_g >= 0,
                 ξ_g >= intercepts[i] + ⟨subgradients[i], w⟩ for each plane i of group g
                                                                                  [ORM, eq. 34; paper 2, eq. 5, 6]
    dual         max Σ_i α_i (intercepts[i] + ⟨subgradients[i], w₀⟩) - ‖subgradientsᵀα‖² / (2 lam)
                 α >= 0,   Σ_{i in g} α_i <= group_mass[g]                                   [paper 2, eq. 10, 11]
    recovery     w = w₀ - subgradientsᵀα / lam

    One group of mass 1 is the bundle method's master; one group per query is the program with n slacks.

    A box l <= w <= u adds multipliers μ, ν >= 0 of its finite limits:

    dual         max Σ_i α_i (intercepts[i] + ⟨subgradients[i], w₀⟩) + μᵀ(l - w₀) - νᵀ(u - w₀) - ‖v‖² / (2 lam),
                 v = subgradientsᵀα - μ + ν
    recovery     w = w₀ - v / lam, for the best μ, ν the projection of w₀ - subgradientsᵀα / lam to the box

    μ_j <= M_j = Σ_g group_mass[g] max over i of g of max(0, subgradients[i, j]) + lam max(0, l_j - w₀_j), ν alike: a
    limit is one more group, of mass M_j, with the plane l_j - w_j. Limits with M_j = 0 are left out.

    Args:
        subgradients: (m, d), one row per plane.
        intercepts: (m,) the height of each plane at w = 0.
        lam: weight of the regularizer, positive.
        groups: (m,) the group (slack) of each plane, counted from 0; all one group by default.
        group_mass: (G,) the weight of each group's slack, or one number for the only group.
        w0: (d,) the center of the regularizer, 0 by default.
        gram: (m, m) subgradients subgradientsᵀ, if already known.
        box: (2, d), l and u, infinite where there is no limit; the groups of limits follow the others.

    >>> from formulations import solve
    >>> solution = solve(margin_dual([[1.0], [-1.0]], [1.0, 0.0], lam=1.0), "active_set")
    >>> solution.value, solution.dual["step"]
    (0.625, array([-0.5]))
    """
    rows = numbers("subgradients", subgradients)
    heights = numbers("intercepts", intercepts)
    if w0 is not None:
        center = numbers("w0", w0)
        if rows.ndim != 2 or center.shape != rows.shape[1:] or heights.shape != rows.shape[:1]:
            raise InvalidProblemError(
                f"w0 must have one entry a feature; got {center.size} for subgradients of shape {rows.shape}."
            )
        heights = heights + rows @ center
    members = np.zeros(heights.shape, dtype=np.int64) if groups is None else integers("groups", groups)
    known = None if gram is None else finite("gram", gram, 2)
    mass = np.atleast_1d(numbers("group_mass", group_mass))
    dual = GroupedSimplexQP(rows, heights, members, mass, lam, known)
    return dual if box is None else _in_box(dual, np.zeros(rows.shape[1]) if w0 is None else center, box, 0.0)


def _in_box(dual: GroupedSimplexQP, w0: Floats, box: ArrayLike, pull: float) -> GroupedSimplexQP:
    """The dual with a group for each limit that can be active; pull: what the regularizer can pull at a limit."""
    limits = numbers("box", box)
    features, groups = dual.slopes.shape[1], dual.capacity.size
    if limits.shape != (2, features) or not (limits[0] <= limits[1]).all():
        raise InvalidProblemError(f"box must hold {features} lower limits and as many upper ones, none of them lower.")
    planes, masses, heights = [dual.slopes], [dual.capacity], [dual.values]
    unit = float(np.abs(dual.slopes).max()) or 1.0
    for sign, limit in ((-1.0, limits[0]), (1.0, limits[1])):
        steepest = np.zeros((groups, features))
        np.maximum.at(steepest, dual.group, -sign * dual.slopes)
        beyond = sign * (w0 - limit)  # how far w₀ is outside
        force = dual.capacity @ steepest + dual.lam * np.maximum(beyond, 0.0) + pull
        active = np.flatnonzero(np.isfinite(limit) & (force > 0.0))
        planes.append(np.zeros((active.size, features)))
        planes[-1][np.arange(active.size), active] = sign * unit
        heights.append(unit * beyond[active])
        masses.append(force[active] / unit)
    slopes, mass = np.concatenate(planes), np.concatenate(masses)
    members = np.append(dual.group, np.arange(groups, mass.size))
    return GroupedSimplexQP(slopes, np.concatenate(heights), members, mass, dual.lam)


def l1_margin_dual(
    subgradients: ArrayLike,
    intercepts: ArrayLike,
    *,
    lam: float,
    groups: ArrayLike | None = None,
    group_mass: ArrayLike = 1.0,
    box: ArrayLike | None = None,
) -> LinearProgram:
    """The column-generation dual of large-margin learning with a 1-norm: a linear program over planes.

    primal       min lam ‖w‖₁ + Σ_g group_mass[g] ξ_g, with ξ as in `margin_dual`    [ORM, section 3.1, Ω = ‖w‖₁]
    maximize     Σ intercepts[i] α[i]
    subject to   feature    -lam <= Σ_i subgradients[i, j] α[i] <= lam   for each feature j
                 group      Σ α[i] over the planes i of group g is at most group_mass[g]
                 0 <= α[i] <= group_mass[group of i]   (implied by the group; with it any duals prove a bound)
    recovery     w = the duals of the rows `feature`; a feature with a slack row has weight 0
    integrality  none: real variables

    Every feasible α proves a lower bound of the primal, and any α >= 0 becomes feasible by scaling. A finite limit of a
    box adds a plane in a group of its own, as in `margin_dual`; its mass is larger by lam.

    Args:
        subgradients, intercepts, groups, group_mass, box: as in `margin_dual`.
        lam: weight of the 1-norm, positive.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, lam or a mass is not positive.

    >>> from formulations import solve
    >>> program = l1_margin_dual([[1.0, 0.1], [-1.0, 0.2]], [1.0, 0.0], lam=0.5)
    >>> solution = solve(program, "highs")
    >>> solution.value, abs(solution.dual["feature"])
    (0.75, array([0.5, 0. ]))
    """
    planar = margin_dual(subgradients, intercepts, lam=lam, groups=groups, group_mass=group_mass)
    if box is not None:
        planar = _in_box(planar, np.zeros(planar.slopes.shape[1]), box, lam)
    planes, features = planar.slopes.shape
    members, capacities = planar.group, planar.capacity
    held = csr_array((np.ones(planes), (members, np.arange(planes))), (capacities.size, planes))
    return LinearProgram(
        objective=planar.values,
        matrix=csr_array(vstack([csr_array(planar.slopes.T), held])),
        row_lower=np.concatenate([np.full(features, -lam), np.full(capacities.size, -np.inf)]),
        row_upper=np.concatenate([np.full(features, lam), capacities]),
        lower=np.zeros(planes),
        upper=capacities[members],
        variables=(Block("α", (planes,)),),
        rows=(Block("feature", (features,)), Block("group", (capacities.size,))),
    )


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
    """The item block of a factor model by column generation: all items and offsets b, for fixed users.

    primal       min Σ_u weights[u] ξ_u + (lam/2)‖M‖² + (lam_offsets/2)‖b - prior‖²,   ξ_u >= 0,
                 ξ_u >= heights[i] + Σ_j planes[i, j] (b_j + ⟨users[u], M_j⟩)   for each plane i of user u = user[i]
    dual         max Σ_i α_i (heights[i] + ⟨planes[i], prior⟩) - ‖Σ_i α_i planes[i]ᵀ users[u]‖² / (2 lam)
                     - ‖Σ_i α_i planes[i]‖² / (2 lam_offsets),   α >= 0,   Σ α_i over the planes of u at most weights[u]
    recovery     M_j = -Σ_i α_i planes[i, j] users[u] / lam,   b = prior - Σ_i α_i planes[i] / lam_offsets
    integrality  none: real variables

    A user contributes a mean of messages planes[i, j] users[u], no rating [paper 5, section 7]. The problem has one λ,
    so the columns of b are scaled by √(lam_offsets / lam); `unpack_step` splits a step. Dense, for a few hundred planes
    and items.

    Args:
        planes: (p, m) subgradients, one row per plane, one column per item, 0 for items that the user did not rate.
        heights: (p,) the value of each plane at scores of 0.
        user: (p,) the user of each plane, counted from 0.
        users: (n, d) the factors of the users.
        prior: (m,) the center of the offsets.
        lam, lam_offsets: weights of the two regularizers, positive.
        weights: the weight of each user's loss, positive, (n,) or one number.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, a weight is not positive.

    >>> from formulations import solve
    >>> program = item_block_dual([[-1.0, 1.0]], [1.0], [0], [[0.5]], [0.0, 0.0], lam=1.0, lam_offsets=4.0)
    >>> solution = solve(program, "active_set")
    >>> unpack_step(solution.dual["step"], [0.0, 0.0], 1, lam=1.0, lam_offsets=4.0)
    (array([[ 0.5],
           [-0.5]]), array([ 0.25, -0.25]))
    """
    slopes, at = finite("planes", planes, 2), finite("heights", heights, 1)
    factors = finite("users", users, 2)
    towards = finite("prior", prior, 1)
    members, size = integers("user", user), slopes.shape[1]
    if at.shape != (len(slopes),) or members.shape != at.shape or towards.shape != (size,):
        raise InvalidProblemError(
            "planes need a height and a user each, and prior an entry for each column; got shapes "
            f"{slopes.shape}, {at.shape}, {members.shape} and {towards.shape}"
        )
    if members.size and (members.min() < 0 or members.max() >= len(factors)):
        raise InvalidProblemError(f"user must be between 0 and {len(factors) - 1}; got another index.")
    check_positive(lam=lam, lam_offsets=lam_offsets)
    messages = slopes[:, :, None] * factors[members][:, None, :]
    columns = np.concatenate([messages.reshape(len(slopes), -1), slopes * np.sqrt(lam / lam_offsets)], axis=1)
    counted = numbers("weights", weights)
    if counted.shape not in ((), (len(factors),)):
        raise InvalidProblemError(f"weights must be one number or one a user ({len(factors)}); got {counted.shape}.")
    counted = np.broadcast_to(counted, (len(factors),))
    return margin_dual(columns, at + slopes @ towards, lam=lam, groups=members, group_mass=counted)


def unpack_step(
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
    """The user block of a factor model by column generation: the factors U of one user, for fixed items.

    primal       min (lam/2)‖U - U₀‖² + weight ξ,   ξ >= 0,
                 ξ >= heights[i] + ⟨planes[i], offsets + items U⟩   for each plane i      [paper 5, eq. 9, U alone]
    dual         max Σ_i α_i (heights[i] + ⟨planes[i], offsets + items U₀⟩) - ‖itemsᵀ planesᵀα‖² / (2 lam)
                 α >= 0,   Σ_i α_i <= weight
    recovery     U = U₀ - itemsᵀ ψ / lam,  ψ = planesᵀα the dual state of this user, δ = heightsᵀα
    integrality  none: real variables

    The users of a block are independent programs, with one feature per factor. A nonnegative loss has the plane 0,
    which is ξ >= 0; so each α is a valid state, and the sums of values and bounds over users enclose the block.

    Args:
        planes: (p, n) subgradients, one row per plane, one column per item that the user rated.
        heights: (p,) the value of each plane at scores of 0.
        items: (n, d) the factors of these items.
        offsets: (n,) their scores without the user's factors.
        lam: weight of the regularizer, positive.
        weight: the weight of the loss, positive.
        start: (d,) U₀, 0 by default.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, lam or weight is not positive.

    >>> from formulations import solve
    >>> program = user_block_dual([[-1.0, 1.0]], [1.0], [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0], lam=4.0)
    >>> solution = solve(program, "active_set")
    >>> solution.value, solution.dual["step"]
    (0.25, array([ 0.25, -0.25]))
    """
    slopes, at = finite("planes", planes, 2), finite("heights", heights, 1)
    factors = finite("items", items, 2)
    fixed = finite("offsets", offsets, 1)
    if slopes.shape[1] != len(factors) or fixed.shape != (len(factors),) or at.shape != (len(slopes),):
        raise InvalidProblemError(
            "planes need a height each, and a row of items and of offsets for each column; got shapes "
            f"{slopes.shape}, {at.shape}, {factors.shape} and {fixed.shape}"
        )
    return margin_dual(slopes @ factors, at + slopes @ fixed, lam=lam, group_mass=weight, w0=start)
