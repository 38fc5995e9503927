"""How likely the ideal order of every query is along a line, in the model of Plackett and Luce."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.segments import position_in_query, query_of_row, running
from rankopt.risk.along_line import swept
from rankopt.risk.shard import Shard

__all__ = ["IdealOrderAt"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IdealOrderAt:
    """Σ_q v_q Σ_{i <= k} [z_i - log Σ_{l >= i} exp(z_l)], z the scores X w in the ideal order: by falling grade, and
    inside a grade by falling score at `start`.

    k is the cutoff of the measure, of a measure without one the whole list. Of shards that hold a `Sweep`; on the line
    w = start + t v it is concave in t. Unlike the measure it depends on the scale of w. Source: paper 3, section 2.3.
    """

    w: Floats
    start: Floats

    def __call__(self, shard: Shard) -> float:
        sweep = swept(shard)
        query, place = query_of_row(shard.offsets), position_in_query(shard.offsets)
        order = np.lexsort((-shard.scores(self.start), -sweep.relevance, query))
        z = shard.scores(self.w)[order]
        backwards = shard.offsets[-1] - shard.offsets[::-1]
        later = running(np.logaddexp, z[::-1], backwards)[::-1]
        counted = place < (sweep.measure.cutoff or z.size)
        return float(np.sum(np.where(counted, shard.weights[query] * (z - later), 0.0)))
