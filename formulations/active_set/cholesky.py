"""A Cholesky factor of the Gram matrix of some rows: rows join and leave one by one.

L Lᵀ = D Dᵀ for rows D (k × d) that are independent. The part of a new row that is orthogonal to D is formed from the
rows themselves and not from the Gram matrix, which keeps twice as many digits where rows are nearly dependent.
"""

import math

import numba as nb
import numpy as np

from formulations.arrays import Floats
from formulations.compiled import FLOATS, READ_FLOATS, compiled

__all__ = ["MATRIX", "drop", "inner", "join", "project", "refresh", "solve"]

MATRIX = nb.types.Array(nb.float64, 2, "C")

ROUNDING = 8.0 * 2.0**-52


@compiled(nb.float64(READ_FLOATS, READ_FLOATS), reassociate=True, numpy=np.dot)
def inner(x: Floats, y: Floats) -> float:
    """x·y, its terms added in whatever order the processor adds fastest."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def _solve(factor: Floats, count: int, right: Floats) -> None:
    for i in range(count):
        right[i] = (right[i] - factor[i, :i] @ right[:i]) / factor[i, i]
    for i in range(count - 1, -1, -1):
        right[i] /= factor[i, i]
        right[:i] -= factor[i, :i] * right[i]


@compiled(nb.void(MATRIX, nb.int64, FLOATS), numpy=_solve)
def solve(factor: Floats, count: int, right: Floats) -> None:
    """Overwrite right with (L Lᵀ)⁻¹ right."""
    for i in range(count):
        right[i] = (right[i] - inner(factor[i, :i], right[:i])) / factor[i, i]
    for i in range(count - 1, -1, -1):
        right[i] /= factor[i, i]
        for j in range(i):
            right[j] -= factor[i, j] * right[i]


def _project(rows: Floats, factor: Floats, count: int, fresh: Floats, mix: Floats) -> bool:
    length = math.sqrt(fresh @ fresh)
    mix[:count] = 0.0
    noise, held = length, rows[:count]
    lengths = np.sqrt(np.einsum("ij,ij->i", factor[:count, :count], factor[:count, :count]))
    for _ in range(3):
        change = held @ fresh
        _solve(factor, count, change)
        mix[:count] += change
        noise = length + np.abs(mix[:count]) @ lengths
        fresh -= change @ held
        left = math.sqrt(fresh @ fresh)
        if left > 0.1 * length:
            break
        if left <= ROUNDING * noise:
            return False
    return bool(math.sqrt(fresh @ fresh) > ROUNDING * noise)


@compiled(nb.boolean(MATRIX, MATRIX, nb.int64, FLOATS, FLOATS), numpy=_project)
def project(rows: Floats, factor: Floats, count: int, fresh: Floats, mix: Floats) -> bool:
    """Overwrite `fresh` with its part orthogonal to the rows, and `mix` with the combination of rows that is the rest.

    Returns whether that part is more than rounding.
    """
    length = math.sqrt(inner(fresh, fresh))
    mix[:count] = 0.0
    noise = length
    change = np.empty(count)
    for _ in range(3):
        for i in range(count):
            change[i] = inner(rows[i], fresh)
        solve(factor, count, change)
        noise = length
        for i in range(count):
            mix[i] += change[i]
            noise += abs(mix[i]) * math.sqrt(inner(factor[i, : i + 1], factor[i, : i + 1]))
            for j in range(fresh.size):
                fresh[j] -= change[i] * rows[i, j]
        left = math.sqrt(inner(fresh, fresh))
        if left > 0.1 * length:
            break
        if left <= ROUNDING * noise:
            return False
    return math.sqrt(inner(fresh, fresh)) > ROUNDING * noise


@compiled(nb.boolean(MATRIX, MATRIX, nb.int64))
def join(rows: Floats, factor: Floats, count: int) -> bool:
    """Append rows[count] to the factor; whether enough of it is orthogonal to the others for the digits at hand."""
    row = rows[count]
    for i in range(count):
        factor[count, i] = (inner(rows[i], row) - inner(factor[i, :i], factor[count, :i])) / factor[i, i]
    square = inner(row, row)
    left = square - inner(factor[count, :count], factor[count, :count])
    if left > 1e-4 * square:
        factor[count, count] = math.sqrt(left)
        return True
    return False


@compiled(nb.void(MATRIX, nb.int64, nb.int64))
def drop(factor: Floats, count: int, gone: int) -> None:
    """Remove row `gone`: the rows below move up, and plane rotations make the factor triangular again."""
    for i in range(gone, count - 1):
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    for j in range(gone, count - 1):
        size = math.hypot(factor[j, j], factor[j, j + 1])
        cosine, sine = factor[j, j] / size, factor[j, j + 1] / size
        factor[j, j] = size
        for i in range(j + 1, count - 1):
            left, right = factor[i, j], factor[i, j + 1]
            factor[i, j] = cosine * left + sine * right
            factor[i, j + 1] = cosine * right - sine * left


@compiled(nb.void(MATRIX, MATRIX, nb.int64))
def refresh(rows: Floats, factor: Floats, count: int) -> None:
    """Factor anew: what rotations round adds up."""
    mix, fresh = np.empty(count), np.empty(rows.shape[1])
    for place in range(count):
        if not join(rows, factor, place):
            for j in range(fresh.size):
                fresh[j] = rows[place, j]
            project(rows, factor, place, fresh, mix)
            factor[place, place] = max(math.sqrt(inner(fresh, fresh)), 1e-300)
