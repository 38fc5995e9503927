"""Judged at k: the share of the first k documents that somebody judged, relevant or not.

    Judged@k = (judged documents at positions <= k) / min(k, documents retrieved)

Runs of few judged documents are measured by what was not looked at: say it beside every other measure. Without a cutoff
all that was retrieved counts; where nothing was, it is 0.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.measures.pooled import Pooled
from rankopt.measures.segments import Floats, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class JudgedShare(Pooled):
    """Judged documents among the first k that were retrieved, over those; needs a run held against qrels."""

    name: ClassVar[str] = "Judged"

    def values(self, ranking: Ranking) -> Floats:
        pool = self.pool_of(ranking)
        counted = ((ranking.position <= (self.cutoff or np.inf)) & pool.retrieved).astype(np.float64)
        looked = totals(counted, ranking.offsets)
        found = totals(ranking.averaged(counted) * pool.judged, ranking.offsets)
        return np.asarray(found / np.maximum(looked, 1))


Judged = JudgedShare()
