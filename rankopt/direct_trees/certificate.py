"""What is proved of the weights of trees: no single one of them can be changed to much avail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from formulations.notebook_view import lines
from rankopt.direct_trees.problem import MeasureObjective
from rankopt.direct_trees.tree import Tree
from rankopt.line.best import best_interval

__all__ = ["TreeCertificate", "TreeStop", "certified"]

Floats = NDArray[np.float64]


class TreeStop(StrEnum):
    """Why a run ended."""

    GROWN = "all trees were grown"
    SETTLED = "no weight alone raises the measure any more"
    PASSES = "all passes were taken"
    CHOSEN = "what came before was better on eval_set"
    NO_SPLIT = "no document could be told from another any more"
    TIME = "time_limit passed"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


@dataclass(frozen=True)
class TreeCertificate(CompactReprMixin):
    """kind "direction-wise": for each tree column h of `directions` and every t that is no jumping point,
    M(s + t h) <= bound, s the scores of the training queries and M(s) = value.

    It speaks of one tree at a time and of no new ones: it is no bound of what all weights together could reach.
    """

    value: float
    bound: float
    directions: int
    stop: TreeStop
    kind: str = "direction-wise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", TreeStop(self.stop))
        numbers = isinstance(self.value, float) and isinstance(self.bound, float) and type(self.directions) is int
        if self.kind != "direction-wise" or not numbers or not np.isfinite(self.bound - self.value):
            raise ValueError(f"a certificate of M = {self.value!r} and the bound {self.bound!r}, kind {self.kind!r}")

    @property
    def gap(self) -> float:
        """What the best change of one weight would gain."""
        return max(self.bound - self.value, 0.0)

    def _repr_html_(self) -> str:
        return lines(str(self))

    def __str__(self) -> str:
        return (
            f"{self.kind}: M = {self.value:.8g}, at most {self.bound:.8g} by the weight of one of {self.directions} "
            f"trees, {self.stop.value}"
        )


def certified(problem: MeasureObjective, trees: Sequence[Tree], scores: Floats, stop: TreeStop) -> TreeCertificate:
    """Of these trees, each swept once from the scores (N,); of those that were swept before an interruption."""
    value = bound = problem.value(scores)
    for number, tree in enumerate(trees):
        try:
            (events,) = problem.events(scores, tree.column[None])
            bound = max(bound, best_interval(events)[2])
        except KeyboardInterrupt:
            return TreeCertificate(value, bound, number, TreeStop.INTERRUPTED)
    return TreeCertificate(value, bound, len(trees), stop)
