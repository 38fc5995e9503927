"""Training: one convex problem, or the concave-convex procedure around it [ORM, Algorithms 1 and 2]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Certificate, Stop
from rankopt.optimize.history import History
from rankopt.optimize.loop import Clock, Method
from rankopt.optimize.objective import Objective
from rankopt.optimize.standing import Passed, Standing
from rankopt.optimize.state import State

__all__ = ["Training", "train"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Training:
    """The result of a run: weights, what is proved of them, the steps, the state to go on from, and how a judge rated
    the weights if there was one."""

    w: Floats
    certificate: Certificate
    history: History
    state: State
    judged: float | None = None


Judge = Callable[[Floats], float]
"""How good weights are on data of its own; of what a run passes through, the best judged is returned."""

Keep = Callable[[Standing], None]
"""Called after every step, and when the run is over, with where it stands."""


def train(
    objective: Objective,
    method: Method,
    start: Floats,
    tol: float,
    clock: Clock,
    judge: Judge | None = None,
    begun: Standing | None = None,
    keep: Keep | None = None,
) -> Training:
    """Minimise J from `start`, or from where a run that had `begun` stood, to a relative gap of `tol`.

    A convex risk is minimised at once. Otherwise the reference is fixed at the current w, which gives a convex majorant
    that touches J there; that is minimised, and so on. A round ends early once its best point has gained most of what
    its proven bound still leaves; the procedure ends when no more than tol of J can be gained at w. At the end J(w) is
    evaluated once more, with every ranking in it proved by dual prices.

    An interruption from the keyboard ends the run with the best point so far.
    """
    convex = objective.risk.convex
    now = begun or Standing(method.start(objective.majorant(start), start), start, round=0 if convex else 1)
    now = _followed(now, objective, method, tol, clock, judge is not None, keep)
    passed, stop = _passed(now, objective, method, tol)
    if not passed:
        raise KeyboardInterrupt("interrupted before the first step was done")
    judged = None
    chosen = passed[-1]
    if judge is not None:
        ratings = [judge(point.w) for point in passed]
        best = max(range(len(passed)), key=ratings.__getitem__)  # the first of equals: the least trained
        chosen, judged = passed[best], ratings[best]
    at_start = bool(np.array_equal(chosen.w, objective.w0))
    primal = chosen.primal
    try:
        primal = objective.upper(chosen.w, objective.risk.at(chosen.w, prove=True))
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    certificate = Certificate("global" if convex else "stationary", primal, chosen.bound, stop, at_start)
    return Training(chosen.w, certificate, History.of(clock.steps), now.state, judged)


def _followed(
    now: Standing, objective: Objective, method: Method, tol: float, clock: Clock, every: bool, keep: Keep | None
) -> Standing:
    """Where the run stands when it is over."""
    touch, majorant = now.touch, objective.majorant(now.touch)
    try:
        while now.stop is None:
            if now.touch is not touch:
                touch, majorant = now.touch, objective.majorant(now.touch)
            state = method.step(now.state, majorant)
            reason = clock.record(state, now.round)
            now = _after(now, state, reason, objective.risk.convex, tol, every)
            if keep is not None and now.stop is None:
                keep(now)
    except KeyboardInterrupt:
        del clock.steps[now.taken :]  # a step that was not finished did not take place
        now = replace(now, stop=Stop.INTERRUPTED)
    if keep is not None:
        keep(now)
    return now


def _after(now: Standing, state: State, reason: Stop | None, convex: bool, tol: float, every: bool) -> Standing:
    """Where the run stands after a step that led to `state`; `reason` is the clock's to stop.

    every: of a convex run each point that was the best so far is wanted, not the last alone.
    """
    at_touch = state.latest if now.at_touch is None else now.at_touch  # the first step of a round is at its touch
    now = replace(now, state=state, at_touch=at_touch, taken=now.taken + 1)
    if convex:
        if not now.passed or state.primal < now.passed[-1].primal:
            best = Passed(state.w, state.primal, 0.0)
            now = replace(now, passed=(*now.passed, best) if every else (best,))
        over = state.gap <= tol * abs(state.primal)
    else:
        over = _critical(at_touch, state.bound, tol)
        if not over and state.gap <= 0.1 * (at_touch - state.primal):
            return replace(now.next_round(), stop=reason)
    if over or reason is not None:
        return replace(now, stop=Stop.GAP if over else reason)
    return now.watched()


def _critical(value: float, bound: float, tol: float) -> bool:
    """Whether no step of the procedure can gain more than tol of J at a point where J is `value`, proven by `bound`."""
    return value - bound <= tol * abs(value)


def _passed(now: Standing, objective: Objective, method: Method, tol: float) -> tuple[list[Passed], Stop]:
    """The points that the result is taken from, each with what is proven of it, and why the run is over."""
    assert now.stop is not None
    state = now.state
    if objective.risk.convex:  # the bound that was proven last holds for all
        return [replace(point, bound=state.bound) for point in now.passed], now.stop
    if not now.taken:
        return [], now.stop
    points = list(now.passed)
    if now.at_touch is not None:
        points.append(Passed(now.touch, now.at_touch, state.bound))
    try:
        # The round's best point is better than its touch. The planes hold for the majorant there too, so that one more
        # step tells what they prove of it. At the end of the procedure it is taken if it is proved critical as well.
        after = method.step(state.restarted(state.w), objective.majorant(state.w))
    except KeyboardInterrupt:
        return points, Stop.INTERRUPTED
    better = now.at_touch is None or after.latest < now.at_touch
    if now.stop is not Stop.GAP or (better and _critical(after.latest, after.bound, tol)):
        points.append(Passed(state.w, after.latest, after.bound))
    return points, now.stop
