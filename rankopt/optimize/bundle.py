"""The bundle method: one slack for all queries [ORM, Algorithm 3, with its misprint mended]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.optimize.objective import Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.state import State

__all__ = ["Bundle"]


@dataclass(frozen=True)
class Bundle:
    """Minimise (lam/2)‖w - w₀‖² + R(w): R is replaced by the maximum of its planes, the master program minimises that
    model, and the next plane is taken on the way from the best point so far to the model's minimiser.

    damping: which part of that way is gone, 0 < damping <= 1; 1 is the plain method, which for small lam swings far
        beyond the minimum and needs several times as many steps (see benchmarks). The bound is the model's either way.
    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    damping: float = 0.1
    keep_idle: int = 200

    def __post_init__(self) -> None:
        if not 0 < self.damping <= 1:
            raise OptionError(f"damping = {self.damping} is no part of a way; give more than 0 and at most 1")

    def start(self, objective: Objective, w: NDArray[np.float64]) -> State:
        return State(PlaneSet.empty(1, w.size), np.zeros(0), trial=w, w=w)

    def step(self, state: State, objective: Objective) -> State:
        here = objective.risk.at(state.trial)
        state = state.seen(objective.upper(state.trial, here), here.seconds)
        planes = state.planes.with_references(here.references)
        planes = planes.plus(here.slopes, here.heights, np.zeros(1, dtype=np.int64))
        answer = objective.solve_master(planes, np.ones(1), np.append(state.alpha, 0.0))
        planes, alpha = planes.without_idle(answer.alpha, self.keep_idle)
        return replace(
            state,
            planes=planes,
            alpha=alpha,
            trial=state.w + self.damping * (answer.w - state.w),
            bound=max(state.bound, answer.bound),
            steps=state.steps + 1,
            seconds_master=state.seconds_master + answer.seconds,
        )
