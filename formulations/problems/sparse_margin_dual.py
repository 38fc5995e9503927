"""The column-generation dual of large-margin learning with a 1-norm: a linear program over planes.

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
>>> program = sparse_margin_dual([[1.0, 0.1], [-1.0, 0.2]], [1.0, 0.0], lam=0.5)
>>> solution = solve(program, "highs")
>>> solution.value, abs(solution.dual["feature"])
(0.75, array([0.5, 0. ]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from formulations.arrays import finite, whole
from formulations.errors import InvalidProblem
from formulations.forms.linear_program import LinearProgram
from formulations.notation.names import Block

__all__ = ["sparse_margin_dual"]


def sparse_margin_dual(
    slopes: ArrayLike,
    offsets: ArrayLike,
    *,
    lam: float,
    groups: ArrayLike | None = None,
    capacity: ArrayLike = 1.0,
) -> LinearProgram:
    """The dual program of the planes offsets[i] + ⟨slopes[i], w⟩ under the penalty lam ‖w‖₁.

    Args:
        slopes: (m, d), a row a plane.
        offsets: (m,) the height of each plane at w = 0.
        lam: weight of the 1-norm, positive.
        groups: (m,) the group (slack) of each plane, counted from 0; all one group by default.
        capacity: (G,) the weight of each group's slack, positive, or one number for the only group.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, lam or a capacity is not positive.
    """
    rows = finite("slopes", np.asarray(slopes, dtype=np.float64), 2)
    heights = finite("offsets", np.asarray(offsets, dtype=np.float64), 1)
    room = finite("capacity", np.atleast_1d(np.asarray(capacity, dtype=np.float64)), 1)
    planes, features = rows.shape
    members = np.zeros(planes, dtype=np.int64) if groups is None else whole("groups", np.asarray(groups))
    if not planes or heights.size != planes or members.shape != (planes,):
        raise InvalidProblem("slopes, offsets and groups need one entry a plane, and one plane at least")
    if not (lam > 0 and np.isfinite(lam)):
        raise InvalidProblem(f"lam is {lam}, but the program needs a positive finite one")
    if (room <= 0).any() or members.min() < 0 or members.max() >= room.size:
        raise InvalidProblem(f"groups run from 0 to {room.size - 1}, and capacities must be positive")
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
