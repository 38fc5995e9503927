"""From a point of a whole polytope to a vertex of it.

Interior-point and first-order solvers return points inside the optimal face when there are ties. By Birkhoff and
von Neumann the support of a (nearly) doubly stochastic point contains an assignment; the best one on it is a vertex of
the face, and optimal if the point was. For flows the face is cut out by the arcs that stand at a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.errors import SolverFailed

if TYPE_CHECKING:
    from formulations.modeling.assignment import Assignment
    from formulations.modeling.flow import MinCostFlow

__all__ = ["flow_on_support", "order_on_support"]

THRESHOLDS = (1e-3, 1e-6, 0.0)
"""What counts as no mass, the boldest guess first."""


def order_on_support(problem: Assignment, positions: Ints, documents: Ints, mass: Floats) -> Ints:
    """The document at each position of the best assignment within the cells that carry mass.

    positions, documents, mass: one entry an allowed cell. An integral point is returned as it is. Mass below a
    threshold counts as none; the threshold falls until the support holds an assignment. Raises `SolverFailed` for a
    point that is no rounding error away from the polytope: what is not the solver's work is not to look like it.
    """
    from scipy.optimize import linear_sum_assignment

    k, n = problem.positions, problem.documents
    heavy = mass > 0.5
    if np.abs(mass - heavy).max(initial=0.0) < 1e-6 and np.unique(documents[heavy]).size == k == heavy.sum():
        order = np.empty(k, dtype=np.int64)
        order[positions[heavy]] = documents[heavy]
        return order
    held = np.bincount(positions, mass, k)
    if not np.abs(held - 1.0).max() <= 0.05:
        raise SolverFailed(f"a position holds {held[np.abs(held - 1.0).argmax()]:.3g} documents where it should hold 1")
    for threshold in THRESHOLDS:
        support = mass > threshold
        profit = np.full((k, n), -np.inf)
        profit[positions[support], documents[support]] = problem.profit[positions[support], documents[support]]
        try:
            _, order = linear_sum_assignment(profit, maximize=True)
        except ValueError:  # no assignment on this support
            continue
        return np.asarray(order, dtype=np.int64)
    raise SolverFailed("the cells that hold a share of a document contain no assignment")


def flow_on_support(problem: MinCostFlow, flow: Floats) -> Floats:
    """A whole flow, the cheapest that keeps at their limit the arcs that `flow` has there.

    A flow that is whole to 1e-6 is only rounded. Else a dual simplex method ends at a vertex, which is whole; arcs
    count as standing at a limit within a threshold that falls until such a flow exists. Where none does, the flow is
    returned as it is, to be judged.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    whole = np.round(flow)
    if np.abs(flow - whole).max(initial=0.0) < 1e-6 and problem.violation(whole) == 0.0:
        return whole
    arcs, nodes = flow.size, problem.supply.size
    ends = (np.concatenate([problem.tail, problem.head]), np.tile(np.arange(arcs), 2))
    balance = csr_array((np.repeat([1.0, -1.0], arcs), ends), shape=(nodes, arcs))
    for threshold in THRESHOLDS:
        low = np.where(flow > problem.capacity - threshold, problem.capacity, 0)
        high = np.where(flow < threshold, 0, problem.capacity)
        limits = np.column_stack([low, np.maximum(low, high)])
        found = linprog(problem.cost, A_eq=balance, b_eq=problem.supply, bounds=limits, method="highs-ds")
        if found.status == 0:
            return np.asarray(np.round(found.x))
    return flow
