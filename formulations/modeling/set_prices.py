"""Row prices that prove a ranking best in its set, from the ranking alone: by the narrowest structure that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Floats, Ints

if TYPE_CHECKING:
    from formulations.modeling.constrained_ranking import ConstrainedRanking

__all__ = ["recovered_prices"]


def recovered_prices(problem: ConstrainedRanking, order: Ints) -> Floats | None:
    """One price a row beside the positions: of the collapsed assignment, of the laminar flow, or else the dual of the
    linear program, whose bound is that of the relaxation."""
    stated = problem.admissible.stated
    collapse = stated.collapse
    if collapse is not None and problem.violation(order) == 0.0:
        narrow, _ = collapse.assignment(problem.profit)
        return narrow.recovered_dual(collapse.rows_of(order))
    network = stated.network
    if network is not None and problem.violation(order) == 0.0:
        flow = network.flow(problem.profit)
        return network.prices(flow.recovered_dual(network.whole_flow(order)))
    return _relaxation_prices(problem)


def _relaxation_prices(problem: ConstrainedRanking) -> Floats | None:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    stated = problem.admissible.stated
    above, below = np.isfinite(stated.upper), np.isfinite(stated.lower)
    scale = max(problem.scale, 1e-300)
    found = linprog(
        -problem.profit.ravel()[stated.cell] / scale,
        A_ub=csr_array(vstack([stated.matrix[above], -stated.matrix[below]])),
        b_ub=np.concatenate([stated.upper[above], -stated.lower[below]]),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    price = np.zeros(stated.lower.size)
    marginals = -np.asarray(found.ineqlin.marginals) * scale
    price[above] += marginals[: int(above.sum())]
    price[below] -= marginals[int(above.sum()) :]
    return price[stated.shape[0] :]
