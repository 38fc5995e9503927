"""Block-coordinate ascent: group after group moves weight from its lowest plane to its highest one."""

import numba as nb
import numpy as np

from formulations.active_set.cholesky import inner
from formulations.active_set.working_set import MARGIN_DUAL, MarginDual
from formulations.arrays import Floats
from formulations.compiled import FLOATS, compiled

__all__ = ["swept"]

PATIENCE = 8
"""Sweeps in which the gap must halve, or no more are made."""


@compiled(nb.int64(MARGIN_DUAL, FLOATS, FLOATS, nb.float64, nb.int64))
def swept(program: MarginDual, weights: Floats, v: Floats, tolerance: float, limit: int) -> int:
    """Sweep over all groups until the gap is small or falls slowly; v is slopesᵀ weights and stays so. Sweeps made.

    A sweep costs as much as pricing all planes once. It brings most groups of many to the plane that will hold all
    their weight; the weights of those that share it are found slowly or never, which is left to others.
    """
    planes, groups = program.values.size, program.capacity.size
    rise = np.zeros(planes + 1)
    mark, at_mark = np.inf, 0
    for sweep in range(limit):
        gap = value = 0.0
        for g in range(groups):
            first, end = program.offsets[g], program.offsets[g + 1]
            high, highest = planes + g, 0.0
            low, lowest = planes + g, np.inf
            carried = 0.0
            if weights[planes + g] > 0.0:
                lowest = 0.0
            for at in range(first, end):
                i = program.groups[at]
                rise[i] = program.values[i] - inner(program.slopes[i], v) / program.lam
                carried += weights[i] * rise[i]
                value += weights[i] * program.values[i]
                if rise[i] > highest:
                    high, highest = i, rise[i]
                if weights[i] > 0.0 and rise[i] < lowest:
                    low, lowest = i, rise[i]
            gap += program.capacity[g] * highest - carried
            if high == low or highest <= lowest:
                continue
            curvature = 0.0
            for j in range(v.size):
                up = program.slopes[high, j] if high < planes else 0.0
                down = program.slopes[low, j] if low < planes else 0.0
                curvature += (up - down) ** 2
            moved = weights[low]
            if curvature * moved > program.lam * (highest - lowest):
                moved = program.lam * (highest - lowest) / curvature
                weights[low] -= moved
            else:
                weights[low] = 0.0
            weights[high] += moved
            for j in range(v.size):
                up = program.slopes[high, j] if high < planes else 0.0
                down = program.slopes[low, j] if low < planes else 0.0
                v[j] += moved * (up - down)
        value -= 0.5 * inner(v, v) / program.lam
        if gap <= tolerance * abs(value):
            return sweep + 1
        if gap <= 0.5 * mark:
            mark, at_mark = gap, sweep
        elif sweep - at_mark >= PATIENCE:
            return sweep + 1
    return limit
