"""A guess at the best weights of a small margin dual, by the package daqp: nearly right, and nothing is compiled."""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, Ints

__all__ = ["guessed"]

INFINITE = 1e30


def guessed(slopes: Floats, values: Floats, group: Ints, capacity: Floats, lam: float) -> Floats | None:
    """The multipliers α of

        min over δ, ξ of (lam/2) ‖δ‖² + Σ_g capacity[g] ξ_g   subject to   ξ_g >= values[i] + slopes[i]·δ,  ξ_g >= 0

    by a dual active-set method [Arnström, Bemporad and Axehill 2022], or None. Of d features and m planes there are
    min(d, m) + G variables, δ being a combination of the planes. The heights ξ have no curvature, which costs digits.
    """
    import daqp

    planes, groups = values.size, capacity.size
    slopes = slopes if slopes.shape[1] <= planes else np.asarray(np.linalg.qr(slopes.T, mode="r")).T
    size, most, high = slopes.shape[1], float(capacity.max()), float(np.abs(values).max())
    if not high > 0.0:
        return None
    # In units of the highest plane, and of the step that costs as much as one group at that height.
    far = np.sqrt(most * high / lam)
    hessian, rows = np.zeros((size + groups, size + groups)), np.zeros((planes, size + groups))
    hessian[range(size), range(size)] = 1.0
    rows[:, :size] = slopes * (far / high)
    rows[range(planes), size + group] = -1.0
    linear = np.concatenate([np.zeros(size), capacity / most])
    upper = np.concatenate([np.full(size + groups, INFINITE), -values / high])
    lower = np.concatenate([np.full(size, -INFINITE), np.zeros(groups), np.full(planes, -INFINITE)])
    _, _, flag, told = daqp.solve(hessian, linear, rows, upper, lower, np.zeros(upper.size, np.int32), primal_tol=1e-11)
    return np.asarray(told["lam"][size + groups :]) * most if flag in (1, 2) else None
