"""Success at k: does a relevant document stand among the first k positions?

    Success@k = [min {π(j) : y_j = 1} <= k]

With one relevant document this is Σ_j [π(j) <= k] y_j, a_i = 1 for i <= k, and is trained as such. With several it is
no inner product, nor are its best orders those of one: it is evaluated, and climbed along lines. In a tie group of t
documents, r of them relevant, none stands on its first i places with chance C(t - r, i) / C(t, i).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.errors import MeasureError
from rankopt.measures.first_relevant import FirstRelevant
from rankopt.measures.segments import Floats, Ints, query_of_row, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class SuccessAtCutoff(FirstRelevant):
    """1 where a relevant document is among the first k, else 0; not defined where there is none."""

    name: ClassVar[str] = "Success"
    with_gains: ClassVar[str] = "R@k or P@k"
    along_line: ClassVar[str] = "crossings"

    def discount(self, n: int) -> Floats:
        return np.where(np.arange(n) < self._first, 1.0, 0.0)

    @property
    def _first(self) -> int:
        if self.cutoff is None:
            raise MeasureError("Success cannot tell orders apart without a cutoff; write Success@k, as in Success@5.")
        return self.cutoff

    def best_orders(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """As many relevant documents as there are, first: of several, orders with fewer of them there are best too."""
        return self.relevant(relevance), self.discounts(offsets)

    def values(self, ranking: Ranking) -> Floats:
        """One less the chance that every group leaves its relevant documents behind position k."""
        hits, size = totals(self.relevant(ranking.relevance), ranking.groups), ranking.size
        rows = np.minimum(ranking.groups[:-1], max(len(ranking.relevance) - 1, 0))
        begin = ranking.position[rows] if len(rows) else np.zeros(0, np.int64)
        inside = np.clip(self._first - begin + 1, 0, size)  # places of the group that count
        if ranking.pool is not None and len(rows):
            inside = np.where(ranking.pool.retrieved[rows], inside, 0)
        missed = np.ones(len(size))
        missed[(hits > 0) & (inside > 0)] = 0.0
        for group in np.flatnonzero((hits > 0) & (inside > 0) & (inside + hits <= size)):
            places = np.arange(inside[group])
            missed[group] = np.prod((size[group] - hits[group] - places) / (size[group] - places))
        all_missed = np.ones(len(ranking.offsets) - 1)
        np.multiply.at(all_missed, query_of_row(ranking.offsets)[rows], missed)
        return np.asarray(1.0 - all_missed)


Success = SuccessAtCutoff()
