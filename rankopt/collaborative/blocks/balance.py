"""Two factors of one size: of all U, M with the same product, those that are penalised least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import FactorProblem

__all__ = ["balanced"]


def balanced(problem: FactorProblem, factors: Factors) -> Factors:
    """P s Qᵀ, the decomposition of √Λ_U U Mᵀ √Λ_M, as U = Λ_U^-½ P √s and M = Λ_M^-½ Q √s: the penalty is then Σ s, the
    trace norm, and no scores change but by rounding."""
    if not factors.dimensions:
        return factors
    rows, columns = np.sqrt(problem.of_users)[:, None], np.sqrt(problem.of_items)[:, None]
    first, left = np.linalg.qr(factors.users * rows)
    second, right = np.linalg.qr(factors.items * columns)
    inside, size, across = np.linalg.svd(left @ right.T)
    root, d = np.sqrt(size), factors.dimensions
    users, items = np.zeros(factors.users.shape), np.zeros(factors.items.shape)
    k = min(d, size.size)
    users[:, :k] = (first @ inside[:, :k]) * root[:k] / rows
    items[:, :k] = (second @ across[:k].T) * root[:k] / columns
    return replace(factors, users=users, items=items)
