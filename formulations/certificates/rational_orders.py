"""Value and bound of an order or a whole flow in rational arithmetic.

Costs become whole numbers by a common power of two; prices are recovered in whole numbers too. So an optimal order has
the gap 0, not nearly so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.integer_costs import exact_costs
from formulations.certificates.rational_programs import Evidence, Exact, inner
from formulations.forms.assignment import Assignment
from formulations.forms.min_cost_flow import MinCostFlow, residual_potentials
from formulations.forms.rank_two_assignment import RankTwoAssignment

__all__ = ["assigned", "ranked", "routed"]

PASSES = 64
"""Rounds of raising prices; more are needed only where the order is not quite optimal."""

NEAR = 40
"""Given prices are believed to so many binary digits of the largest profit."""


def ranked(problem: RankTwoAssignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    decay, scores = _whole(problem.decay), _whole(problem.scores)
    discount, gain = _whole(problem.discount), _whole(problem.gain)
    left, right = decay[1] + scores[1], discount[1] + gain[1]
    shared = max(left, right)
    decayed = np.outer(decay[0], scores[0]) * (1 << shared - left)
    discounted = np.outer(discount[0], gain[0]) * (1 << shared - right)
    return _placed(decayed - discounted, shared, np.asarray(x, dtype=np.int64), y)


def assigned(problem: Assignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    profit, exponent = _whole(problem.profit)
    if problem.allowed is not None:  # so far below that no price reaches it
        beyond = 4 * (problem.positions + 1) * int(max(abs(profit.min()), abs(profit.max()))) + 1
        profit = np.where(problem.allowed, profit, -beyond)
    return _placed(profit, exponent, np.asarray(x, dtype=np.int64), y)


def _placed(profit: Exact, exponent: int, order: Ints, y: Floats | None) -> Evidence:
    """For profit / 2^exponent: prices that settle prove the order optimal; else the given ones bound it."""
    from formulations.forms.assignment_prices import settle

    positions, documents = profit.shape
    value = Fraction(sum(profit[np.arange(positions), order].tolist()), 1 << exponent)
    nothing = np.array([0] * documents, dtype=object)
    starts = [nothing] if y is None else [_below(y, exponent, int(np.abs(profit).max()), order), nothing]
    bounds = []
    for prices in starts:
        settle(profit, order, prices, 0, min(PASSES, positions + 1))
        bounds.append(_priced(profit, exponent, [Fraction(price, 1 << exponent) for price in prices]))
        if bounds[-1] == value:  # no bound is better
            return Evidence(Fraction(0), value, value)
    if y is not None:
        bounds.append(_priced(profit, exponent, [Fraction(price) for price in y.tolist()]))
    return Evidence(Fraction(0), value, min(bounds))


def _below(y: Floats, exponent: int, largest: int, order: Ints) -> Exact:
    """Whole prices just below y, from which few rises lead to prices that settle; 0 for documents that stay out."""
    prices = np.array([0] * y.size, dtype=object)
    margin = largest >> NEAR
    for document in order.tolist():
        prices[document] = max(0, int(Fraction(float(y[document])) * (1 << exponent)) - margin)
    return prices


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


def routed(problem: MinCostFlow, x: NDArray[Any], y: Floats | None) -> Evidence:
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
        pressed = inner(np.minimum(reduced, 0), problem.capacity.tolist())
        bounds.append((inner(price, problem.supply.tolist()) + pressed) / below)
    return Evidence(max(Fraction(0), *off), inner(cost, flow) / below, max(bounds))


def _whole(values: Floats) -> tuple[Exact, int]:
    """Whole numbers w and an exponent e with values = w / 2^e."""
    costs = exact_costs(values.ravel())
    return np.array(costs.values, dtype=object).reshape(values.shape), costs.exponent
