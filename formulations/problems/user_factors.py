"""The users' block of a factor model, as column generation sees it: one user's factors for items that stay as they are.

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
>>> program = user_factors([[-1.0, 1.0]], [1.0], films, [0.5, 0.0], lam=4.0)
>>> solution = solve(program, "active_set")
>>> solution.value, solution.dual["step"]
(0.25, array([ 0.25, -0.25]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import finite
from formulations.errors import InvalidProblem
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.problems.margin_dual import margin_dual

__all__ = ["user_factors"]


def user_factors(
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
        offsets: (n,) their scores without the user's factors.
        lam: weight of the regulariser, positive.
        weight: how much the loss counts, positive.
        start: (d,) U₀, 0 by default.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, lam or weight is not positive.
    """
    slopes, at = finite("planes", np.asarray(planes, dtype=np.float64), 2), np.asarray(heights, dtype=np.float64)
    factors = finite("items", np.asarray(items, dtype=np.float64), 2)
    fixed = finite("offsets", np.asarray(offsets, dtype=np.float64), 1)
    if slopes.shape[1] != len(factors) or fixed.shape != (len(factors),) or at.shape != (len(slopes),):
        raise InvalidProblem(
            f"planes {slopes.shape} need a height each, {at.shape}, and a row of items {factors.shape} and of offsets "
            f"{fixed.shape} for each column"
        )
    return margin_dual(slopes @ factors, at + slopes @ fixed, lam=lam, capacity=weight, w0=start)
