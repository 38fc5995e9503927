"""The best offsets of users and items alone, of squared losses: one sparse system, by conjugate gradients.

minimise Σ_uj (w_uj/2)(b_u + b_j - y_uj)² + Σ_j (μ_j/2)(b_j - b⁰_j)² + Σ_u (μ_u/2) b_u². Its matrix is diagonal but for
the table of weights between users and items, so a step costs two passes over the ratings; some ten of them close it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.problem import FactorProblem

__all__ = ["best_offsets"]

Floats = NDArray[np.float64]

CLOSED = 1e-10
"""The relative residual at which the system counts as solved."""


def best_offsets(problem: FactorProblem) -> tuple[Floats, Floats]:
    """b_u (n,) and b_j (m,); those that the problem does not have are 0, and b⁰."""
    from scipy.sparse.linalg import LinearOperator, cg

    rated, n = problem.rated, problem.rated.n_users
    weights = rated.weights if rated.weights.size else np.ones(rated.values.size)
    left = problem.prior[rated.columns]
    np.subtract(rated.values[:], left, out=left)
    left *= weights
    has_users, has_items = bool(problem.of_user_offsets.size), bool(problem.of_offsets.size)
    of_users = rated.per_user(left) if has_users else np.zeros(n)
    right = np.append(of_users, rated.per_item(left) if has_items else np.zeros(rated.n_items))
    del left
    diagonal = np.concatenate([
        rated.per_user(weights) + problem.of_user_offsets if has_users else np.ones(n),
        rated.per_item(weights) + problem.of_offsets if has_items else np.ones(rated.n_items),
    ])  # fmt: skip
    found = right / diagonal
    if has_users and has_items:
        table = rated.table(weights)

        def times(x: Floats) -> Floats:
            return np.asarray(diagonal * x + np.concatenate([table @ x[n:], table.T @ x[:n]]))

        shape = (right.size, right.size)
        matrix = LinearOperator(shape, matvec=times, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=lambda x: x / diagonal, dtype=np.float64)
        found, _ = cg(matrix, right, x0=found, rtol=CLOSED, atol=0.0, maxiter=500, M=inverse)
    return found[:n], problem.prior + found[n:]
