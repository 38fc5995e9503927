"""Users' block, items' block, in turn, until both gaps are closed; the best point is kept.

The best users for items as they are: U (and b_u) of least Σ_u l_u + (λ_U/2)‖U‖² (+ (μ/2)‖b_u‖²).

Of a convex loss that is one users' block, of which the gap is proved; else one of a majorant after the other, each
touching the loss where the last one ended.

What every round of an alternation saw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.problem import FactorProblem, ModelState
from rankopt.optimize.certificate import Columns, Stop

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAJORANTS = 30
"""Convex majorants of a bound that is not convex, at most."""

TWICE = 2
"""Solutions of a convex block, at most: where the first value was far above the best, so was its tolerance."""


def best_users(blocks: Any, now: ModelState, tol: float) -> ModelState:
    """From a standing, its users given up for better ones only, to a gap of this part of what users cost, or as near as
    their block comes; of a bound that is not convex until a majorant gains no more than that, or `MAJORANTS` were
    taken. Items cost the same throughout and count for nothing here."""
    cost, _ = users_alone(blocks.problem, now)
    for _ in range(TWICE if blocks.convex else MAJORANTS):
        found = blocks.with_users(now, 0.5 * tol * abs(cost) / (abs(now.value) or 1.0))
        before, (cost, bound) = cost, users_alone(blocks.problem, found)
        now = found
        if (cost - bound if blocks.convex else before - cost) <= tol * abs(cost):
            break
    return now


def users_alone(problem: FactorProblem, now: ModelState) -> tuple[float, float]:
    """What users cost, their losses with it, and what that cannot fall below for these items."""
    cost = now.lost + problem.users_penalty(now.factors)
    return cost, min(now.users - problem.items_penalty(now.factors), cost)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AlternationStep:
    """One round, 0 the start: J after it, the lower bounds of J over the users' and over the items' block, the measure
    on eval_set (NaN without one), and seconds since the start."""

    step: int
    primal: float
    users: float
    items: float
    judged: float
    seconds: float

    @property
    def bound(self) -> float:
        """The lower of the two bounds: no optimum of the whole."""
        return min(self.users, self.items)


@dataclass(frozen=True, eq=False, repr=False)
class AlternationHistory(Columns[AlternationStep]):
    """The rounds of a run as columns: `history.primal[i]` is J after round i, and so for each field of
    `AlternationStep`."""

    row: ClassVar[type[AlternationStep]] = AlternationStep

    step: Ints
    primal: Floats
    users: Floats
    items: Floats
    judged: Floats
    seconds: Floats

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """J and the bounds of both blocks against "step" or "seconds"."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x = getattr(self, against)
        axes.plot(x, self.primal, label="objective")
        axes.plot(x, self.users, label="bound of the users' block")
        axes.plot(x, self.items, label="bound of the items' block")
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes


FINER = 4.0
"""How much finer than the tolerance, and than the last round's gain, a block is solved."""

COARSE = 1e-2
"""The coarsest relative gap of a block."""


class Blocks(Protocol):
    """A problem with its loss: from where a run stands to where it stands after a block."""

    def around(self, now: ModelState, precision: float) -> tuple[ModelState, ModelState]:
        """The same point with what was proved of it on the way; and the point after both blocks, each solved to this
        part of J. J never rises."""
        ...

    def whole(self, now: ModelState) -> ModelState:
        """The standing with its dual state, and nothing that blocks write to."""
        ...


@dataclass(frozen=True)
class Alternation:
    """tol: the relative gap of both blocks at which it ends. max_iter: rounds, time_limit: seconds after which it ends
    anyway. patience: rounds without a better measure on eval_set after which it ends. All of the whole run."""

    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    patience: int = 5


@dataclass(frozen=True, eq=False)
class AlternationResult:
    """best: the standing of least J, or of best measure on eval_set, which is judged. now: the last one. spent: seconds
    of all parts of the run. begun: the round of the start of this part."""

    best: ModelState
    judged: float
    now: ModelState
    steps: tuple[AlternationStep, ...]
    stop: Stop | None
    spent: float
    begun: int = 0


def gone_on(at: AlternationResult, start: ModelState, judged: bool) -> AlternationResult:
    """The same run from another standing, after the rounds so far. What was best on eval_set stays so; of J what was
    best before does not count, since the new standing is to do better in the end."""
    best, known = (at.best, at.judged) if judged else (start, -np.inf)
    return AlternationResult(best, known, start, at.steps, None, at.spent, len(at.steps) - 1)


def alternated(
    blocks: Blocks,
    settings: Alternation,
    begin: Callable[[], AlternationResult | ModelState],
    callbacks: Sequence[Callable[[AlternationStep, ModelState], bool | None]] = (),
    judge: Callable[[ModelState], float] | None = None,
    keep: Callable[[AlternationResult], None] | None = None,
) -> AlternationResult:
    """Rounds from a standing, or from where an earlier part of the run stands; what was found when it ended. begin: a
    function to either, since a standing is as large as the ratings, and nobody else need keep it.

    An interruption from the keyboard ends it as Stop.INTERRUPTED, in a callback too; before the first round is done
    there is nothing to keep, and it is raised."""
    at = _begun(begin(), judge)
    began = perf_counter() - at.spent
    interrupted = False
    while (stop := _over(at, settings, judge, interrupted)) is None:
        rounds = len(at.steps)
        try:
            at = _round(blocks, at, at.now if keep is None else at.now.apart(), settings, judge, began)
        except KeyboardInterrupt:
            if len(at.steps) == 1:
                raise
            interrupted = True
            continue
        if len(at.steps) == rounds:  # nothing but a proof that the gaps were closed
            continue
        try:
            asked = [callback(at.steps[-1], at.now) for callback in callbacks]
            if keep is not None:
                keep(at)
        except KeyboardInterrupt:
            interrupted = True
            continue
        if any(one is True for one in asked):
            stop = Stop.CALLBACK
            break
    at = replace(at, stop=stop, spent=perf_counter() - began)
    if keep is not None:
        keep(at)
    return at


def _begun(start: AlternationResult | ModelState, judge: Any) -> AlternationResult:
    if isinstance(start, AlternationResult):
        return start
    judged = np.nan if judge is None else judge(start)
    return AlternationResult(start, judged, start, (_step(0, start, judged, 0.0),), None, 0.0)


def _precision(at: AlternationResult, settings: Alternation) -> float:
    """A part of what the last round gained, but within the tolerance: early blocks need no proof."""
    finest = settings.tol / FINER
    if len(at.steps) < 2 or not at.now.value:
        return max(finest, COARSE)
    gained = (at.steps[-2].primal - at.steps[-1].primal) / abs(at.now.value)
    return min(max(finest, gained / FINER), COARSE)


def _round(
    blocks: Blocks, at: AlternationResult, start: ModelState, settings: Alternation, judge: Any, began: float
) -> AlternationResult:
    """start: the last standing, as blocks may write to it: where a run is kept, what it kept is not to change."""
    checked, now = blocks.around(start, _precision(at, settings))
    steps = (*at.steps[:-1], replace(at.steps[-1], users=checked.users, items=checked.items))
    if max(checked.gaps) <= settings.tol and len(at.steps) > at.begun + 1:
        best = checked if at.best is at.now else at.best
        return replace(at, best=best, now=checked, steps=steps, spent=perf_counter() - began)
    judged = np.nan if judge is None else judge(now)
    step = _step(len(at.steps), now, judged, perf_counter() - began)
    better = judged > at.judged if judge is not None else now.value <= at.best.value
    best, best_judged = (now, judged) if better else (at.best, at.judged)
    if not better and best.planes is not None:  # the last one alone has them, and its blocks write to them
        best = blocks.whole(best)
    return AlternationResult(best, best_judged, now, (*steps, step), None, perf_counter() - began, at.begun)


def _step(number: int, now: ModelState, judged: float, seconds: float) -> AlternationStep:
    return AlternationStep(number, now.value, now.users, now.items, judged, seconds)


def _over(at: AlternationResult, settings: Alternation, judge: Any, interrupted: bool) -> Stop | None:
    """Why the run is over, if it is."""
    if interrupted:
        return Stop.INTERRUPTED
    if len(at.steps) > at.begun + 1 and max(at.now.gaps) <= settings.tol:
        return Stop.GAP if at.best is at.now else Stop.CHOSEN if judge is not None else Stop.STALLED
    if judge is not None and idle(at) >= settings.patience:
        return Stop.PATIENCE
    if len(at.steps) > settings.max_iter:
        return Stop.ITERATIONS
    if settings.time_limit is not None and at.spent >= settings.time_limit:
        return Stop.TIME
    return None


def idle(at: AlternationResult) -> int:
    """Rounds since the measure on eval_set was best."""
    judged = [step.judged for step in at.steps]
    return len(judged) - 1 - int(np.argmax(judged))
