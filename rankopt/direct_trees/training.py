"""Training: trees one by one, each with the weight that is best for it, and all weights once more.

A stage grows a tree on the residuals y - f of the regression so far and weighs it on the line s + t h, exactly. It is
added if M does not fall; else it stays out of the ranking, and the regression alone takes it, with the least weight, so
that the next tree is another. Leveraging then goes through all trees in turn, until no weight alone raises M.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.certificate import TreeStop
from rankopt.direct_trees.problem import MeasureObjective
from rankopt.direct_trees.standing import Clock, EnsembleState
from rankopt.direct_trees.tree import Grower
from rankopt.direct_trees.weights import TreeWeightSearch

__all__ = ["Judge", "Plan", "trained"]

Floats = NDArray[np.float64]

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
