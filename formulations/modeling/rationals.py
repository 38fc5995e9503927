"""Value, violation and bound of a point in rational arithmetic.

Doubles are whole multiples of powers of two, so every number below is exact and no rounding enters: a gap of 0 is a
proof of optimality, any other gap a proven distance from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.errors import Unsupported
from formulations.modeling.assignment import Assignment
from formulations.modeling.flow import MinCostFlow, residual_potentials
from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.integer_costs import exact_costs
from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.quadratic_program import QuadraticProgram
from formulations.modeling.rank_two import RankTwoAssignment

__all__ = ["Evidence", "evidence"]

Rational = Fraction | float
"""A fraction, or a float that is infinite."""

Exact = NDArray[Any]
"""An array of Python's whole numbers or fractions."""

PASSES = 64
"""Rounds of raising prices; more are needed only where the order is not quite optimal."""


@dataclass(frozen=True)
class Evidence:
    violation: Rational
    value: Fraction
    bound: Rational


@singledispatch
def evidence(problem: Form, x: NDArray[Any], y: Floats | None) -> Evidence:
    """Violation and value of x, and the best bound that follows from y or from prices recovered here."""
    raise Unsupported(f"{type(problem).__name__} has no rule for rational arithmetic; certify it with exact=False")


@evidence.register
def _(problem: RankTwoAssignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    decay, scores = _whole(problem.decay), _whole(problem.scores)
    discount, gain = _whole(problem.discount), _whole(problem.gain)
    left, right = decay[1] + scores[1], discount[1] + gain[1]
    shared = max(left, right)
    decayed = np.outer(decay[0], scores[0]) * (1 << shared - left)
    discounted = np.outer(discount[0], gain[0]) * (1 << shared - right)
    return _placed(decayed - discounted, shared, np.asarray(x, dtype=np.int64), y)


@evidence.register
def _(problem: Assignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    profit, exponent = _whole(problem.profit)
    if problem.allowed is not None:  # so far below that no price reaches it
        beyond = 4 * (problem.positions + 1) * int(max(abs(profit.min()), abs(profit.max()))) + 1
        profit = np.where(problem.allowed, profit, -beyond)
    return _placed(profit, exponent, np.asarray(x, dtype=np.int64), y)


def _placed(profit: Exact, exponent: int, order: Ints, y: Floats | None) -> Evidence:
    """For profit / 2^exponent: prices that settle prove the order optimal; else the given ones bound it."""
    from formulations.modeling.price_kernel import settle

    positions, documents = profit.shape
    value = Fraction(sum(profit[np.arange(positions), order].tolist()), 1 << exponent)
    prices = np.array([0] * documents, dtype=object)
    settle(profit, order, prices, 0, min(PASSES, positions + 1))
    bounds = [_priced(profit, exponent, [Fraction(price, 1 << exponent) for price in prices])]
    if y is not None:
        bounds.append(_priced(profit, exponent, [Fraction(price) for price in y.tolist()]))
    return Evidence(Fraction(0), value, min(bounds))


def _priced(profit: Exact, exponent: int, prices: list[Fraction]) -> Fraction:
    """Σ v + Σ_i max_j (profit[i, j] - v[j]), v >= 0 where a document may stay out."""
    positions, documents = profit.shape
    if documents > positions:
        prices = [max(price, Fraction(0)) for price in prices]
    below = max(price.denominator for price in prices)
    shared = max(below, 1 << exponent)
    whole = np.array([price.numerator * (shared // price.denominator) for price in prices], dtype=object)
    best = (profit * (shared >> exponent) - whole).max(axis=1)
    return Fraction(int(whole.sum()) + int(best.sum()), shared)


@evidence.register
def _(problem: MinCostFlow, x: NDArray[Any], y: Floats | None) -> Evidence:
    flow = np.array([Fraction(amount) for amount in np.asarray(x, dtype=float).tolist()], dtype=object)
    costs = exact_costs(problem.cost)
    cost = np.array(costs.values, dtype=object)
    net = -problem.supply.astype(object)
    np.add.at(net, problem.tail, flow)
    np.subtract.at(net, problem.head, flow)
    off = [*np.abs(net), *(-flow), *(flow - problem.capacity.astype(object))]
    below = 1 << costs.exponent
    potentials = [residual_potentials(problem, np.asarray(x), cost, noise=0)]
    if y is not None:
        potentials.append(np.array([Fraction(price) * below for price in y.tolist()], dtype=object))
    bounds = []
    for price in potentials:
        reduced = cost - price[problem.tail] + price[problem.head]
        pressed = _inner(np.minimum(reduced, 0), problem.capacity.tolist())
        bounds.append((_inner(price, problem.supply.tolist()) + pressed) / below)
    return Evidence(max(Fraction(0), *off), _inner(cost, flow) / below, max(bounds))


@evidence.register
def _(problem: LinearProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    point = _fractions(x)
    off = _broken(problem, point)
    if problem.integer is not None:
        off = max([off, *(abs(value - round(value)) for value in point[problem.integer])])
    cost = _fractions(problem.objective)
    sign = -1 if problem.maximises else 1
    bound: Rational = -sign * float("inf") if y is None else sign * _dual(problem, sign * cost, _fractions(y))
    return Evidence(off, _inner(cost, point), bound)


@evidence.register
def _(problem: QuadraticProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    point, linear = _fractions(x), _fractions(problem.linear)
    value = _inner(linear, point) + _inner(point, _times(problem.hessian, point)) / 2
    rows = problem.linearised(problem.linear)
    bound: Rational = -float("inf")
    if y is not None:
        prices, z = _fractions(y[: problem.row_lower.size]), _fractions(y[problem.row_lower.size :])
        bent = _times(problem.hessian, z)
        bound = _dual(rows, bent + linear, prices) - _inner(z, bent) / 2
    return Evidence(_broken(rows, point), value, bound)


@evidence.register
def _(problem: GroupedSimplexQP, x: NDArray[Any], y: Floats | None) -> Evidence:
    alpha, capacity, lam = _fractions(x), _fractions(problem.capacity), Fraction(problem.lam)
    slopes, values = _fractions(problem.slopes), _fractions(problem.values)
    used = [sum(alpha[problem.group == g], Fraction(0)) for g in range(capacity.size)]
    off = max([Fraction(0), *(-alpha), *(np.array(used, dtype=object) - capacity)])
    step = slopes.T @ alpha
    value = _inner(values, alpha) - _inner(step, step) / (2 * lam)
    bounds = []
    for move in [-step / lam] + ([] if y is None else [_fractions(y)]):
        heights = values + slopes @ move
        tops = [max([Fraction(0), *heights[problem.group == g]]) for g in range(capacity.size)]
        bounds.append(lam * _inner(move, move) / 2 + _inner(capacity, np.array(tops, dtype=object)))
    return Evidence(off, value, min(bounds))


def _whole(values: Floats) -> tuple[Exact, int]:
    """Whole numbers w and an exponent e with values = w / 2^e."""
    costs = exact_costs(values.ravel())
    return np.array(costs.values, dtype=object).reshape(values.shape), costs.exponent


def _fractions(values: NDArray[Any]) -> Exact:
    array = np.empty(np.shape(values), dtype=object)
    array[...] = np.vectorize(Fraction, otypes=[object])(np.asarray(values, dtype=np.float64)) if array.size else array
    return array


def _inner(left: Iterable[Any], right: Iterable[Any]) -> Fraction:
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
