"""Value and bound of a ranking under constraints in rational arithmetic, by the narrowest structure of its set."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.certificates.rational_groups import limited
from formulations.certificates.rational_orders import assigned, routed
from formulations.certificates.rational_programs import Evidence, Rational, fractions
from formulations.errors import Refuted
from formulations.sets.collapse import BlockCollapse
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.laminar_flow import LaminarNetwork
from formulations.sets.prefix_network import PrefixNetwork, falls_in_groups
from formulations.sets.prices import covers, open_cells, pressing
from formulations.sets.soft_ranking import SoftRanking

__all__ = ["constrained", "softened"]


def constrained(problem: ConstrainedRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """A collapsed or routed set, or one of limits on prefixes, is proved with prices recovered in whole numbers; any
    other by the prices given."""
    order = np.asarray(x, dtype=np.int64)
    worth = problem.profit[np.arange(problem.positions), order].tolist()
    value = sum(map(Fraction, worth), Fraction(0))
    off = Fraction(problem.violation(order))
    stated = problem.admissible.stated
    bounds: list[Rational] = [float("inf")] if y is None else [_priced(problem, y)]
    collapse = BlockCollapse.of(stated) if off == 0 else None
    network = LaminarNetwork.of(stated) if off == 0 and collapse is None else None
    if collapse is not None:
        narrow, _ = collapse.assignment(problem.profit)
        bounds.append(assigned(narrow, collapse.rows_of(order), None).bound)
    elif network is not None:
        bounds.append(-routed(network.flow(problem.profit), network.whole_flow(order), None).bound)
    elif off == 0:
        prefixes = PrefixNetwork.of(stated)
        if not isinstance(prefixes, str) and falls_in_groups(problem.profit, prefixes.rows.group):
            bounds.append(limited(problem.profit, prefixes.rows, order))
    return Evidence(off, value, min(bounds))


def softened(problem: SoftRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """Soft constraints: the charge for what the ranking breaks, exactly; bounds by the prices given, none of which is
    beyond that of breaking its row."""
    order = np.asarray(x, dtype=np.int64)
    stated, k = problem.stated, problem.positions
    cells = np.arange(k) * problem.documents + order
    value = sum(map(Fraction, problem.worth.ravel()[cells].tolist()), Fraction(0))
    assert stated.price is not None
    held = stated.matrix[:, stated.place[cells]]
    for row in np.flatnonzero(np.isfinite(stated.price)).tolist():
        low, high = float(stated.lower[row]), float(stated.upper[row])
        entries = held.data[held.indptr[row] : held.indptr[row + 1]].tolist()
        reached = sum(map(Fraction, entries), Fraction(0))
        over = reached - Fraction(high) if np.isfinite(high) else Fraction(0)
        under = Fraction(low) - reached if np.isfinite(low) else Fraction(0)
        value -= Fraction(float(stated.price[row])) * max(over, under, Fraction(0))
    bound: Rational = float("inf") if y is None else _priced(problem, y)
    return Evidence(Fraction(problem.violation(order)), value, bound)


def _priced(problem: ConstrainedRanking, y: Floats) -> Rational:
    """What prices, or a proof by cases, bound."""
    if y.ndim == 1:
        return _case(problem, y, np.empty(0))
    rows = problem.stated.lower.size - problem.positions
    if not covers(y[:, rows:], *problem.stated.shape):
        raise Refuted("the proof by cases is incomplete: its cases are not all the leaves of one binary tree of cells")
    return max(_case(problem, case[:rows], case[rows:]) for case in y)


def _case(problem: ConstrainedRanking, y: Floats, path: Floats) -> Rational:
    """Σ price · limit + Σ_i max_j (profit - prices of the cell's rows) over the cells that are open."""
    stated, k = problem.stated, problem.positions
    price, limit = pressing(stated, y)
    pressed = zip(price.tolist(), limit.tolist(), strict=True)
    total = sum((Fraction(p) * Fraction(b) for p, b in pressed if p), Fraction(0))
    left = fractions(problem.worth.ravel()[stated.cell])
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
