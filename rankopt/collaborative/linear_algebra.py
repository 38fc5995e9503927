"""Linear algebra over rated pairs: many small ridge systems at once, products with sparse slopes, and sums of entries.

One compiled kernel forms and solves the normal equations of a block.

For each row i, with the entries e of bounds[i] : bounds[i + 1], minimize over x (d) and the offset z

    ½ Σ_e w_e (⟨other[columns[e]], x⟩ + z - target_e)² + (λ_i/2)‖x‖² + (μ_i/2) z²

plus a quadratic function that is the same for all rows. Where there are as many entries as unknowns, or such a
function: (AᵀWA + Λ) x = AᵀWt; where there are fewer, x = Λ⁻¹Aᵀ(AΛ⁻¹Aᵀ + W⁻¹)⁻¹ t, the smaller system of the two. The
right side is one more column of the matrix, so that elimination is substitution too. Four rows are taken at a time:
each number of the matrix is read and written once for four products.

Sums over rows and over columns use no temporary for each entry, and have bounds of their rounding errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled
from formulations.parallel import share_ranges

NONE = np.zeros((0, 0))
CHUNK = 64  # entries that are gathered before they are added to the matrix; a multiple of four
ENTRIES = 1 << 12  # entries (of complete rows) that one thread takes at a time


def solve_ridges(
    bounds: Ints, columns: Shorts, target: Floats, weights: Floats, other: Floats, penalty: Floats,
    offset_penalty: Floats, common: Floats = NONE,
) -> tuple[Floats, Floats]:  # fmt: skip
    """x (rows, d) and z (rows,) of every row. weights: (entries,) or empty, which is 1 everywhere. penalty: (rows,) λ >
    0. offset_penalty: (rows,) μ > 0, or empty: no z. common: (p, p + 1) normal equations, right side last, that are
    added to those of each row, or empty. Parallel over rows: bit-identical for any number of threads."""
    rows = bounds.size - 1
    found, offset = np.zeros((rows, other.shape[1])), np.zeros(rows)
    other = np.ascontiguousarray(other)
    arguments = (bounds, columns, target, weights, other, penalty, offset_penalty, common)
    if rows:
        share_ranges(bounds, ENTRIES, lambda first, last: _ridges(*arguments, first, last, found, offset))
    return found, offset


@compiled(reassociate=True, internal=True)
def _add(
    matrix: Out[Table[Floats]], rows: Table[Floats], r: int, begin: int, size: int, width: int, sign: float
) -> None:
    """matrix[i, j] += sign Σ rows[r + s, i] rows[r + s, j] over s < 4, for begin <= i < size, i <= j < width. Four
    lines at a time, so some numbers left of the diagonal, which nobody reads, are written too."""
    first, second, third, fourth = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
    i = begin
    while i + 4 <= size:
        one, two, three, four = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        a1, a2, a3, a4 = sign * first[i], sign * second[i], sign * third[i], sign * fourth[i]
        b1, b2, b3, b4 = sign * first[i + 1], sign * second[i + 1], sign * third[i + 1], sign * fourth[i + 1]
        c1, c2, c3, c4 = sign * first[i + 2], sign * second[i + 2], sign * third[i + 2], sign * fourth[i + 2]
        d1, d2, d3, d4 = sign * first[i + 3], sign * second[i + 3], sign * third[i + 3], sign * fourth[i + 3]
        for j in range(i, width):
            x1, x2, x3, x4 = first[j], second[j], third[j], fourth[j]
            one[j] += a1 * x1 + a2 * x2 + a3 * x3 + a4 * x4
            two[j] += b1 * x1 + b2 * x2 + b3 * x3 + b4 * x4
            three[j] += c1 * x1 + c2 * x2 + c3 * x3 + c4 * x4
            four[j] += d1 * x1 + d2 * x2 + d3 * x3 + d4 * x4
        i += 4
    while i < size:
        line = matrix[i]
        a1, a2, a3, a4 = sign * first[i], sign * second[i], sign * third[i], sign * fourth[i]
        for j in range(i, width):
            line[j] += a1 * first[j] + a2 * second[j] + a3 * third[j] + a4 * fourth[j]
        i += 1


@compiled(reassociate=True, internal=True)
def _solve_positive_definite(matrix: Out[Table[Floats]], size: int, found: Out[Floats]) -> None:
    """found = matrix[:size, :size]⁻¹ matrix[:, size], of a positive definite matrix of which the upper triangle is
    read and overwritten by its Cholesky factor."""
    width = size + 1
    for k in range(0, size, 4):
        end = min(k + 4, size)
        for pivot in range(k, end):
            line = matrix[pivot]
            scale = 1.0 / math.sqrt(line[pivot])
            for j in range(pivot, width):
                line[j] *= scale
            for i in range(pivot + 1, end):
                below, factor = matrix[i], line[i]
                for j in range(i, width):
                    below[j] -= factor * line[j]
        if end == k + 4:
            _add(matrix, matrix, k, end, size, width, -1.0)
    for i in range(size - 1, -1, -1):
        line = matrix[i]
        total = line[size]
        for j in range(i + 1, size):
            total -= line[j] * found[j]
        found[i] = total / line[i]


@compiled()
def _ridges(
    bounds: Ints, columns: Shorts, target: Floats, weights: Floats, other: Table[Floats], penalty: Floats,
    offset_penalty: Floats, common: Table[Floats], first: int, last: int, found: Out[Table[Floats]],
    offset: Out[Floats],
) -> None:  # fmt: skip
    """Solve the rows first <= i < last."""
    d = other.shape[1]
    p = d + 1 if offset_penalty.size else d
    matrix = np.empty((p + 1, p + 2))
    gathered = np.zeros((max(CHUNK, p + 4), p + 2))
    solution = np.empty(p + 1)
    for i in range(first, last):
        low, n = bounds[i], bounds[i + 1] - bounds[i]
        if (n == 0 and not common.size) or p == 0:
            continue
        z = offset_penalty[i] if p > d else 0.0
        if n >= p or common.size:
            for a in range(p):
                for b in range(a, p + 1):
                    matrix[a, b] = common[a, b] if common.size else 0.0
                matrix[a, a] += penalty[i] if a < d else z
            held = 0
            for e in range(low, low + n):
                w = math.sqrt(weights[e]) if weights.size else 1.0
                row, line = other[columns[e]], gathered[held]
                for a in range(d):
                    line[a] = w * row[a]
                line[d] = w
                line[p] = w * target[e]
                held += 1
                if held == CHUNK or e == low + n - 1:
                    while held % 4:
                        for a in range(p + 1):
                            gathered[held, a] = 0.0
                        held += 1
                    for r in range(0, held, 4):
                        _add(matrix, gathered, r, 0, p, p + 1, 1.0)
                    held = 0
            _solve_positive_definite(matrix, p, solution)
            for a in range(d):
                found[i, a] = solution[a]
            if p > d:
                offset[i] = solution[d]
        else:
            root = 1.0 / math.sqrt(penalty[i])
            for e in range(n):
                row = other[columns[low + e]]
                for a in range(d):
                    gathered[a, e] = row[a] * root
                for a in range(d, p):
                    gathered[a, e] = 1.0 / math.sqrt(z)
                for a in range(p, p + 3):
                    gathered[a, e] = 0.0
                for b in range(e, n):
                    matrix[e, b] = 0.0
                matrix[e, e] = 1.0 / weights[low + e] if weights.size else 1.0
                matrix[e, n] = target[low + e]
            for r in range(0, p, 4):
                _add(matrix, gathered, r, 0, n, n, 1.0)
            _solve_positive_definite(matrix, n, solution)
            total = 0.0
            for e in range(n):
                row = other[columns[low + e]]
                factor = solution[e] / penalty[i]
                for a in range(d):
                    found[i, a] += factor * row[a]
                total += solution[e]
            if p > d:
                offset[i] = total / z


UNIT = 2.0**-53  # relative error of one rounding; a sum of n terms loses at most n times that of their sizes


def row_sums(bounds: Ints, values: Floats) -> Floats:
    """(rows,) the sum over the entries of each row."""
    found, filled = np.zeros(bounds.size - 1), np.diff(bounds) > 0
    found[filled] = np.add.reduceat(values, bounds[:-1][filled])
    return found


def rated_table(bounds: Ints, columns: Shorts, values: Any, width: int) -> Any:
    """The CSR array (rows, width) of one number for each entry, which shares their memory."""
    from scipy.sparse import csr_array

    kind = columns.dtype if values.size < np.iinfo(np.int32).max else np.int64
    parts = (values, columns.astype(kind, copy=False), bounds.astype(kind))
    return csr_array(parts, shape=(bounds.size - 1, width), copy=False)


@compiled()
def add_sizes(bounds: Ints, columns: Shorts, values: Floats, rows: Out[Floats], found: Out[Floats]) -> None:
    """rows: (rows,) the sum of |values| over the entries of each row; that of each column is added to `found`."""
    for i in range(bounds.size - 1):
        total = 0.0
        for e in range(bounds[i], bounds[i + 1]):
            total += abs(values[e])
            found[columns[e]] += abs(values[e])
        rows[i] = total


@compiled()
def squared_loss(bounds: Ints, values: Floats, weights: Floats, slopes: Out[Floats], heights: Out[Floats]) -> float:
    """Σ (w/2)(f - y)² of scores f. heights: (rows,) -Σ (ψ²/(2w) + ψ y), ψ = w (f - y), rounded down by more than the
    sum may have lost. slopes: f, and ψ afterwards."""
    loss = 0.0
    for i in range(bounds.size - 1):
        square, product, size = 0.0, 0.0, 0.0
        for e in range(bounds[i], bounds[i + 1]):
            away = slopes[e] - values[e]
            w = weights[e] if weights.size else 1.0
            slopes[e] = w * away
            square += 0.5 * w * away * away
            product += w * away * values[e]
            size += abs(w * away * values[e])
        heights[i] = -square - product - UNIT * (bounds[i + 1] - bounds[i] + 8) * (square + size)
        loss += square
    return loss
