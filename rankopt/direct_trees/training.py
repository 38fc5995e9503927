"""Training: trees one by one, each with the weight that is best for it, and all weights once more.

A stage grows a tree on the residuals y - f of the regression so far and weighs it on the line s + t h, exactly. It is
added if M does not fall; else it stays out of the ranking, and the regression alone takes it, with the least weight, so
that the next tree is another. Leveraging then goes through all trees in turn, until no weight alone raises M.

Where training stands between two steps, and the clock that says when it is over.

The weight of a tree: where on its line M is best, within limits, or anywhere.

What every step of a run with trees did, and what it was predicted to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.certificate import MeasureObjective, TreeStop
from rankopt.direct_trees.tree import Grower, Tree
from rankopt.errors import OptionError
from rankopt.optimize.certificate import Columns
from rankopt.rankers.options import number
from rankopt.sweeps.step_function import (
    LinePoint,
    clamped_point,
    inside_point,
    middle_point,
    window_inside,
    window_point,
)

Floats = NDArray[np.float64]

RULES = ("inside", "window", "clamped")


@dataclass(frozen=True)
class TreeWeightSearch:
    """rule     "inside": the best value in (low, high); "window": the best mean of M over [t - h, t + h], low <= t <=
    high, h so large that scores move by `window` of their deviation inside queries; "clamped": the best of
    the whole line, brought to the nearer end where it lies outside, as in paper 3
    """

    rule: str
    low: float
    high: float
    window: float

    @classmethod
    def named(cls, rule: str, interval: tuple[float, float], window: float) -> TreeWeightSearch:
        """OptionError for what cannot be."""
        if rule not in RULES:
            raise OptionError(f"weight = {rule!r} is unknown; known are {', '.join(RULES)}")
        ends = [number(end) for end in interval] if isinstance(interval, tuple | list) else []
        if not (len(ends) == 2 and 0 < ends[0] < ends[1] < np.inf):
            raise OptionError(f"interval = {interval!r} holds no weights; give two numbers 0 < low < high")
        if not 0 < number(window) < np.inf:
            raise OptionError(f"window = {window!r} cannot be; give the part of the scores' deviation, such as 0.2")
        return cls(rule, ends[0], ends[1], float(window))

    def within(self, problem: MeasureObjective, scores: Floats, column: Floats) -> LinePoint:
        """The weight of a new tree, in [low, high]."""
        (events,) = problem.events(scores, column[None])
        if self.rule == "inside":
            return inside_point(events, self.low, self.high)
        reach = problem.reach(scores, column, self.window)
        if self.rule == "window":
            return window_inside(events, self.low, self.high, reach)
        return clamped_point(events, self.low, self.high, reach)

    def anywhere(self, problem: MeasureObjective, scores: Floats, column: Floats) -> LinePoint:
        """The change of weight of a tree that is there: the best of the whole line, by its middle or by windows."""
        (events,) = problem.events(scores, column[None])
        reach = problem.reach(scores, column, self.window)
        return window_point(events, reach) if self.rule == "window" else middle_point(events, reach)


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TreeStep:
    """One step, counted from 1. sweep: 0 where a tree is added, else the pass over all trees. tree: which one, from 0.
    weight: what its weight is now; 0 is left out. predicted: M on its line there, by the sweep. measure: M of the
    training queries after the step, measured: `predicted` where the tree got this weight, else as before. judged: the
    measure on eval_set then, NaN without one; of a pass its last step has it, when the pass is
    over."""

    step: int
    sweep: int
    tree: int
    weight: float
    predicted: float
    measure: float
    judged: float = np.nan


@dataclass(frozen=True, eq=False, repr=False)
class TreeHistory(Columns[TreeStep]):
    """The steps of a run as columns: `history.measure[i]` is M after step i, and so for each field of `TreeStep`."""

    row: ClassVar[type[TreeStep]] = TreeStep

    step: Ints
    sweep: Ints
    tree: Ints
    weight: Floats
    predicted: Floats
    measure: Floats
    judged: Floats


@dataclass(frozen=True, eq=False)
class EnsembleState:
    """trees and their weights; scores (N + E,) = Σ weight · column, of the training documents and those of eval_set.
    fitted (N + E,): what the regression has come to, from which the next residuals are taken. measure: M, measured.
    judged: the measure on eval_set, NaN without one."""

    trees: tuple[Tree, ...]
    weights: tuple[float, ...]
    scores: Floats
    fitted: Floats
    measure: float
    judged: float = np.nan

    def reweighed(self, place: int, weight: float) -> EnsembleState:
        """With another weight of one tree; not measured yet."""
        weights = (*self.weights[:place], weight, *self.weights[place + 1 :])
        return replace(self, weights=weights, scores=total(self.trees, weights, self.scores.size))


TreeCallback = Callable[[TreeStep, EnsembleState], bool | None]
"""Called after every step; stops the run by returning True."""


@dataclass
class Clock:
    """What a run has recorded, and what may end it."""

    time_limit: float | None
    callbacks: tuple[TreeCallback, ...]
    steps: list[TreeStep]
    began: float

    @classmethod
    def started(cls, time_limit: float | None, callbacks: Sequence[TreeCallback]) -> Clock:
        return cls(time_limit, tuple(callbacks), [], perf_counter())

    def after(
        self, now: EnsembleState, sweep: int, tree: int, predicted: float, judged: float = np.nan
    ) -> TreeStop | None:
        """Record a step; the reason to stop after it, if callbacks or the time give one."""
        step = TreeStep(len(self.steps) + 1, sweep, tree, now.weights[tree], predicted, now.measure, judged)
        self.steps.append(step)
        if any([callback(step, now) for callback in self.callbacks]):
            return TreeStop.CALLBACK
        late = self.time_limit is not None and perf_counter() - self.began >= self.time_limit
        return TreeStop.TIME if late else None


def total(trees: Sequence[Tree], weights: Sequence[float], documents: int) -> Floats:
    """Σ weight · column, added tree by tree as the saved trees are."""
    scores = np.zeros(documents)
    for tree, weight in zip(trees, weights, strict=True):
        if weight != 0:
            scores = tree.added(scores, weight)
    return scores


Judge = Callable[[Floats], float]
"""The measure on eval_set, of the scores of its documents."""

RISEN = 1e-12
"""What M must rise by for a weight to be moved: less is rounding."""


@dataclass(frozen=True)
class Plan:
    """rounds: trees. patience: rounds without a better measure on eval_set after which growing ends. weighed: whether
    each tree gets its own weight as it is grown, else all get the largest. passes: over all trees, afterwards."""

    rounds: int
    patience: int
    weighed: bool
    passes: int


@dataclass(frozen=True, eq=False)
class Run:
    """What does not change while training goes on."""

    problem: MeasureObjective
    grower: Grower
    weighing: TreeWeightSearch
    plan: Plan
    judge: Judge | None
    told: Callable[[int, float | None], None]

    def rated(self, now: EnsembleState) -> EnsembleState:
        """With its measure on eval_set."""
        if self.judge is None:
            return now
        return replace(now, judged=self.judge(now.scores[self.problem.grades.size :]))


def trained(run: Run, documents: int, clock: Clock) -> tuple[EnsembleState, TreeStop]:
    """From no trees at all to the end, or to an interruption after the first step; documents: N + E."""
    problem, zeros = run.problem, np.zeros(documents)
    mean = float(problem.shares @ problem.grades / problem.grades.size)
    first = EnsembleState((), (), zeros, zeros + mean, problem.value(zeros))
    best = _Best(first)
    try:
        stop = _grown(run, best, clock)
        if run.plan.passes and stop in (TreeStop.GROWN, TreeStop.NO_SPLIT, TreeStop.CHOSEN) and best.kept.trees:
            stop = _leveraged(run, best, clock)
    except KeyboardInterrupt:
        if not clock.steps:
            raise
        stop = TreeStop.INTERRUPTED
    return best.kept, stop


@dataclass
class _Best:
    """The standing that is returned: the latest, or the best on eval_set of all."""

    kept: EnsembleState
    latest: EnsembleState | None = None

    def see(self, now: EnsembleState) -> bool:
        """Whether it is kept."""
        self.latest = now
        better = np.isnan(now.judged) or not self.kept.judged >= now.judged
        if better:
            self.kept = now
        return better


def _grown(run: Run, best: _Best, clock: Clock) -> TreeStop:
    now, since = best.kept, 0
    for round in range(1, run.plan.rounds + 1):
        found = _stage(run, now)
        if found is None:
            return TreeStop.NO_SPLIT
        now, predicted = run.rated(found[0]), found[1]
        since = 0 if best.see(now) else since + 1
        run.told(round, None if run.judge is None else now.judged)
        stop = clock.after(now, 0, len(now.trees) - 1, predicted, now.judged)
        if stop is not None:
            return stop
        if since >= run.plan.patience:
            return TreeStop.CHOSEN
    return TreeStop.GROWN if since == 0 else TreeStop.CHOSEN


def _stage(run: Run, now: EnsembleState) -> tuple[EnsembleState, float] | None:
    """With one more tree, and M as predicted for it; None where none can be grown."""
    problem = run.problem
    count = problem.grades.size
    tree = run.grower.grow(problem.grades - now.fitted[:count], now.scores)
    if tree is None:
        return None
    weight, predicted = run.weighing.high, np.nan
    if run.plan.weighed:
        point = run.weighing.within(problem, now.scores, tree.column)
        weight, predicted = point.t, point.value
    scores = tree.added(now.scores, weight)
    measure = problem.value(scores)
    if run.plan.weighed and measure < now.measure:
        scores, measure = now.scores, now.measure
        return replace(
            now, trees=(*now.trees, tree), weights=(*now.weights, 0.0), fitted=tree.added(now.fitted, run.weighing.low)
        ), predicted
    return EnsembleState(
        (*now.trees, tree), (*now.weights, weight), scores, tree.added(now.fitted, weight), measure
    ), predicted


def _leveraged(run: Run, best: _Best, clock: Clock) -> TreeStop:
    """Coordinate ascent over the weights from the best so far."""
    now = best.kept
    for sweep in range(1, run.plan.passes + 1):
        moved = False
        for place, tree in enumerate(now.trees):
            point = run.weighing.anywhere(run.problem, now.scores, tree.column)
            if point.value <= now.measure + RISEN:
                continue
            trial = now.reweighed(place, now.weights[place] + point.t)
            measure = run.problem.value(trial.scores)
            if measure <= now.measure + RISEN:
                continue
            now, moved = replace(trial, measure=measure, judged=np.nan), True
            if run.judge is None:
                best.see(now)
            stop = clock.after(now, sweep, place, point.value)
            if stop is not None:
                best.see(run.rated(now))
                return stop
        now = run.rated(now)
        if moved:
            clock.steps[-1] = replace(clock.steps[-1], judged=now.judged)
        kept = best.see(now)
        run.told(sweep, None if run.judge is None else now.judged)
        if not moved:
            return TreeStop.SETTLED if kept or best.kept.measure == now.measure else TreeStop.CHOSEN
    return TreeStop.PASSES
