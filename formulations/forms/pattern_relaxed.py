"""A bound for long queries, whose lattice is not written out: every bad at its own best place under the pairwise map.

With cell(i, b) what good i adds below b bads, an order is worth Σ_i cell(i, 0) + Σ_j f(j, i_j), f(j, i) = Σ_{i' >= i}
[cell(i', j) - cell(i', j - 1)], i_j the first good below the j-th best bad, which does not fall as j rises. Without
that the sum of max over i of f(j, i) bounds it, whatever the cells; where all rows of cells are concave it is attained.
O(n₊ n₋) in time, O(n) in room.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats
from formulations.forms.form import EPSILON

__all__ = ["every_bad_for_itself"]


def every_bad_for_itself(good: Floats, bad: Floats, share: Floats, discount: Floats, kappa: float) -> float:
    """The bound without constants, rounded up; scores falling, share[i] what good i earns by discount[position]."""
    earned = share[: good.size] * discount[: good.size]
    placed, size, most = np.zeros(bad.size), np.zeros(bad.size), np.zeros(bad.size)
    for i in range(good.size - 1, -1, -1):
        lost = share[i] * (discount[i : i + bad.size] - discount[i + 1 : i + 1 + bad.size])
        placed += kappa * (bad - good[i]) + lost
        size += kappa * (np.abs(bad) + abs(good[i])) + 2.0 * abs(share[i]) * np.abs(discount[i : i + bad.size])
        np.maximum(most, placed, out=most)
    off = EPSILON * (8.0 + good.size) * float(size.sum() * (1.0 + 1e-9))
    off += EPSILON * (8.0 + bad.size + good.size) * float(most.sum() + np.abs(earned).sum())
    return float(np.nextafter(most.sum() - earned.sum() + off, np.inf))
