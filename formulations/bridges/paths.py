"""Paths: an order by its pattern as a path of a lattice, a path as a flow of one unit, with the ways back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.bridge import Back, NotApplicable, Point
from formulations.errors import SolverFailed
from formulations.forms.lattice_path import LatticePath
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.forms.pattern_edges import MOST_STATES
from formulations.forms.pattern_ranking import PatternRanking

__all__ = ["as_flow", "by_chains"]


def by_chains(problem: PatternRanking) -> tuple[LatticePath, Back]:
    """Every chain in order of score: what is left to choose is the chain at each position."""
    if problem.chains.states > MOST_STATES:
        raise NotApplicable(f"its lattice has {problem.chains.states} states, and up to {MOST_STATES} are written out")
    return problem.lattice(), lambda x, y: (problem.chains.order(np.asarray(x, dtype=np.int64)), y)


def as_flow(problem: LatticePath) -> tuple[MinCostFlow, Back]:
    """One unit from the first state to the last."""
    flow = problem.flow()
    chain = np.nonzero(problem.levels.there)[0]

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        path = _path(flow, chain, np.asarray(x, dtype=np.float64))
        if np.abs(x - np.round(x)).max(initial=0.0) > 1e-5:
            raise SolverFailed("the flow came back in fractions, and no whole one was found on its support")
        # A longest path's potentials rise where a cheapest path's fall.
        return path, None if y is None else -(y - y[0])

    return flow, back


def _path(flow: MinCostFlow, chain: Ints, x: Floats) -> Ints:
    """The chain of each edge of the path that carries the unit: at every state the arc that carries most of it."""
    by_tail = np.lexsort((-x, flow.tail))
    first = np.searchsorted(flow.tail[by_tail], np.arange(flow.supply.size))
    state, path = 0, []
    while state != flow.supply.size - 1:
        arc = int(by_tail[first[state]])
        path.append(int(chain[arc]))
        state = int(flow.head[arc])
    return np.array(path, dtype=np.int64)
