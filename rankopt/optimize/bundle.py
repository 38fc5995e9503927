"""The bundle method [ORM, Algorithm 3, with its misprint mended], with a slack for each group of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.grouping import at_groups, groups_of
from rankopt.optimize.model import grown, solved
from rankopt.optimize.objective import Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.settings import check_part, check_whole
from rankopt.optimize.state import State

__all__ = ["Bundle"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bundle:
    """Minimise (lam/2)‖w - w₀‖² + Σ_g R_g(w): each R_g is replaced by the maximum of its planes, the master program
    minimises that model, and the next planes are taken on the way from the best point so far to where it is least.

    groups: how many groups the queries make at most; one, where a solver of one's own takes one alone.
        `Bundle(groups=1, damping=1)` is the plain method, which needs many times as many passes (see benchmarks).
    damping: which part of that way is gone, 0 < damping <= 1. The bound is the model's either way.
    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    groups: int = 256
    damping: float = 0.7
    keep_idle: int = 10

    def __post_init__(self) -> None:
        check_part(True, damping=self.damping)
        check_whole(1, groups=self.groups)
        check_whole(0, keep_idle=self.keep_idle)

    def start(self, objective: Objective, w: Floats) -> State:
        groups = groups_of(objective, self.groups)
        return State(PlaneSet.empty(groups, w.size), np.zeros(0), trial=w, w=w)

    def step(self, state: State, objective: Objective) -> State:
        here = at_groups(objective.risk, state.trial, state.planes.references.shape[0])
        state = state.seen(objective.upper(state.trial, here), here, objective.risk.convex)
        return self.aimed(replace(grown(state, here), steps=state.steps + 1), objective)

    def aimed(self, state: State, objective: Objective) -> State:
        """The state with the model minimised, and where to look next."""
        state, least = solved(state, objective, self.keep_idle)
        return replace(state, trial=objective.between(state.w, least, self.damping))
