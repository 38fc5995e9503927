"""Cutting planes with a slack for every query [ORM, eq. 34; paper 2, section 3.2]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.optimize.grouping import one_each
from rankopt.optimize.model import grown, solved
from rankopt.optimize.objective import Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.settings import check_whole
from rankopt.optimize.state import State

__all__ = ["CuttingPlanes"]


@dataclass(frozen=True)
class CuttingPlanes:
    """Minimise (lam/2)‖w - w₀‖² + Σ_q ξ_q, each ξ_q above the planes found for query q with its weight v_q.

    Each pass evaluates all queries at one w, which gives the primal. Then planes are added query by query, and the
    master is solved after every `master_every` of them: "pass" (all at once), "plane" (after each), or a number. A
    "plane" costs a master and an evaluation a query, which grows with the square of the number of queries. A plane is
    added only where it rises above the slack.

    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    master_every: str | int = "pass"
    keep_idle: int = 50

    def __post_init__(self) -> None:
        check_whole(0, keep_idle=self.keep_idle)
        if isinstance(self.master_every, str) and self.master_every not in ("pass", "plane"):
            raise OptionError(f"master_every = {self.master_every!r} is unknown; give 'pass', 'plane' or a number")
        if not isinstance(self.master_every, str):
            check_whole(1, master_every=self.master_every)

    def start(self, objective: Objective, w: NDArray[np.float64]) -> State:
        queries = objective.risk.weights.size
        return State(PlaneSet.empty(queries, w.size), np.zeros(0), trial=w, w=w)

    def step(self, state: State, objective: Objective) -> State:
        here = one_each(objective.risk, state.trial)
        state = state.seen(objective.upper(state.trial, here), here, objective.risk.convex)
        state = replace(state, steps=state.steps + 1)
        queries = here.losses.size
        size = int({"pass": queries, "plane": 1}.get(str(self.master_every), self.master_every))
        for first in range(0, queries, size):
            last = min(first + size, queries)
            if size < queries:  # w has moved on: these queries are asked where it is now
                here = one_each(objective.risk, state.trial, (first, last))
                state = replace(state, seconds_argmax=state.seconds_argmax + here.seconds)
            state = grown(state, here, np.arange(first, last))
            state, least = solved(state, objective, self.keep_idle)
            state = replace(state, trial=least)
        return state
