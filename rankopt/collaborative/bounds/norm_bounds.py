"""Upper bounds of ‖Ψ‖₂ that cost a few products: by the sizes of its entries alone.

    ‖Ψ‖₂ <= ‖Ψ‖_F
    ‖Ψ‖₂² <= ‖ |Ψ| ‖₂² <= max_j (|Ψ|ᵀ|Ψ| x)_j / x_j     for every x > 0          [Collatz 1942, Schur 1911]

x = 1 gives at most ‖Ψ‖₁ ‖Ψ‖_∞; the better x, the closer to ‖ |Ψ| ‖₂, and x ← |Ψ|ᵀ|Ψ| x is better each time. What signs
take away from ‖ |Ψ| ‖₂ is not seen.

Rounding. All terms are >= 0, so a sum of k computed products is within (1 ± u)^(k + 1) of the true one, u = 2⁻⁵³; both
products together, the quotient and what is added here stay within 1 + 2u (k + k' + 16), k and k' the longest row and
column.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from rankopt.collaborative.row_sums import UNIT

__all__ = ["frobenius_bound", "longest", "weighted_bound"]

TIMES = 24
"""Turns of x ← |Ψ|ᵀ|Ψ| x."""

LEAST = 1e-9
"""Of the largest entry of x; smaller ones are raised to this."""

TINY = 2.0**-960
"""More than what all products that fall below the smallest normal double lose, where the largest entry is near 1."""


def longest(psi: csr_array) -> tuple[int, int]:
    """How many entries the longest row and the longest column have."""
    columns = np.bincount(psi.indices, minlength=1)
    return int(np.diff(psi.indptr).max(initial=0)), int(columns.max(initial=0))


def frobenius_bound(psi: csr_array) -> float:
    """More than ‖Ψ‖_F², of a matrix whose largest entry is near 1 or 0."""
    squares = float((psi.data * psi.data).sum())
    return squares * (1.0 + 2.0 * UNIT * (float(psi.nnz) + 16.0)) + TINY


def weighted_bound(psi: csr_array) -> float:
    """More than ‖ |Ψ| ‖₂², of a matrix whose largest entry is near 1 or 0."""
    size = abs(psi)
    back, x, least = csr_array(size.T), np.ones(psi.shape[1]), np.inf
    for _ in range(TIMES):
        grown = back @ (size @ x)
        largest = float((grown / x).max(initial=0.0))
        better = largest < least * (1.0 - 1e-4)
        least = min(least, largest)
        if not better or largest == 0.0:
            break
        x = np.maximum(grown / grown.max(), LEAST)
    return least * (1.0 + 2.0 * UNIT * (sum(longest(psi)) + 16)) + TINY
