"""From a point of the assignment polytope to a vertex of it.

Interior-point and first-order solvers return points inside the optimal face when there are ties. By Birkhoff and
von Neumann the support of a (nearly) doubly stochastic point contains an assignment; the best one on it is a vertex of
the face, and optimal if the point was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Floats, Ints

if TYPE_CHECKING:
    from formulations.modeling.assignment import Assignment

__all__ = ["order_on_support"]


def order_on_support(problem: Assignment, positions: Ints, documents: Ints, mass: Floats) -> Ints:
    """The document at each position of the best assignment within the cells that carry mass.

    positions, documents, mass: one entry an allowed cell. An integral point is returned as it is. Mass below a
    threshold counts as none; the threshold falls until the support holds an assignment.
    """
    from scipy.optimize import linear_sum_assignment

    k, n = problem.positions, problem.documents
    heavy = mass > 0.5
    if np.abs(mass - heavy).max(initial=0.0) < 1e-6 and np.unique(documents[heavy]).size == k == heavy.sum():
        order = np.empty(k, dtype=np.int64)
        order[positions[heavy]] = documents[heavy]
        return order
    for threshold in (1e-3, 1e-6, 0.0, -np.inf):
        support = mass > threshold
        profit = np.full((k, n), -np.inf)
        profit[positions[support], documents[support]] = problem.profit[positions[support], documents[support]]
        try:
            _, order = linear_sum_assignment(profit, maximize=True)
        except ValueError:  # no assignment on this support
            continue
        return np.asarray(order, dtype=np.int64)
    raise AssertionError("an Assignment is checked for feasibility when it is made")
