"""Reciprocal rank of the first relevant document.

    RR@k = 1 / min {π(j) : y_j = 1}, or 0 where that is beyond k

With one relevant document this is Σ_j a[π(j)] y_j with a_i = 1/i. With several it is no inner product; it is trained by
the pattern of relevance (`rankopt.losses.MAPS`). In a tie group of t documents, r of them relevant, the chance that
the first relevant one stands at place i (from 1) is r/(t - i + 1) Π_{l < i} (t - l + 1 - r)/(t - l + 1).

Source: [ORM, section 2.3].
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.measures.first_relevant import FirstRelevant
from rankopt.measures.segments import Floats, Ints, position_in_query, query_of_row, running, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class ReciprocalRank(FirstRelevant):
    """One over the position of the first relevant document; not defined where there is none."""

    name: ClassVar[str] = "RR"
    with_gains: ClassVar[str] = "nDCG@k or P@k"
    along_line: ClassVar[str] = "first relevant"

    def discount(self, n: int) -> Floats:
        ranks = np.arange(1, n + 1)
        return np.where(ranks <= (self.cutoff or n), 1 / ranks, 0.0)

    def best_orders(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """A relevant document comes first."""
        return self.relevant(relevance), (position_in_query(offsets) == 0).astype(np.float64)

    def values(self, ranking: Ranking) -> Floats:
        result = np.zeros(len(ranking.offsets) - 1)
        hits = totals(self.relevant(ranking.relevance), ranking.groups)
        decisive = np.flatnonzero(hits)
        queries, first = np.unique(query_of_row(ranking.offsets)[ranking.groups[decisive]], return_index=True)
        decisive = decisive[first]  # the first tie group of its query with a relevant document

        bounds = np.concatenate([[0], np.cumsum(ranking.size[decisive])])
        place, inside = position_in_query(bounds), query_of_row(bounds)
        left = ranking.size[decisive][inside] - place
        chance = hits[decisive][inside] / left
        missed = np.where(place > 0, np.roll(np.maximum(1 - chance, 0.0), 1), 1.0)
        position = ranking.position[ranking.groups[decisive]][inside] + place
        counted = position <= (self.cutoff or np.inf)
        if ranking.pool is not None:
            counted &= ranking.pool.retrieved[ranking.groups[decisive]][inside]
        reciprocal = np.where(counted, 1 / position, 0.0)
        # beyond the last place that the first relevant document can take, `missed` is 0 and stays so
        result[queries] = totals(running(np.multiply, missed, bounds) * np.minimum(chance, 1.0) * reciprocal, bounds)
        return result


RR = ReciprocalRank()
