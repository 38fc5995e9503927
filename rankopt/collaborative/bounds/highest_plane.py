"""The highest plane of a given slope below a loss of one user's scores: linear programs, one for each kind of loss.

    pairs     max Σ x_p,  0 <= x_p <= C_p,  Σ_p x_p (e_i - e_j) = ψ: a flow from worse to better items
    orders    least Σ a_i b_j X_ij over doubly stochastic X with Σ_i c_i X_ij = t_j, t = ψ + r̄: a mean of rankings

The second has n² variables. Its cost sees the grade of an item only, so Y_gi, how much of position i items of gain g
have, says it all; and rows X_j that add up to Y_g with these means t_j exist if and only if Y_g on the points c is
larger in convex order than one unit on each t_j (Hardy, Littlewood and Pólya; Strassen). Between two neighbouring c the
one side is linear and the other convex, so it is enough to ask at each c:

    Σ_i Y_gi (c_i - c_m)⁺ >= Σ_j (t_j - c_m)⁺  for every m,    Σ_i Y_gi = n_g,    Σ_i c_i Y_gi = Σ_j t_j

With S_gm = Σ_{i <= m} Y_gi the left side is L_gm = L_g,m-1 + (c_m-1 - c_m) S_g,m-1: n variables a grade, few entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, kron, vstack

__all__ = ["SHORT", "cheapest_mean", "highest_flow"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHORT = 60
"""Ratings up to which the program of n² variables is solved as it stands."""


def highest_flow(worse: Ints, better: Ints, share: Floats, psi: Floats) -> float:
    """The height of the highest plane of slope psi (n,) below Σ_p share_p max(0, 1 + f_worse - f_better); -inf where
    there is none."""
    if not worse.size:
        return 0.0 if not psi.any() else -np.inf
    arc = np.arange(worse.size)
    signs = np.concatenate([np.ones(arc.size), -np.ones(arc.size)])
    nodes = csr_array(
        (signs, (np.concatenate([worse, better]), np.concatenate([arc, arc]))), shape=(psi.size, arc.size)
    )
    return -_least(-np.ones(arc.size), nodes, psi, np.zeros(arc.size), share)


def cheapest_mean(a: Floats, b: Floats, c: Floats, t: Floats, short: int = SHORT) -> float:
    """The least mean of a[π]ᵀb over all means of rankings π whose mean c[π] is t (n,); inf where there is none."""
    return _as_it_stands(a, b, c, t) if t.size <= short else _by_gain(a, b, c, t)


def _as_it_stands(a: Floats, b: Floats, c: Floats, t: Floats) -> float:
    n, one = t.size, np.ones((1, t.size))
    rows = [
        kron(eye_array(n), csr_array(one)),
        kron(csr_array(one), eye_array(n)),
        kron(csr_array(c[None]), eye_array(n)),
    ]
    sides, upper = np.concatenate([np.ones(2 * n), t]), np.full(n * n, np.inf)
    return _least(np.outer(a, b).ravel(), csr_array(vstack(rows)), sides, np.zeros(n * n), upper)


def _by_gain(a: Floats, b: Floats, c: Floats, t: Floats) -> float:
    order, n = np.argsort(-c, kind="stable"), t.size
    a, c = a[order], c[order]
    gains, of = np.unique(b, return_inverse=True)
    size = gains.size * n
    Y = np.arange(size).reshape(gains.size, n)
    S, L = Y + size, Y + 2 * size
    mass, over = n + Y, n + size + Y  # the rows that define S and L
    entries = [
        (np.broadcast_to(np.arange(n), Y.shape), Y, 1.0),
        (mass, S, 1.0), (mass, Y, -1.0), (mass[:, 1:], S[:, :-1], -1.0),
        (over, L, 1.0), (over[:, 1:], L[:, :-1], -1.0), (over[:, 1:], S[:, :-1], c[1:] - c[:-1]),
    ]  # fmt: skip
    data = np.concatenate([np.broadcast_to(value, rows.shape).ravel() for rows, _, value in entries])
    places = [np.concatenate([one[axis].ravel() for one in entries]) for axis in (0, 1)]
    rows = csr_array(coo_array((data, tuple(places)), shape=(n + 2 * size, 3 * size)))
    low, high = np.zeros((3, *Y.shape)), np.full((3, *Y.shape), np.inf)
    for g in range(gains.size):
        own = t[of == g]
        low[1, g, -1] = high[1, g, -1] = own.size
        low[2, g] = np.maximum(own - c[:, None], 0.0).sum(axis=1)
        low[2, g, -1] = high[2, g, -1] = (own - c[-1]).sum()
    cost = np.concatenate([np.outer(gains, a).ravel(), np.zeros(2 * size)])
    return _least(cost, rows, np.concatenate([np.ones(n), np.zeros(2 * size)]), low.ravel(), high.ravel())


def _least(cost: Floats, rows: Any, sides: Floats, low: Floats, high: Floats) -> float:
    """min costᵀx, rows x = sides, low <= x <= high; inf where there is none."""
    found = linprog(cost, A_eq=rows, b_eq=sides, bounds=np.column_stack([low, high]), method="highs")
    return float(found.fun) if found.status == 0 else np.inf
