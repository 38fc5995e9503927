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
    """Σ price · limit + Σ_i max_j (profit - prices of the cell's rows); a price on a limit that is not there is 0."""
    stated, k = problem.admissible.stated, problem.positions
    low, high = stated.lower[k:], stated.upper[k:]
    price = np.where(np.where(y > 0, np.isfinite(high), np.isfinite(low)), y, 0.0)
    limit = np.where(price > 0, high, np.where(price < 0, low, 0.0))
    total = sum(
        (Fraction(p) * Fraction(b) for p, b in zip(price.tolist(), limit.tolist(), strict=True) if p), Fraction(0)
    )
    left = fractions(problem.profit.ravel()[stated.cell])
    exact = fractions(price)
    entries = stated.matrix[k:].tocoo()
    for row, cell, weight in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        if exact[row]:
            left[cell] -= Fraction(weight) * exact[row]
    position = stated.cell // problem.documents
    return total + sum((max(left[position == i]) for i in range(k)), Fraction(0))
