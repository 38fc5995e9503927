"""The best mixture of a few planes: a quadratic program over a simplex, by moving weight from the worst to the best."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, compiled
from rankopt.collaborative.normal_equations import READ_TABLE

__all__ = ["mix"]

Floats = NDArray[np.float64]

MOVES = 60
"""Moves a plane that are made at most."""


@compiled(nb.float64(READ_TABLE, READ_FLOATS, nb.int64, nb.float64, FLOATS, FLOATS))
def mix(gram: Floats, value: Floats, count: int, tolerance: float, weight: Floats, rise: Floats) -> float:
    """Maximise valueᵀα - αᵀ gram α / 2 over α >= 0, Σα = 1 from the weights given, until no plane rises above the
    mixture by more than the tolerance; by how much one does. rise: room for one number a plane."""
    for k in range(count):
        total = value[k]
        for other in range(count):
            total -= gram[k, other] * weight[other]
        rise[k] = total
    excess = 0.0
    for _ in range(MOVES * count):
        best, worst, mean = 0, -1, 0.0
        for k in range(count):
            mean += weight[k] * rise[k]
            if rise[k] > rise[best]:
                best = k
            if weight[k] > 0.0 and (worst < 0 or rise[k] < rise[worst]):
                worst = k
        excess = rise[best] - mean
        if excess <= tolerance or best == worst:
            break
        curved = gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst]
        moved = weight[worst]
        if moved * curved > rise[best] - rise[worst]:
            moved = (rise[best] - rise[worst]) / curved
            weight[worst] -= moved
        else:
            weight[worst] = 0.0
        weight[best] += moved
        for k in range(count):
            rise[k] -= moved * (gram[k, best] - gram[k, worst])
    return max(excess, 0.0)
