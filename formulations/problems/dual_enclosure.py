"""Exact duals near duals in double precision, for columns whose variables have no limit.

Weak duality gives a finite bound only if no reduced cost presses on a limit that does not exist. Duals in double
precision leave rounding errors there, -1e-15 instead of 0. Near them there is an exact dual with reduced costs of
exactly 0 on these columns, unless the columns depend on each other in the rows that may move. An approximate inverse
proves that it exists, and how far away it is [Neumaier and Shcherbina 2004; Jansson 2004]; the bound then holds for all
duals within this radius. Where columns depend on each other, the exact dual is computed in rational numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin
from formulations.problems.directed_rounding import UNIT, difference
from formulations.time_limit import is_out_of_time

CARE = 1.0 + 1e-9  # radii and limits are worked out in double precision, and taken a little wider
MOST_ENTRIES = 4_000_000  # of the dense matrix that is inverted
DEPENDENT = 1e-9  # columns that leave less than this part of their length are taken for dependent
MOST_OPERATIONS = 100_000  # in rational numbers
RIGHT = -1  # the key of an equation's right side
MOST_BITS = 4000  # of a rational number


@dataclass(frozen=True, eq=False)
class DualEnclosure(CompactReprMixin):
    """`duals`, one a row, and `radius`: within it there is a dual with reduced costs 0 at the columns in question."""

    duals: Floats
    radius: Floats


def unit_each(values: Floats) -> Floats:
    """The power of two at or above each value (1 for 0)."""
    return np.where(values > 0.0, np.ldexp(1.0, np.frexp(values)[1]), 1.0)


def enclosed_duals(
    columns: csr_array, cost: Floats, digits: Floats, off: Floats, duals: Floats, two_sided: Bools, zero: Ints
) -> DualEnclosure | None:
    """Duals with reduced costs (cost + digits) - columns @ duals of exactly 0 at the columns `zero`, or None.

    columns: the matrix of the program, a row a column. off: bounds of the errors of cost + digits. two_sided: the rows
    with two limits, whose duals may change their sign; other duals move if they are not 0, and do not change it.
    """
    held = columns[zero]
    touched = np.zeros(duals.size, dtype=bool)
    touched[held.indices[held.data != 0.0]] = True
    rows = np.flatnonzero(touched & (two_sided | (duals != 0.0)))
    if zero.size * max(rows.size, zero.size) > MOST_ENTRIES or not rows.size:
        return None
    matrix = held[:, rows].toarray()
    largest = np.abs(matrix).max(axis=1)
    if not (largest > 0.0).all():
        return None
    scale = 1.0 / unit_each(largest)
    matrix *= scale[:, None]
    typical = float(np.abs(duals).max()) * 1e-3 or 1.0
    weight = unit_each(np.where(two_sided[rows], np.maximum(np.abs(duals[rows]), typical), np.abs(duals[rows])))
    inverse = _right_inverse(matrix, weight)
    if inverse is None:
        return None if off[zero].any() else _exact_duals(held, cost[zero], digits[zero], duals, rows, two_sided)
    product = UNIT * (rows.size + 4) * 2.0 * (np.abs(matrix) @ np.abs(inverse))
    share = float((np.abs(np.eye(zero.size) - matrix @ inverse) + product).sum(axis=1).max()) * CARE
    if not share < 0.5:
        return None
    moved = duals.copy()
    for _ in range(2):
        left = difference(cost[zero], held, moved, digits[zero])
        moved[rows] += inverse @ (scale * (left.high + left.low))
    left = difference(cost[zero], held, moved, digits[zero])
    wrong = scale * (np.abs(left.high) + np.abs(left.low) + left.off + off[zero]) * CARE
    radius = np.zeros(duals.size)
    radius[rows] = (np.abs(inverse) @ (wrong + share / (1.0 - share) * wrong.max())) * CARE
    return _firm(moved, radius, duals, two_sided)


def _firm(moved: Floats, radius: Floats, duals: Floats, two_sided: Bools) -> DualEnclosure | None:
    """The enclosure if no dual of a row with one limit changes its sign within it."""
    firm = two_sided | ((np.abs(moved) > radius) & (np.sign(moved) == np.sign(duals))) | (duals == 0.0)
    return DualEnclosure(moved, radius) if firm.all() and np.isfinite(radius).all() else None


def _right_inverse(matrix: Floats, weight: Floats) -> Floats | None:
    """A right inverse, small where the weight is; None if rows of the matrix depend on each other."""
    from scipy.linalg import qr, solve_triangular

    count = matrix.shape[0]
    if count > matrix.shape[1]:
        return None
    factor, upper, order = qr((matrix * weight).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(upper))
    if not sizes[-1] > DEPENDENT * sizes[0]:
        return None
    inverse = np.empty((weight.size, count))
    inverse[:, order] = weight[:, None] * (factor @ solve_triangular(upper, np.eye(count)).T)
    return inverse


def _exact_duals(
    held: csr_array, cost: Floats, digits: Floats, duals: Floats, rows: Ints, two_sided: Bools
) -> DualEnclosure | None:
    """Duals with held @ duals = cost + digits exactly, by elimination; those that it leaves free stay as they are."""
    free = set(rows.tolist())
    is_dense = 4 * held.nnz > cost.size * rows.size
    if is_out_of_time() or (is_dense and cost.size * held.nnz > 4 * MOST_OPERATIONS):
        return None
    equations: list[dict[int, Fraction]] = []
    for part in range(cost.size):
        entries = slice(held.indptr[part], held.indptr[part + 1])
        pairs = zip(held.indices[entries].tolist(), held.data[entries].tolist(), strict=True)
        equation = {row: Fraction(value) for row, value in pairs if value and row in free}
        equations.append({**equation, RIGHT: Fraction(float(cost[part])) + Fraction(float(digits[part]))})
    solved, operations = [], 0
    while equations:
        equations.sort(key=len)
        equation = equations.pop(0)
        right = equation.pop(RIGHT)
        if not equation:
            if right:
                return None
            continue
        pivot = max(equation, key=lambda row: (abs(duals[row]) + two_sided[row]) * abs(float(equation[row])))
        lead = equation.pop(pivot)
        equation = {row: value / lead for row, value in equation.items()}
        right /= lead
        solved.append((pivot, equation, right))
        for other in equations:
            factor = other.pop(pivot, None)
            if factor is None:
                continue
            operations += len(equation)
            other[RIGHT] -= factor * right
            for row, value in equation.items():
                changed = other.get(row, 0) - factor * value
                if changed:
                    other[row] = changed
                else:
                    other.pop(row, None)
            if operations > MOST_OPERATIONS or right.denominator.bit_length() > MOST_BITS:
                return None
    exact = {row: Fraction(float(duals[row])) for row in free}
    for pivot, equation, right in reversed(solved):
        exact[pivot] = right - sum(value * exact[row] for row, value in equation.items())
    moved, radius = duals.copy(), np.zeros(duals.size)
    for row, value in exact.items():
        moved[row] = float(value)
        radius[row] = float(abs(value - Fraction(float(moved[row])))) * CARE
    return _firm(moved, radius, duals, two_sided)
