"""The largest singular values of the dual state, with their vectors: where factors start, and where λ leaves none.

For factors near zero J changes by ⟨Ψ, UMᵀ⟩ + (λ/2)(‖U‖² + ‖M‖²), which falls along a pair of singular vectors of -Ψ
where its singular value exceeds λ = √(λ_U λ_M), and along no direction if none does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL = 256
"""Matrices whose smaller side is at most this, or three times the wanted pairs, are decomposed whole."""


def scaled(table: Any, rows: Floats, columns: Floats) -> Any:
    """A CSR table with row u divided by √rows[u], column j by √columns[j]; itself where these are 1."""
    if (rows == 1.0).all() and (columns == 1.0).all():
        return table
    found = table.copy()
    found.data *= np.repeat(1.0 / np.sqrt(rows), np.diff(table.indptr))
    found.data *= (1.0 / np.sqrt(columns))[table.indices]
    return found


def top_pairs(table: Any, count: int) -> tuple[Floats, Floats, Floats]:
    """Left (n, count), values (count,) falling, right (m, count) of the largest singular values of a CSR table.

    Values are iterative estimates from below. There are as many pairs as the smaller side has; the rest is 0.
    """
    n, m = table.shape
    left, values, right = np.zeros((n, count)), np.zeros(count), np.zeros((m, count))
    k = min(count, n, m)
    if not k or not np.any(table.data):
        return left, values, right
    if min(n, m) <= max(SMALL, 3 * count):
        first, size, second = _whole(table, k)
    else:
        from scipy.sparse.linalg import LinearOperator, svds

        back = table.T  # shares its memory, which svds' own transpose does not
        product = LinearOperator(table.shape, matvec=lambda x: table @ x, rmatvec=lambda x: back @ x, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=min(n, m))  # of the canonical order: nobody's names matter
        first, size, second = svds(product, k=k, v0=start, solver="arpack")
        order = np.argsort(-size, kind="stable")
        first, size, second = first[:, order], size[order], second[order].T
    sign = np.where(np.abs(first).max(axis=0) == first.max(axis=0), 1.0, -1.0)
    left[:, :k], values[:k], right[:, :k] = first * sign, size, second * sign
    return left, values, right


def _whole(table: Any, k: int) -> tuple[Floats, Floats, Floats]:
    """By the eigenvectors of the smaller of ΨΨᵀ and ΨᵀΨ; pairs that rounding hides have the value 0."""
    if table.shape[0] > table.shape[1]:
        right, size, left = _whole(table.T.tocsr(), k)
        return left, size, right
    square, vectors = np.linalg.eigh((table @ table.T).toarray())
    first = vectors[:, ::-1][:, :k]
    size = np.sqrt(np.maximum(square[::-1][:k], 0.0))
    size[size <= 1e-7 * size[0]] = 0.0
    second = np.divide(table.T @ first, size, out=np.zeros((table.shape[1], k)), where=size > 0)
    return first, size, second
