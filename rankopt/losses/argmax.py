"""All that a margin loss asks of a feature map: the best y of every query, loss-augmented, by gain, and by score.

A feature map is linear in the scores s: φ(y)·w = r(y)ᵀs, so a y is known by its slope r(y) and the gain it earns. For
rankings r(y) = c[π] (`argmax_positional`), under a set the same of admissible ones (`argmax_admissible`), for slots a
matrix of ones where documents stand (`argmax_slots`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Argmax", "Found"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """The loss-augmented best y of every query of a batch: argmax of r(y)ᵀs - gain(y).

    slope: (N,) or (N, slots), r(y), documents that could change places for nothing sharing theirs. earned: (m,)
    gain(y). value, bound: (m,) what r(y)ᵀs - gain(y) is, and what it cannot exceed. seconds: spent in the solver.
    """

    slope: Floats
    earned: Floats
    value: Floats
    bound: Floats
    seconds: float


class Argmax(Protocol):
    """The queries of a batch, documents of query q in rows offsets[q] : offsets[q + 1].

    Every slope is blind to the order in which equal documents come: of those that nothing tells apart (equal score,
    equal gain, and whatever a set sees) each has the mean, which is a mean of maximisers, hence a subgradient too. Ties
    between others fall by the documents' contents: the exact argmax goes by score and gain alone; sets, and foreign
    solvers, by the order of the documents, which is that of their contents in training (`data.canonical`).
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Of scores and slopes: (N,), or (N, slots)."""
        ...

    @property
    def offsets(self) -> Ints: ...

    @property
    def best(self) -> Floats:
        """(m,) max over y of gain(y)."""
        ...

    def at(self, scores: Floats, prove: bool = False) -> Found:
        """The loss-augmented best y; `prove` takes bounds from dual prices even where the solver proves by way."""
        ...

    def best_reference(self, which: str = "average") -> Floats:
        """r of the mean of the y of greatest gain, which the scores do not change; `which`: "average", or another word
        that this map knows; OptionError for one that it does not."""
        ...

    def best_by_score(self, scores: Floats) -> Floats:
        """r of the y that of those of greatest gain the scores like most."""
        ...

    def by_score(self, scores: Floats) -> Floats:
        """r of the y that the scores like most."""
        ...

    def only(self, first: int, last: int) -> Argmax:
        """The queries first <= q < last."""
        ...
