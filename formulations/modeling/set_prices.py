"""Row prices that prove a ranking best in its set, from the ranking alone: by the narrowest structure that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.arrays import Floats, Ints
from formulations.modeling.set_cases import proof_by_cases, relaxation_prices

if TYPE_CHECKING:
    from formulations.modeling.constrained_ranking import ConstrainedRanking

__all__ = ["recovered_prices"]


def recovered_prices(problem: ConstrainedRanking, order: Ints) -> Floats | None:
    """One price a row beside the positions: of the collapsed assignment, of the laminar flow, of the linear program; or
    a proof by cases where these leave a gap."""
    stated = problem.admissible.stated
    collapse = stated.collapse
    if collapse is not None and problem.violation(order) == 0.0:
        narrow, _ = collapse.assignment(problem.profit)
        return narrow.recovered_dual(collapse.rows_of(order))
    network = stated.network
    if network is not None and problem.violation(order) == 0.0:
        flow = network.flow(problem.profit)
        return network.prices(flow.recovered_dual(network.whole_flow(order)))
    proof = proof_by_cases(problem, problem.value(order))
    return relaxation_prices(problem) if proof is None else proof
