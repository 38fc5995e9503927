"""Training loop: one convex problem, or the concave-convex procedure [ORM, Algorithms 1 and 2], step by step; and the
driver of `minimize_risk` and of all estimators that minimize a risk, for one lam or a path of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

import numpy as np

from formulations.arrays import Floats
from formulations.errors import InvalidProblemError
from rankopt.errors import MasterProblemError
from rankopt.optimize.certificate import Certificate, History, Step, Stop
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import STALLED_AFTER, IterationInfo, PlaneSet, State, TrainingState

Callback = Callable[[Step, State], bool | None]  # called after every step; stops the run by returning True
Limits = tuple[int, float | None, tuple[Callback, ...]]  # of a run: steps, seconds, and callbacks


class Method(Protocol):
    """Frozen settings of a way to minimize; the state is apart.

    `objective` may be nonconvex: then the planes that it gives lie below it only with the reference of `state.planes`,
    which `State.seen` moves along with w, and the bound of the state is that of the majorant that touches J at w.

    `start` makes `PlaneSet.empty(groups, features, objective.risk.floor)`, and a state whose bound is that floor.

    A method may also have `aimed(state, objective)`, the state with its model minimized and the next trial chosen: a
    path of lam then goes on without a pass; `finish(state, objective)`, what is left to prove when the run ends; and
    `patience`, the steps without progress after which there is no hope, where they are not the usual number.
    """

    def start(self, objective: Objective, w: Floats) -> State: ...

    def step(self, state: State, objective: Objective) -> State: ...


@dataclass(frozen=True)
class Clock:
    """What a run may still use, steps and seconds counted over all its parts; and what asks it to stop."""

    max_iter: int
    time_limit: float | None
    callbacks: tuple[Callback, ...]
    began: float

    @classmethod
    def started(cls, limits: Limits, steps: Sequence[Step]) -> Clock:
        """A clock that runs from now on; seconds of a run that goes on after `steps` count."""
        used = steps[-1].seconds if steps else 0.0
        return cls(*limits, perf_counter() - used)

    @property
    def ends(self) -> float | None:
        """The reading of `perf_counter` at which the time is over, if it is limited."""
        return None if self.time_limit is None else self.began + self.time_limit

    def record(self, state: State, number: int) -> Step:
        return Step(
            step=number,
            round=state.round,
            primal=state.primal,
            bound=state.bound,
            latest=state.latest,
            planes=len(state.planes),
            seconds=perf_counter() - self.began,
            seconds_argmax=state.seconds_argmax,
            seconds_master=state.seconds_master,
        )

    def limit(self, steps: Sequence[Step]) -> Stop | None:
        """The limit that these steps have reached, if they have."""
        if len(steps) >= self.max_iter:
            return Stop.ITERATIONS
        if self.time_limit is not None and steps and steps[-1].seconds >= self.time_limit:
            return Stop.TIME
        return None


TWICE = "interrupted again while the best point so far was proved"

ROUNDED = 1e-12  # A relative gap that the rounding of the last proof may open again


@dataclass(frozen=True, eq=False)
class Training:
    """The result of a run: weights, certificate, history, final state, the risk proven at w by dual variables, the
    judge's rating of the weights if any, and the error that ended the run, if any."""

    w: Floats
    certificate: Certificate
    history: History
    state: State
    risk: float
    judged: float | None = None
    failure: str = ""


Judge = Callable[[Floats], float]
"""How good weights are on data of its own; of what a run passes through, the best judged is returned."""

Keep = Callable[[TrainingState], None]  # called after every step and at the end of the run


def train(
    objective: Objective,
    method: Method,
    begun: TrainingState,
    tol: float,
    limits: Limits,
    judge: Judge | None,
    keep: Keep | None,
    known: Training | None,
    prove: bool,
) -> Training:
    """Minimize J from the state `begun`, a first one or that of an earlier run, to a relative gap of `tol`.

    At each w a nonconvex risk has a convex majorant that touches it there: the reference is fixed at w. The method
    decreases the majorant, then the reference is updated at the better point. Training ends when the majorant at w can
    decrease by at most tol of J. Finally J(w) is evaluated again with every ranking proved by dual variables, unless
    `prove` is False or a `known` run on the same risk (for another lam) has done so. A judge's time counts.

    A keyboard interruption, a callback or a failing master solver (after the first step) ends the run with the best
    point so far; a second interruption raises KeyboardInterrupt. The remaining time limits the master solver.
    """
    clock = Clock.started(limits, begun.history)
    objective = replace(objective, ends=clock.ends)
    convex = objective.risk.convex
    # what ended it may have been a limit that is another now
    now = replace(begun, stop=begun.stop if begun.stop in (Stop.GAP, Stop.STALLED) else clock.limit(begun.history))
    seen = None if judge is None else JudgeScores(judge)
    now, failure = _follow(now, objective, method, tol, clock, seen, keep)
    now, failure = _finish(now, failure, objective, method, tol)
    assert now.stop is not None
    # What is proven last holds for all points where J is convex.
    passed = [replace(point, bound=now.method_state.bound) for point in now.passed] if convex else now.passed
    if not passed:
        raise KeyboardInterrupt("interrupted before the first step was completed")
    judged, chosen, stop = None, passed[-1], now.stop
    if seen is not None and (stop is Stop.INTERRUPTED or seen.rated(passed)):
        ratings = seen.known[: len(passed)]
        if len(ratings) == len(passed):  # else the judge was interrupted
            first = 0 if objective.start_counts or len(passed) == 1 else 1
            best = max(range(first, len(passed)), key=ratings.__getitem__)  # the first of equals: the least trained
            chosen, judged = passed[best], ratings[best]
    elif seen is not None:
        stop = Stop.INTERRUPTED
    at_start = bool(np.array_equal(chosen.w, objective.w0))
    regularizer, primal = objective.regularizer(chosen.w), chosen.primal
    try:
        same = known is not None and np.array_equal(known.w, chosen.w)
        if prove:
            risk = known.risk if known is not None and same else objective.risk.at(chosen.w, prove=True).bound
            primal = regularizer + risk
        else:
            risk = primal - regularizer
    except KeyboardInterrupt:
        if stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt(TWICE) from None
        stop, risk = Stop.INTERRUPTED, primal - regularizer
    claimed = objective.risk.claimed
    parts = {"claimed": claimed} if claimed else {}
    certificate = Certificate("global" if convex else "stationary", primal, chosen.bound, stop, at_start, parts)
    if stop is Stop.GAP and not now.method_state.is_closed(primal, chosen.bound, max(tol, ROUNDED)):
        earlier = Stop.START if at_start else Stop.CHOSEN
        certificate = replace(certificate, stop=Stop.STALLED if chosen is passed[-1] else earlier)
    return Training(
        chosen.w, certificate, History.from_rows(Step, now.history), now.method_state, risk, judged, failure
    )


@dataclass
class JudgeScores:
    """How a judge rated the points that a run passed through, in their order."""

    judge: Judge
    known: list[float] = field(default_factory=list)

    def rated(self, passed: Sequence[IterationInfo]) -> bool:
        """Rate those that are not rated yet; points that are, are the first of those that come later. Whether the judge
        was left to do so."""
        try:
            self.known += [self.judge(point.w) for point in passed[len(self.known) :]]
        except KeyboardInterrupt:
            return False
        return True


def _follow(
    now: TrainingState,
    objective: Objective,
    method: Method,
    tol: float,
    clock: Clock,
    seen: JudgeScores | None,
    keep: Keep | None,
) -> tuple[TrainingState, str]:
    """The final state of a run, and the error that ended it. The judge sees all points that w moved to, or the last."""
    patience, failure = getattr(method, "patience", STALLED_AFTER), ""
    try:
        while now.stop is None:
            try:
                state = method.step(now.method_state, objective)
            except InvalidProblemError:  # it went where double precision ends: what it has so far is the result
                if not np.isfinite(now.method_state.primal):
                    raise
                now = now.with_best(Stop.STALLED)
                break
            except MasterProblemError as error:
                if not np.isfinite(now.method_state.primal):
                    raise
                late = clock.ends is not None and perf_counter() >= clock.ends
                now, failure = now.with_best(Stop.TIME if late else Stop.MASTER), str(error)
                break
            after = now.after(state, tol, every=seen is not None)
            undisturbed = seen is None or seen.rated(after.passed)
            after = replace(after, history=(*after.history, clock.record(state, after.iteration)))
            now = after if after.stop is not None else after.watched(patience)
            if not undisturbed:
                raise KeyboardInterrupt  # of the judge, once the step is done
            ended = any([callback(now.history[-1], state) for callback in clock.callbacks])  # all, after the step
            if now.stop is None:
                now = replace(now, stop=Stop.CALLBACK if ended else clock.limit(now.history))
            if keep is not None and now.stop is None:
                keep(now)
    except KeyboardInterrupt:
        now = replace(now, stop=Stop.INTERRUPTED)  # an unfinished step is discarded
    if keep is not None:
        keep(now)
    return now, failure


def _finish(
    now: TrainingState, failure: str, objective: Objective, method: Method, tol: float
) -> tuple[TrainingState, str]:
    """The state after the method has proven what it had deferred, and the error, if any."""
    finish = getattr(method, "finish", None)
    if finish is None or now.stop is Stop.GAP or not now.iteration:
        return now, failure
    try:
        last = now.after(finish(now.method_state, objective), tol, every=True)
    except KeyboardInterrupt:
        if now.stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt(TWICE) from None
        return replace(now, stop=Stop.INTERRUPTED), failure
    except MasterProblemError as error:
        return now, failure or str(error)
    return replace(last, iteration=now.iteration, stop=last.stop or now.stop), failure


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
                now = TrainingState(_with_planes(outcome.state.planes, method.start(own, start), method))
            else:
                state = _continued(outcome.state, before, own, method)
                now = TrainingState(state)
                if np.isfinite(state.primal) and state.is_closed(state.primal, state.bound, tol):
                    now = now.with_best(Stop.GAP)  # the planes and the point of the previous run prove enough
            outcome = train(own, method, now, tol, limits, judge, keep, outcome, prove)
        except KeyboardInterrupt as interruption:
            if outcome is None or interruption.args == (TWICE,):
                raise
            return  # before a step was done
        yield outcome
        if outcome.certificate.stop is Stop.INTERRUPTED:
            return
        before = own


def _with_planes(planes: PlaneSet, state: State, method: Method) -> State:
    """The state a method begins with, and the planes found before, whose references its first step sets."""
    if not hasattr(method, "aimed"):
        return state
    return replace(state, planes=replace(planes, idle=np.zeros_like(planes.idle)), alpha=np.zeros(len(planes)))


def _continued(state: State, old: Objective, new: Objective, method: Method) -> State:
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
