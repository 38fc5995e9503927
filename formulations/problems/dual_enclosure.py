"""Exact duals near duals in double precision, for columns whose variables have no limit.

Weak duality gives a finite bound only if no reduced cost presses on a limit that does not exist. Duals in double
precision leave rounding errors there, -1e-15 instead of 0. Near them there is an exact dual with reduced costs of
exactly 0 on these columns, unless the columns depend on each other in the rows that may move. An approximate inverse
proves that it exists, and how far away it is [Neumaier and Shcherbina 2004; Jansson 2004]; the bound then holds for all
duals within this radius. A column that depends on the others is 0 too if it is the same combination of them in its cost
as in its rows, checked in rational numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin
from formulations.problems.directed_rounding import UNIT, difference

CARE = 1.0 + 1e-9  # radii and limits are worked out in double precision, and taken a little wider
MOST_ENTRIES = 4_000_000  # of the dense matrix that is inverted
DEPENDENT = 1e-9  # columns that leave less than this part of their length are taken for dependent, and checked
DENOMINATOR = 1000  # the largest denominator of the combination of a dependent column


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
    chosen, inverse = _right_inverse(matrix, weight)
    rest = np.setdiff1d(np.arange(zero.size), chosen)
    if rest.size and not _combined(columns, cost, digits, off, zero[chosen], zero[rest]):
        return None
    matrix, scale, zero = matrix[chosen], scale[chosen], zero[chosen]
    product = UNIT * (rows.size + 4) * 2.0 * (np.abs(matrix) @ np.abs(inverse))
    share = float((np.abs(np.eye(zero.size) - matrix @ inverse) + product).sum(axis=1).max()) * CARE
    if not share < 0.5:
        return None
    moved, held = duals.copy(), columns[zero]
    for _ in range(2):
        left = difference(cost[zero], held, moved, digits[zero])
        moved[rows] += inverse @ (scale * (left.high + left.low))
    left = difference(cost[zero], held, moved, digits[zero])
    wrong = scale * (np.abs(left.high) + np.abs(left.low) + left.off + off[zero]) * CARE
    radius = np.zeros(duals.size)
    radius[rows] = (np.abs(inverse) @ (wrong + share / (1.0 - share) * wrong.max())) * CARE
    firm = two_sided | ((np.abs(moved) > radius) & (np.sign(moved) == np.sign(duals))) | (duals == 0.0)
    return DualEnclosure(moved, radius) if firm.all() and np.isfinite(radius).all() else None


def _right_inverse(matrix: Floats, weight: Floats) -> tuple[Ints, Floats]:
    """A largest set of independent rows of the matrix, and a right inverse of these, small where the weight is."""
    from scipy.linalg import qr, solve_triangular

    factor, upper, order = qr((matrix * weight).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(upper))
    count = int((sizes > DEPENDENT * sizes[0]).sum())
    triangle = solve_triangular(upper[:count, :count], np.eye(count)).T
    return np.asarray(order[:count], dtype=np.int64), weight[:, None] * (factor[:, :count] @ triangle)


def _combined(columns: csr_array, cost: Floats, digits: Floats, off: Floats, basis: Ints, rest: Ints) -> bool:
    """Whether each column of `rest` is a combination of those of `basis`, in its rows and in its cost, exactly."""
    used = np.concatenate([basis, rest])
    if digits[used].any() or off[used].any():
        return False
    dense = columns[basis].toarray()
    size = unit_each(np.abs(dense).max(axis=1, initial=0.0))
    for column in rest.tolist():
        aim = columns[[column]].toarray().ravel()
        weights = np.linalg.lstsq((dense / size[:, None]).T, aim, rcond=None)[0] / size
        exact = [Fraction(value).limit_denominator(DENOMINATOR) for value in weights.tolist()]
        total: dict[int, Any] = {row: -Fraction(value) for row, value in enumerate(aim.tolist()) if value}
        worth = -Fraction(float(cost[column]))
        for part, share in zip(basis.tolist(), exact, strict=True):
            if not share:
                continue
            worth += share * Fraction(float(cost[part]))
            entries = slice(columns.indptr[part], columns.indptr[part + 1])
            for row, value in zip(columns.indices[entries].tolist(), columns.data[entries].tolist(), strict=True):
                total[row] = total.get(row, Fraction(0)) + share * Fraction(value)
        if worth or any(total.values()):
            return False
    return True
