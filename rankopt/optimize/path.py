"""A path of lam: one objective after the other over the same planes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import Judge, Training, train
from rankopt.optimize.loop import Clock, Method
from rankopt.optimize.objective import Objective
from rankopt.optimize.standing import Standing
from rankopt.optimize.state import State

__all__ = ["follow"]

Floats = NDArray[np.float64]


def follow(
    objective: Objective,
    method: Method,
    start: Floats,
    lams: Sequence[float],
    tol: float,
    clock: Callable[[], Clock],
    judge: Judge | None = None,
) -> Iterator[Training]:
    """J minimised for each of `lams` in turn, each run begun where the one before ended; give the largest first.

    Planes hold for every lam: they are kept, and so is the risk proven at w. A method with `aimed` begins with a model
    of the new objective, without a pass over the queries; another one starts anew from the last w. `clock` gives each
    run its limits. An interruption ends the path after the run that it interrupted.
    """
    state, before = method.start(replace(objective, lam=lams[0]), start), objective
    for number, lam in enumerate(lams):
        own = replace(objective, lam=lam)
        try:
            if number:
                state = continued(state, before, own, method)
            outcome = train(own, method, start, tol, clock(), judge, Standing(state))
        except KeyboardInterrupt:
            if not number:
                raise
            return  # before a step was done
        yield outcome
        if outcome.certificate.stop is Stop.INTERRUPTED:
            return
        state, before = outcome.state, own


def continued(state: State, old: Objective, new: Objective, method: Method) -> State:
    """Where a run on `new` begins that goes on from `state` of one on `old`, which differs in lam alone."""
    aimed = getattr(method, "aimed", None)
    if aimed is None or not np.isfinite(state.primal):
        return method.start(new, state.w)
    primal = state.primal - old.regulariser(state.w) + new.regulariser(state.w)
    state = replace(state, primal=primal, bound=0.0, latest=primal, round=min(state.round, 1), precision=np.inf)
    begun: State = aimed(replace(state, steps=0, seconds_argmax=0.0, seconds_master=0.0), new)
    return begun
