"""Value, violation and bound of a point of a program with real variables, in rational arithmetic.

Doubles are whole multiples of powers of two, so every number below is exact and no rounding enters: a gap of 0 is a
proof of optimality, any other gap a proven distance from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.linear_program import LinearProgram
from formulations.forms.quadratic_program import QuadraticProgram

__all__ = ["Evidence", "Exact", "Rational", "inner", "linear", "margin", "quadratic"]

Rational = Fraction | float
"""A fraction, or a float that is infinite."""

Exact = NDArray[Any]
"""An array of Python's whole numbers or fractions."""


@dataclass(frozen=True)
class Evidence:
    violation: Rational
    value: Fraction
    bound: Rational


def linear(problem: LinearProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    point = fractions(x)
    off = _broken(problem, point)
    if problem.integer is not None:
        off = max([off, *(abs(value - round(value)) for value in point[problem.integer])])
    cost = fractions(problem.objective)
    sign = -1 if problem.maximises else 1
    bound: Rational = -sign * float("inf") if y is None else sign * _dual(problem, sign * cost, fractions(y))
    return Evidence(off, inner(cost, point), bound)


def quadratic(problem: QuadraticProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    point, linear = fractions(x), fractions(problem.linear)
    value = inner(linear, point) + inner(point, _times(problem.hessian, point)) / 2
    rows = problem.linearised(problem.linear)
    bound: Rational = -float("inf")
    if y is not None:
        prices, z = fractions(y[: problem.row_lower.size]), fractions(y[problem.row_lower.size :])
        bent = _times(problem.hessian, z)
        bound = _dual(rows, bent + linear, prices) - inner(z, bent) / 2
    return Evidence(_broken(rows, point), value, bound)


def margin(problem: GroupedSimplexQP, x: NDArray[Any], y: Floats | None) -> Evidence:
    alpha, capacity, lam = fractions(x), fractions(problem.capacity), Fraction(problem.lam)
    slopes, values = fractions(problem.slopes), fractions(problem.values)
    used = [sum(alpha[problem.group == g], Fraction(0)) for g in range(capacity.size)]
    off = max([Fraction(0), *(-alpha), *(np.array(used, dtype=object) - capacity)])
    step = slopes.T @ alpha
    value = inner(values, alpha) - inner(step, step) / (2 * lam)
    bounds = []
    for move in [-step / lam] + ([] if y is None else [fractions(y)]):
        heights = values + slopes @ move
        tops = [max([Fraction(0), *heights[problem.group == g]]) for g in range(capacity.size)]
        bounds.append(lam * inner(move, move) / 2 + inner(capacity, np.array(tops, dtype=object)))
    return Evidence(off, value, min(bounds))


def fractions(values: NDArray[Any]) -> Exact:
    array = np.empty(np.shape(values), dtype=object)
    array[...] = np.vectorize(Fraction, otypes=[object])(np.asarray(values, dtype=np.float64)) if array.size else array
    return array


def inner(left: Iterable[Any], right: Iterable[Any]) -> Fraction:
    return sum((Fraction(a) * b for a, b in zip(left, right, strict=True)), Fraction(0))


def _times(matrix: Any, vector: Exact) -> Exact:
    """matrix @ vector, entry by entry."""
    product = np.array([Fraction(0)] * matrix.shape[0], dtype=object)
    entries = matrix.tocoo()
    for i, j, weight in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        product[i] += Fraction(weight) * vector[j]
    return product


def _broken(problem: LinearProgram, point: Exact) -> Fraction:
    """The worst violation of a limit or row, rows in their units."""
    rows = _times(problem.matrix, point)
    worst = Fraction(0)
    for values, lower, upper, units in (
        (rows, problem.row_lower, problem.row_upper, problem.row_units),
        (point, problem.lower, problem.upper, np.ones(point.size)),
    ):
        for value, low, high, unit in zip(values, lower.tolist(), upper.tolist(), units.tolist(), strict=True):
            if low > -np.inf:
                worst = max(worst, (Fraction(low) - value) / Fraction(unit))
            if high < np.inf:
                worst = max(worst, (value - Fraction(high)) / Fraction(unit))
    return worst


def _dual(problem: LinearProgram, cost: Exact, prices: Exact) -> Rational:
    """The bound of weak duality for min cost · x over the program's feasible set."""
    pressing = np.where(prices > 0, np.isfinite(problem.row_lower), np.isfinite(problem.row_upper))
    prices = prices * pressing.astype(int)
    reduced = cost - _times(problem.matrix.T, prices)
    total: Rational = Fraction(0)
    for values, lower, upper in (
        (prices, problem.row_lower, problem.row_upper),
        (reduced, problem.lower, problem.upper),
    ):
        for value, low, high in zip(values, lower.tolist(), upper.tolist(), strict=True):
            limit = low if value > 0 else high
            if value and np.isinf(limit):
                return -float("inf")
            total += value * Fraction(limit) if value else 0
    return total
