"""Scores of pairs that a fitted model may or may not know: never NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors

__all__ = ["scores_of_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AT_ONCE = 1 << 16
"""Pairs whose factors are gathered at a time."""


def scores_of_pairs(factors: Factors, users: Ints, items: Ints, unknown: float) -> Floats:
    """(n,) b_j + b_u + ⟨U_u, M_j⟩ of the users and items of these places, -1 for one that is unknown: such a user adds
    nothing, such an item has the offset `unknown` of an item without ratings."""
    found = np.empty(users.size)
    for begin in range(0, users.size, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        u, j = users[part], items[part]
        some = np.where(j >= 0, factors.offsets[j] if factors.offsets.size else unknown, unknown)
        some += np.where(u >= 0, factors.user_offsets[u], 0.0)
        both = (u >= 0) & (j >= 0)
        some[both] += np.einsum("ij,ij->i", factors.users[u[both]], factors.items[j[both]])
        found[part] = some
    return found
