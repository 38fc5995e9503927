"""What a shard is asked: plain data that goes wherever the shard is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankopt.risk.shard import Shard, ShardAt

__all__ = ["Question"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Question:
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
        return shard.answer(self)
