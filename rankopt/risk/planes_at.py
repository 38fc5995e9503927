"""Values and planes of the risk at one w, asked of each shard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.risk.shard import Shard

__all__ = ["PlanesAt", "ShardAt"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShardAt:
    """A shard at one w. value, bound, heights: one a query that was asked for. slopes, references: one row a plane, the
    weighted sum over all these queries if merged, else one a query and not weighted. seconds: spent in the argmax.
    paid: of each height the part that belongs to the reference.
    """

    value: Floats
    bound: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float
    paid: Floats


@dataclass(frozen=True, eq=False)
class PlanesAt:
    """Values and planes of all queries of a shard at w.

    merged: the planes summed with the weights of the queries, or one a query.
    prove: bounds from dual prices of every ranking.
    touch: the point at which the convex majorant of a nonconvex loss touches it; None asks the loss itself. A shard
        that has not seen this point yet works the majorant out, so it does not matter who answers.
    queries: only the queries first <= q < last, counted over all shards.
    """

    w: Floats
    merged: bool = True
    prove: bool = False
    touch: Floats | None = None
    queries: tuple[int, int] | None = None

    def __call__(self, shard: Shard) -> ShardAt:
        first, last = shard.own(self.queries)
        if first >= last:
            none, planes = np.zeros(0), np.zeros((1 if self.merged else 0, shard.scorer.dimensions))
            return ShardAt(none, none, none, planes, planes, 0.0, none)
        known = shard.touched(self.touch)
        whole = last - first == len(shard)
        loss = known.loss if whole else known.loss.only(first, last)
        there = loss.at(shard.scores(self.w, first, last), self.prove)
        if known.loss.convex and (whole or not self.merged):
            (slopes,) = shard.summed((there.placed,), first, last, self.merged)
            references = shard.references(known, self.merged)
            references = references if self.merged else references[first:last]
        else:
            slopes, references = shard.summed((there.placed, there.reference), first, last, self.merged)
        paid = np.zeros_like(there.height) if there.paid is None else there.paid
        return ShardAt(there.value, there.bound, there.height, slopes, references, there.seconds, paid)
