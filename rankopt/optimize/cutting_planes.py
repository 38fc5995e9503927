"""Cutting planes with a slack for every query [ORM, eq. 34; paper 2, section 3.1]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.losses.risk import Planes
from rankopt.optimize.objective import Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.state import State

__all__ = ["CuttingPlanes"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CuttingPlanes:
    """Minimise (lam/2)‖w - w₀‖² + Σ v_q ξ_q, each ξ_q above the planes found for query q.

    Each pass evaluates all queries at one w, which gives the primal. Then planes are added query by query, and the
    master is solved after every `master_every` of them: "pass" (all at once), "plane" (after each), or a number. A
    "plane" costs a master and an evaluation a query, which grows with the square of the number of queries. A
    plane is added only where it rises above the slack by more than `violation` of the objective.

    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    master_every: str | int = "pass"
    keep_idle: int = 50
    violation: float = 1e-9

    def __post_init__(self) -> None:
        whole = isinstance(self.master_every, int) and self.master_every > 0
        if not whole and self.master_every not in ("pass", "plane"):
            raise OptionError(f"master_every is {self.master_every!r}; give 'pass', 'plane' or a positive number")

    def start(self, objective: Objective, w: NDArray[np.float64]) -> State:
        queries = objective.risk.weights.size
        return State(PlaneSet.empty(queries, w.size), np.zeros(0), trial=w, w=w)

    def step(self, state: State, objective: Objective) -> State:
        here = objective.risk.at(state.trial, merged=False)
        state = state.seen(objective.upper(state.trial, here), here.seconds)
        state = replace(state, planes=state.planes.with_references(here.references), steps=state.steps + 1)
        queries = here.losses.size
        size = {"pass": queries, "plane": 1}.get(str(self.master_every), self.master_every)
        for first in range(0, queries, int(size)):
            chosen = np.arange(first, min(first + int(size), queries))
            if first:  # w has moved on: these queries are asked again where it is now
                here = objective.risk.at(state.trial, merged=False, queries=(first, int(chosen[-1]) + 1))
                state = replace(state, seconds_argmax=state.seconds_argmax + here.seconds)
            state = self._grown(state, objective, here, chosen, first)
        return state

    def _grown(self, state: State, objective: Objective, here: Planes, chosen: Ints, first: int) -> State:
        """The state with the violated planes of the chosen queries added and the master solved."""
        local = chosen - first if first else chosen
        slack = state.planes.heights_at(state.trial)[chosen]
        size = max(abs(state.primal), 1e-300)
        violated = here.losses[local] > slack + self.violation * size
        new, groups = local[violated], chosen[violated]
        planes = state.planes.plus(here.slopes[new], here.heights[new], groups)
        if not len(planes):
            return state
        alpha = np.append(state.alpha, np.zeros(new.size))
        answer = objective.solve_master(planes, objective.risk.weights, alpha)
        planes, alpha = planes.without_idle(answer.alpha, self.keep_idle)
        return replace(
            state,
            planes=planes,
            alpha=alpha,
            trial=answer.w,
            bound=max(state.bound, answer.bound),
            seconds_master=state.seconds_master + answer.seconds,
        )
