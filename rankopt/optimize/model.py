"""The model of J: the regulariser and the highest of the planes found so far, group by group."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.objective import Objective
from rankopt.optimize.state import State
from rankopt.risk.risk import Planes

__all__ = ["grown", "solved"]

Floats = NDArray[np.float64]
Kind = TypeVar("Kind", bound=State)

RISE = 1e-9
"""A plane is news where it rises above the model by more than this part of the objective."""

COARSEST, FINEST = 1e-4, 1e-9
"""Between what relative gaps the master is solved; then to whatever the solver itself holds for exact."""

CARE = 0.02
"""The part of the gap that the master may leave: it is solved no finer than the bound can use."""

SHARPER = 0.1
"""What the precision is multiplied with when the bound did not rise: a coarse master may be what is in the way."""


def grown(state: Kind, here: Planes, groups: NDArray[np.int64] | None = None) -> Kind:
    """The state with the planes found at `trial` that rise above the model there; plane i belongs to groups[i]."""
    groups = np.arange(here.heights.size) if groups is None else groups
    own = state.planes.references[groups]
    heights = here.heights + (state.planes.paid[groups] - here.paid)  # as they are under the references of the state
    values = heights + (here.slopes - own) @ state.trial
    model = state.planes.heights_at(state.trial)[groups]
    new = values > model + RISE / state.planes.references.shape[0] * max(abs(state.primal), 1e-300)
    if not new.any():
        return state
    planes = state.planes.plus(here.slopes[new], heights[new], groups[new])
    return replace(state, planes=planes, alpha=np.append(state.alpha, np.zeros(int(new.sum()))))


def solved(state: Kind, objective: Objective, keep_idle: int) -> tuple[Kind, Floats]:
    """The state with the master solved, its bound and its weights; and where the model is least.

    Planes that carried no weight for more than `keep_idle` masters are dropped.
    """
    if not len(state.planes):
        return state, objective.w0
    groups = state.planes.references.shape[0]
    relative = state.gap / max(abs(state.primal), 1e-300)
    precision = min(state.precision, COARSEST, CARE * relative)
    asked = precision if precision > FINEST else None
    answer = objective.solve_master(state.planes, np.ones(groups), state.alpha, asked)
    planes, alpha = state.planes.without_idle(answer.alpha, keep_idle)
    rises = answer.bound > state.bound + CARE * state.gap
    state = replace(state, precision=precision if rises else max(SHARPER * precision, SHARPER * FINEST))
    seconds = state.seconds_master + answer.seconds
    return replace(state, planes=planes, alpha=alpha, seconds_master=seconds).bounded(answer.bound), answer.w
