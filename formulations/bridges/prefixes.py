"""Limits on prefixes over disjoint groups: a ranking as a sequence of groups, that as a flow, with the ways back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.bridges.bridge import Back, NotApplicable, Point
from formulations.errors import SolverFailed
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.forms.prefix_group_ranking import PrefixGroupRanking
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.structure import PrefixNetwork, falls_in_groups


def by_groups(problem: ConstrainedRanking) -> tuple[PrefixGroupRanking, Back]:
    """Whole for profits of rank one inside each group, though the rows are not totally unimodular."""
    network = PrefixNetwork.beyond_flows(problem.admissible.stated)
    if isinstance(network, str):
        raise NotApplicable(f"it is not taken as limits on prefixes over disjoint groups: {network}")
    return sequences_of(problem, network)


def sequences_of(problem: ConstrainedRanking, network: PrefixNetwork) -> tuple[PrefixGroupRanking, Back]:
    """The sequences of groups of such a set, and the way back."""
    profit, k, n = problem.profit, problem.positions, problem.documents
    if not falls_in_groups(profit, network.rows.group):
        raise NotApplicable(
            "its rows limit prefixes over disjoint groups, but its profits are not of rank one inside these"
        )
    chosen = network.chosen(profit[0] - profit[-1] if k == n else profit[0])
    placed = profit[:, chosen]
    sequences = network.ranking(placed)

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        group = np.asarray(x, dtype=np.int64)
        if y is None:
            y = sequences.recovered_dual(group)
        assert y is not None
        passing = y.reshape(network.rows.groups, k)
        return network.order(chosen, group), network.prices(sequences, placed, chosen, group, passing)

    return sequences, back


def why_by_groups(problem: ConstrainedRanking) -> str:
    return (
        "limits on prefixes over disjoint groups and profits of rank one inside these: this linear program has a whole "
        "optimum, a flow of positions through groups"
    )


def why_not_by_groups(problem: ConstrainedRanking) -> str:
    """Why the relaxation of limits on prefixes is but a bound here; "" for other sets, or where it is more."""
    network = PrefixNetwork.beyond_flows(problem.admissible.stated)
    if isinstance(network, str) or falls_in_groups(problem.profit, network.rows.group):
        return ""
    return (
        "limits on prefixes, and profits that are not of rank one inside the groups (scores and gains, the decay being "
        "no multiple of the discount): the linear program is a bound"
    )


def as_flow(problem: PrefixGroupRanking) -> tuple[MinCostFlow, Back]:
    """A unit from each position to its group."""
    flow = problem.flow()
    at, group = np.nonzero(~problem.banned.T)
    k, groups = problem.positions, problem.groups

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        stands = np.asarray(x[: at.size], dtype=np.float64)
        if np.abs(stands - np.round(stands)).max(initial=0.0) > 1e-5:
            raise SolverFailed("the flow came back in fractions, and no whole one was found on its support")
        chosen = np.zeros(k, dtype=np.int64)
        chosen[at[stands > 0.5]] = group[stands > 0.5]
        if y is None:
            return chosen, None
        height = np.hstack([y[k:-1].reshape(groups, k), np.full((groups, 1), y[-1])])
        return chosen, np.diff(height, axis=1).ravel()

    return flow, back
