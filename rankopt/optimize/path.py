"""The driver of `minimize_risk` and of all estimators that minimize a risk: J for one lam, or for a path of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from formulations.arrays import Floats
from rankopt.errors import MasterProblemError
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import TWICE, Judge, Keep, Limits, Method, Training, train
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet, State, TrainingState


def follow(
    objective: Objective,
    method: Method,
    start: Floats,
    lams: Sequence[float],
    tol: float,
    limits: Limits,
    judge: Judge | None = None,
    prove: bool = True,
    resumed: TrainingState | None = None,
    keep: Keep | None = None,
) -> Iterator[Training]:
    """Minimize J for each of `lams` in turn, warm-started from the previous one; pass the largest first.

    Planes are valid for every lam: they are reused, and so is the risk proven at w. A method with `aimed` starts with a
    model of the new objective, without a pass over the queries, and takes no step if that closes the gap; others
    restart at the last w. If the objective `restarts`, each run begins at `start`, with these planes. With a judge
    each run of a nonconvex objective is that of a separate fit: from a previous solution it would pass fewer points
    that the judge may like better. The `limits` are of each run. The first one continues from `resumed`, if any.
    An interruption ends the path after the interrupted run; a second one raises KeyboardInterrupt.
    """
    objective.prepare()
    outcome, before = None, objective
    for lam in lams:
        own = replace(objective, lam=lam)
        try:
            if outcome is None or (judge is not None and not own.risk.convex):
                now = resumed or TrainingState(method.start(own, start))
                resumed = None
            elif own.restarts and not own.risk.convex:
                now = TrainingState(_with(outcome.state.planes, method.start(own, start), method))
            else:
                now = begun(continued(outcome.state, before, own, method), tol)
            outcome = train(own, method, now, tol, limits, judge, keep, outcome, prove)
        except KeyboardInterrupt as interruption:
            if outcome is None or interruption.args == (TWICE,):
                raise
            return  # before a step was done
        yield outcome
        if outcome.certificate.stop is Stop.INTERRUPTED:
            return
        before = own


def _with(planes: PlaneSet, state: State, method: Method) -> State:
    """The state a method begins with, and the planes found before, whose references its first step sets."""
    if not hasattr(method, "aimed"):
        return state
    return replace(state, planes=replace(planes, idle=np.zeros_like(planes.idle)), alpha=np.zeros(len(planes)))


def begun(state: State, tol: float) -> TrainingState:
    """The state of a run that starts with `state`; final if planes and point of the previous run prove enough."""
    over = np.isfinite(state.primal) and state.is_closed(state.primal, state.bound, tol)
    return TrainingState(state).with_best(Stop.GAP) if over else TrainingState(state)


def continued(state: State, old: Objective, new: Objective, method: Method) -> State:
    """Where a run on `new` begins that goes on from `state` of one on `old`, which differs in lam alone."""
    aimed = getattr(method, "aimed", None)
    if aimed is None or not np.isfinite(state.primal):
        return method.start(new, state.w)
    primal = state.primal - old.regularizer(state.w) + new.regularizer(state.w)
    state = replace(
        state, primal=primal, bound=state.planes.floor, latest=primal, round=min(state.round, 1), precision=np.inf
    )
    state = replace(state, steps=0, seconds_argmax=0.0, seconds_master=0.0)
    try:
        ahead: State = aimed(state, new)
    except MasterProblemError:  # the first step evaluates again, and ends the run if that fails too
        return state
    return ahead
