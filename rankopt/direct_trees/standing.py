"""Where training stands between two steps, and the clock that says when it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.certificate import TreeStop
from rankopt.direct_trees.history import TreeStep
from rankopt.direct_trees.tree import Tree

__all__ = ["Clock", "EnsembleState", "TreeCallback", "total"]

Floats = NDArray[np.float64]


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
