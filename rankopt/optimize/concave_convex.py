"""Training: one convex problem, or the concave-convex procedure around it [ORM, Algorithms 1 and 2]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Certificate, Stop
from rankopt.optimize.history import History
from rankopt.optimize.loop import Clock, Method, minimise
from rankopt.optimize.objective import Objective
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


def train(
    objective: Objective, method: Method, start: Floats, tol: float, clock: Clock, judge: Judge | None = None
) -> Training:
    """Minimise J from `start` to a relative gap of `tol`.

    A convex risk is minimised at once. Otherwise the reference is fixed at the current w, which gives a convex majorant
    that touches J there; that is minimised, and so on. A round ends early once its best point has gained most of what
    its proven bound still leaves; the procedure ends when no more than tol of J can be gained at w. At the end J(w) is
    evaluated once more, with every ranking in it proved by dual prices.
    """
    run = _convex if objective.risk.convex else _rounds
    passed, state, stop = run(objective, method, start, tol, clock)
    if not passed:
        raise KeyboardInterrupt("interrupted before the first step was done")
    judged = None
    chosen = passed[-1]
    if judge is not None:
        ratings = [judge(point.w) for point in passed]
        best = max(range(len(passed)), key=ratings.__getitem__)  # the first of equals: the least trained
        chosen, judged = passed[best], ratings[best]
    kind = "global" if objective.risk.convex else "stationary"
    at_start = bool(np.array_equal(chosen.w, objective.w0))
    primal = chosen.primal
    try:
        primal = objective.upper(chosen.w, objective.risk.at(chosen.w, prove=True))
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    certificate = Certificate(kind, primal, chosen.bound, stop, at_start)
    return Training(chosen.w, certificate, History.of(clock.steps), state, judged)


@dataclass(frozen=True, eq=False)
class Passed:
    """Weights that a run passed through, J there, and a proven lower bound of J or of the majorant that touches it."""

    w: Floats
    primal: float
    bound: float


def _convex(
    objective: Objective, method: Method, start: Floats, tol: float, clock: Clock
) -> tuple[list[Passed], State, Stop]:
    """Each point that was the best so far, and the bound that was proven last."""
    improved: list[Passed] = []

    def enough(now: State) -> bool:
        if not improved or now.primal < improved[-1].primal:
            improved.append(Passed(now.w, now.primal, 0.0))
        return now.gap <= tol * abs(now.primal)

    state, stop = minimise(objective, method, method.start(objective, start), enough, clock)
    return [Passed(point.w, point.primal, state.bound) for point in improved], state, stop


def _rounds(
    objective: Objective, method: Method, start: Floats, tol: float, clock: Clock
) -> tuple[list[Passed], State, Stop]:
    """Each point at which a majorant touched, and the bound proven for that majorant."""
    passed: list[Passed] = []
    w, majorant = start, objective.majorant(start)
    state = method.start(majorant, w)
    while True:
        touched: list[float] = []

        def enough(now: State, touched: list[float] = touched) -> bool:
            """The first step tells J(w); a round is over when w is critical, or most of the gain is made."""
            if not touched:
                touched.append(now.latest)
            return touched[0] - now.bound <= tol * abs(touched[0]) or now.gap <= 0.1 * (touched[0] - now.primal)

        state, stop = minimise(majorant, method, state, enough, clock, round=len(passed) + 1)
        if touched:
            passed.append(Passed(w, touched[0], state.bound))
        if not touched:
            return passed, state, stop
        if touched[0] - state.bound <= tol * abs(touched[0]):
            # w is critical. The round may have passed a better point: it is taken if it is proved critical as well.
            after = method.step(state.restarted(state.w), objective.majorant(state.w))
            if after.latest < touched[0] and after.latest - after.bound <= tol * abs(after.latest):
                passed.append(Passed(state.w, after.latest, after.bound))
            return passed, state, stop
        if stop is not Stop.GAP:
            # Cut short inside a round: its best point is better than w. The planes hold for the majorant there too, so
            # one more step tells what they prove of it.
            state = method.step(state.restarted(state.w), objective.majorant(state.w))
            passed.append(Passed(state.w, state.latest, state.bound))
            return passed, state, stop
        w, majorant = state.w, objective.majorant(state.w)
        state = state.restarted(w)
