"""Steepest subgradient with a line search [paper 2, section 3.3.1]."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.grouping import at_groups, groups_of
from rankopt.optimize.model import grown, solved
from rankopt.optimize.objective import Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.settings import check_part, check_whole
from rankopt.optimize.state import State

__all__ = ["SteepestState", "SteepestSubgradient"]

Floats = NDArray[np.float64]

STUCK = 20
"""Steps that narrow nothing after which two subgradients at a time are not enough."""


@dataclass(frozen=True, eq=False)
class SteepestState(State):
    """down: the way down from w, minus the shortest subgradient known there. length: how far to go along it next.
    idle: steps since one narrowed the gap, STUCK once and for all when there were so many."""

    down: Floats = field(default_factory=lambda: np.zeros(0))
    length: float = 0.0
    idle: int = 0


@dataclass(frozen=True)
class SteepestSubgradient:
    """w ← w - t g, g a subgradient of J at w, t by backtracking: halved until J falls by `armijo` t ‖g‖², then doubled.

    A step is one evaluation of all queries. At a kink J may fall along no subgradient that an argmax gives. So each
    point at which the search fails gives its subgradient too, and g becomes the shortest point between the two
    (Wolfe 1975): the conjugate gradient technique that paper 2 speaks of. At a kink of many faces two are too few:
    where 20 steps narrowed nothing, the model of all planes is minimised each time, and the next step goes there.

    armijo: which part of the fall that g promises is enough, 0 < armijo < 1.
    certify_every: steps between two solutions of the master over the planes found, which gives the bound.
    groups, keep_idle: of the planes, as in `Bundle`.
    """

    armijo: float = 0.1
    certify_every: int = 5
    groups: int = 256
    keep_idle: int = 5

    quadratic: ClassVar[bool] = True  # steps are those of the squared norm

    def __post_init__(self) -> None:
        check_part(False, armijo=self.armijo)
        check_whole(1, certify_every=self.certify_every, groups=self.groups)
        check_whole(0, keep_idle=self.keep_idle)

    def start(self, objective: Objective, w: Floats) -> SteepestState:
        planes = PlaneSet.empty(groups_of(objective, self.groups), w.size)
        return SteepestState(planes, np.zeros(0), trial=w, w=w, down=np.zeros_like(w))

    def step(self, state: SteepestState, objective: Objective) -> SteepestState:
        here = at_groups(objective.risk, state.trial, state.planes.references.shape[0])
        value, before = objective.upper(state.trial, here), state
        fall = state.length * float(state.down @ state.down)
        state = state.seen(value, here, objective.risk.convex, enough=self.armijo * fall)
        slope = (here.slopes - state.planes.references).sum(axis=0)  # of what touches J at w
        heights = here.heights - here.paid + state.planes.paid
        height = objective.regulariser(state.trial) + heights.sum() + slope @ state.trial
        uphill = objective.lam * (state.trial - objective.w0) + slope
        state = replace(grown(state, here), steps=state.steps + 1)
        least = None
        if (state.steps - 1) % self.certify_every == 0 or before.idle >= STUCK:
            state, least = solved(state, objective, self.keep_idle)
        narrowed = state.round > before.round or not state.gap >= before.gap - 1e-15 * abs(state.primal)
        idle = STUCK if before.idle >= STUCK else 0 if narrowed else before.idle + 1
        state = replace(state, idle=idle)
        if idle >= STUCK and least is not None:
            return replace(state, trial=least, length=0.0)
        return self._searched(before, state, float(height), uphill)

    def finish(self, state: SteepestState, objective: Objective) -> SteepestState:
        """The state with all that its planes prove."""
        return solved(state, objective, self.keep_idle)[0]

    def _searched(self, before: SteepestState, state: SteepestState, height: float, uphill: Floats) -> SteepestState:
        """The state with a way to go and the next trial on it, by height and subgradient at the last trial."""
        if state.w is not before.w or not before.length:
            down, length = -uphill, 2.0 * before.length
            if not length:  # the length that would close the gap if J were as steep all the way (Polyak)
                length = state.gap / max(float(uphill @ uphill), 1e-300)
        else:
            down, length = before.down, before.length / 2.0
            error = state.primal - (height + uphill @ (state.w - before.trial))
            if error <= before.length * float(down @ down):  # nearly a subgradient at w
                down = _shortest(down, -uphill)
                far = before.length * float(np.linalg.norm(before.down))  # as far as before, another way
                length = far / max(float(np.linalg.norm(down)), 1e-300)
        return replace(state, down=down, length=length, trial=state.w + length * down)


def _shortest(one: Floats, other: Floats) -> Floats:
    """The point between the two that is nearest to 0."""
    across = other - one
    size = float(across @ across)
    part = float(np.clip(-(one @ across) / size, 0.0, 1.0)) if size else 0.0
    return one + part * across
