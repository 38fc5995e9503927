"""The risk: the weighted mean of a loss over queries, as a function of w. It never sees an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import EngineError
from rankopt.risk.planes_at import PlanesAt
from rankopt.risk.shard import Answer, ShardFunction, Shard

__all__ = ["Engine", "Planes", "Risk"]

Floats = NDArray[np.float64]


class Engine(Protocol):
    """Who computes the shards: asks each of them the question and keeps their order."""

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]: ...


@dataclass(frozen=True, eq=False)
class Planes:
    """The risk at one w: its value, its proven bound, and planes under it.

    losses: (m,) one a query. slopes, references: (p, d), heights: (p,); plane i is
    heights[i] + ⟨slopes[i] - references[i], w⟩. p = 1 if merged (the planes summed with the queries' weights), else m.
    paid: (p,) the part of heights that belongs to the references, as the price of soft constraints does.
    """

    value: float
    bound: float
    losses: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float
    paid: Floats


@dataclass(frozen=True, eq=False)
class Risk:
    """R(w) = Σ_q v_q loss_q(X_q w), the weights v summing to 1, as a sum over shards in their order.

    touch: where the convex majorant of a nonconvex risk touches it; None is the risk itself.
    """

    shards: tuple[Shard, ...]
    engine: Engine
    touch: Floats | None = None

    @property
    def features(self) -> int:
        """The length of w."""
        return self.shards[0].scorer.dimensions

    @cached_property
    def weights(self) -> Floats:
        """(m,) v, one weight a query."""
        return np.concatenate([shard.weights for shard in self.shards])

    @property
    def convex(self) -> bool:
        return self.touch is not None or all(shard.loss.convex for shard in self.shards)

    def at(self, w: Floats, merged: bool = True, queries: tuple[int, int] | None = None, prove: bool = False) -> Planes:
        """Value, bound and planes at w, (d,); of the queries first <= q < last only, if `queries` says so.

        `prove` takes the bound from dual prices of every ranking, which costs more than the rankings.
        """
        parts = self.engine.map(PlanesAt(w, merged, prove, self.touch, queries), self.shards)
        if len(parts) != len(self.shards):
            raise EngineError(f"{type(self.engine).__name__} gave {len(parts)} answers for {len(self.shards)} shards")

        def joined(name: str) -> Floats:
            return np.concatenate([getattr(part, name) for part in parts])

        v = self.weights if queries is None else self.weights[slice(*queries)]
        losses, bounds, heights = joined("value"), joined("bound"), joined("heights")
        slopes, references, paid = joined("slopes"), joined("references"), joined("paid")
        if merged:
            heights, paid = np.array([v @ heights]), np.array([v @ paid])
            slopes, references = slopes.sum(axis=0, keepdims=True), references.sum(axis=0, keepdims=True)
        seconds = sum(part.seconds for part in parts)
        return Planes(float(v @ losses), float(v @ bounds), losses, heights, slopes, references, seconds, paid)

    def majorant(self, w: Floats) -> Risk:
        """The convex risk nowhere below this one that touches it at w; itself if convex."""
        return self if self.convex else replace(self, touch=w)
