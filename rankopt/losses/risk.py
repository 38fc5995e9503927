"""The risk: the weighted mean of a loss over queries, as a function of w. It never sees an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.shard import Shard

__all__ = ["Engine", "Planes", "Risk"]

Floats = NDArray[np.float64]
Result = TypeVar("Result")


class Engine(Protocol):
    """Who computes the shards: maps a function over them and keeps their order."""

    def map(self, function: Callable[[Shard], Result], shards: Iterable[Shard]) -> list[Result]: ...


@dataclass(frozen=True, eq=False)
class Planes:
    """The risk at one w: its value, its proven bound, and planes under it.

    losses: (m,) one a query. slopes, references: (p, d), heights: (p,); plane i is
    heights[i] + ⟨slopes[i] - references[i], w⟩. p = 1 if merged (the planes summed with the queries' weights), else m.
    """

    value: float
    bound: float
    losses: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class Risk:
    """R(w) = Σ_q v_q loss_q(X_q w), the weights v summing to 1, as a sum over shards in their order."""

    shards: tuple[Shard, ...]
    engine: Engine

    @property
    def features(self) -> int:
        return int(self.shards[0].features.shape[1]) * (self.shards[0].slots or 1)

    @property
    def weights(self) -> Floats:
        """(m,) v, one weight a query."""
        return np.concatenate([shard.weights for shard in self.shards])

    @property
    def convex(self) -> bool:
        return all(shard.loss.convex for shard in self.shards)

    def at(self, w: Floats, merged: bool = True, queries: tuple[int, int] | None = None, prove: bool = False) -> Planes:
        """Value, bound and planes at w, (d,); of the queries first <= q < last only, if `queries` says so.

        `prove` takes the bound from dual prices of every ranking, which costs more than the rankings.
        """
        shards = self.shards if queries is None else self._cut(*queries)
        parts = self.engine.map(lambda shard: shard.at(w, merged, prove), shards)
        weights = [shard.weights for shard in shards]
        value = sum(float(v @ part.value) for v, part in zip(weights, parts, strict=True))
        bound = sum(float(v @ part.bound) for v, part in zip(weights, parts, strict=True))
        losses = np.concatenate([part.value for part in parts])
        seconds = sum(part.seconds for part in parts)
        if not merged:
            heights, slopes, references = (
                np.concatenate([getattr(part, name) for part in parts]) for name in ("heights", "slopes", "references")
            )
            return Planes(value, bound, losses, heights, slopes, references, seconds)
        height = sum(float(v @ part.heights) for v, part in zip(weights, parts, strict=True))
        slope = np.sum([part.slopes for part in parts], axis=0)
        reference = np.sum([part.references for part in parts], axis=0)
        return Planes(value, bound, losses, np.array([height]), slope, reference, seconds)

    def majorant(self, w: Floats) -> Risk:
        """The convex risk nowhere below this one that touches it at w; itself if convex."""
        if self.convex:
            return self
        return replace(self, shards=tuple(self.engine.map(lambda shard: shard.majorant(w), self.shards)))

    def _cut(self, first: int, last: int) -> list[Shard]:
        """What these queries have of each shard."""
        parts, start = [], 0
        for shard in self.shards:
            low, high = max(first - start, 0), min(last - start, shard.weights.size)
            if low < high:
                parts.append(shard.only(low, high))
            start += shard.weights.size
        return parts
