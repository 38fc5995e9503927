"""From a point of the linear program of a ranking set to the ranking at a vertex of its optimal face.

Total unimodularity speaks of vertices, and interior-point and first-order methods return points inside the optimal face
where there are ties. The cells that carry mass span a face; the simplex method ends at one of its vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.errors import Fractional, SolverFailed
from formulations.modeling.vertex import THRESHOLDS

if TYPE_CHECKING:
    from formulations.modeling.constrained_ranking import ConstrainedRanking

__all__ = ["order_on_face"]

WHOLE = 1e-6
"""How far from 0 and 1 an entry may be that is only rounded."""

LOST = 1e-7
"""How much less than its point a ranking may be worth, a position and relative to the largest profit."""


def order_on_face(problem: ConstrainedRanking, mass: Floats) -> Ints:
    """The best ranking among the cells that carry mass: one entry an allowed cell, a point of the linear program.

    Where the set collapses, an assignment on these cells; else crossover, by the simplex method on the face. What
    counts as no mass falls until the face holds a ranking worth what the point is worth: a thousand tied cells may
    share one unit. Raises `Fractional` where the best vertex is not whole, and `SolverFailed` for a point
    that is no rounding error away from the polytope.
    """
    stated = problem.admissible.stated
    k, n = stated.shape
    row, column = np.divmod(stated.cell, n)
    heavy = mass > 0.5
    if np.abs(mass - heavy).max(initial=0.0) < WHOLE and np.array_equal(np.sort(row[heavy]), np.arange(k)):
        order = np.empty(k, dtype=np.int64)
        order[row[heavy]] = column[heavy]
        return order
    held = np.bincount(row, mass, k)
    if not np.abs(held - 1.0).max() <= 0.05:
        raise SolverFailed(f"a position holds {held[np.abs(held - 1.0).argmax()]:.3g} documents where it should hold 1")
    aim = float(problem.profit.ravel()[stated.cell] @ mass) - LOST * k * problem.scale
    found: list[Ints] = []
    fractional: Fractional | None = None
    for threshold in THRESHOLDS:
        support = mass > threshold
        try:
            vertex = _assigned(problem, support) if stated.group is not None else _crossed(problem, support)
        except Fractional as error:
            fractional = error
            continue
        found += [] if vertex is None else [vertex]
        if found and problem.value(found[-1]) >= aim:
            return found[-1]
    if fractional is not None:
        raise fractional
    if not found:
        raise SolverFailed("the cells that hold a share of a document contain no point of the set")
    return max(found, key=problem.value)


def _assigned(problem: ConstrainedRanking, support: Bools) -> Ints | None:
    """The best assignment of positions to rows by cells of the support; None where there is none."""
    from scipy.optimize import linear_sum_assignment

    collapse = problem.admissible.stated.collapse
    assert collapse is not None
    lost = 4.0 * (problem.positions + 1) * max(problem.scale, 1.0)
    masked = np.full(problem.profit.size, -lost)
    cell = problem.cells[support]
    masked[cell] = problem.profit.ravel()[cell]
    narrow, best = collapse.assignment(masked.reshape(problem.profit.shape))
    profit = np.where(narrow.masked_profit() > -lost, narrow.profit, -np.inf)
    try:
        _, rows = linear_sum_assignment(profit, maximize=True)
    except ValueError:  # no assignment on this support
        return None
    return collapse.order(best, rows)


def _crossed(problem: ConstrainedRanking, support: Bools) -> Ints | None:
    """The vertex where the simplex method ends on the face of the cells with mass, or where that is fractional a whole
    one of the same worth; None where the face is empty."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    stated = problem.admissible.stated
    cell = stated.cell[support]
    profit = problem.profit.ravel()[cell]
    rows = LinearConstraint(stated.matrix[:, np.flatnonzero(support)], stated.lower, stated.upper)
    cost, limits = -profit / max(problem.scale, 1e-300), Bounds(0.0, 1.0)
    found = milp(cost, constraints=rows, bounds=limits)
    if found.x is None:
        return None
    worth = float(profit @ found.x)
    if np.abs(found.x - np.round(found.x)).max() > WHOLE:  # a face may have whole vertices beside fractional ones
        found = milp(cost, constraints=rows, bounds=limits, integrality=np.ones(cell.size))
    if found.x is None or float(profit @ np.round(found.x)) < worth - 1e-9 * max(problem.scale, abs(worth)):
        raise Fractional(
            f"the best vertex of the relaxation is fractional (value {worth:.9g}): the set's rows are not "
            "totally unimodular; solve in whole numbers, by 'highs' or 'cp_sat'"
        )
    order = np.empty(problem.positions, dtype=np.int64)
    chosen = cell[np.round(found.x) == 1.0]
    order[chosen // problem.documents] = chosen % problem.documents
    return order
