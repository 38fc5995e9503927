"""Value and bound of a ranking under constraints in rational arithmetic, by the narrowest structure of its set."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.modeling.constrained_ranking import ConstrainedRanking
from formulations.modeling.rational_orders import assigned, routed
from formulations.modeling.rationals import Evidence, Rational, fractions
from formulations.modeling.set_cases import covers, open_cells

__all__ = ["constrained"]


def constrained(problem: ConstrainedRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """A collapsed or routed set is proved with prices recovered in whole numbers; any other by the prices given."""
    order = np.asarray(x, dtype=np.int64)
    worth = problem.profit[np.arange(problem.positions), order].tolist()
    value = sum(map(Fraction, worth), Fraction(0))
    off = Fraction(problem.violation(order))
    stated = problem.admissible.stated
    bounds: list[Rational] = [float("inf")] if y is None else [_priced(problem, y)]
    if off == 0 and stated.collapse is not None:
        narrow, _ = stated.collapse.assignment(problem.profit)
        bounds.append(assigned(narrow, stated.collapse.rows_of(order), None).bound)
    elif off == 0 and stated.network is not None:
        bounds.append(-routed(stated.network.flow(problem.profit), stated.network.whole_flow(order), None).bound)
    return Evidence(off, value, min(bounds))


def _priced(problem: ConstrainedRanking, y: Floats) -> Rational:
    """What prices, or a proof by cases, bound."""
    if y.ndim == 1:
        return _case(problem, y, np.empty(0))
    rows = problem.admissible.stated.lower.size - problem.positions
    if not covers(y[:, rows:]):
        return float("inf")
    return max(_case(problem, case[:rows], case[rows:]) for case in y)


def _case(problem: ConstrainedRanking, y: Floats, path: Floats) -> Rational:
    """Σ price · limit + Σ_i max_j (profit - prices of the cell's rows) over the cells that are open."""
    stated, k = problem.admissible.stated, problem.positions
    price, limit = problem.pressing(y)
    pressed = zip(price.tolist(), limit.tolist(), strict=True)
    total = sum((Fraction(p) * Fraction(b) for p, b in pressed if p), Fraction(0))
    left = fractions(problem.profit.ravel()[stated.cell])
    exact = fractions(price)
    entries = stated.weights.tocoo()
    for cell, row, weight in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        if exact[row]:
            left[cell] -= Fraction(weight) * exact[row]
    open_ = open_cells(path, k, problem.documents)[stated.cell] == 0
    position = stated.cell // problem.documents
    for i in range(k):
        earned = left[(position == i) & open_]
        if not earned.size:
            return -float("inf")
        total += max(earned)
    return total
