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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from formulations.forms.grouped_simplex import GroupedSimplexQP

__all__ = ["margin_dual"]


def margin_dual(
    slopes: ArrayLike,
    offsets: ArrayLike,
    *,
    lam: float,
    groups: ArrayLike | None = None,
    capacity: ArrayLike = 1.0,
    w0: ArrayLike | None = None,
    gram: ArrayLike | None = None,
) -> GroupedSimplexQP:
    """The dual program of the planes offsets[i] + ⟨slopes[i], w⟩.

    Args:
        slopes: (m, d), a row a plane.
        offsets: (m,) the height of each plane at w = 0.
        lam: weight of the regulariser, positive.
        groups: (m,) the group (slack) of each plane, counted from 0; all one group by default.
        capacity: (G,) the weight of each group's slack, or one number for the only group.
        w0: (d,) the point that the regulariser pulls to, 0 by default.
        gram: (m, m) slopes slopesᵀ where the caller keeps it.
    """
    rows = np.asarray(slopes, dtype=np.float64)
    heights = np.asarray(offsets, dtype=np.float64)
    if w0 is not None:
        heights = heights + rows @ np.asarray(w0, dtype=np.float64)
    members = np.zeros(heights.shape, dtype=np.int64) if groups is None else np.asarray(groups)
    known = None if gram is None else np.asarray(gram, dtype=np.float64)
    return GroupedSimplexQP(rows, heights, members, np.atleast_1d(np.asarray(capacity, dtype=float)), lam, known)
