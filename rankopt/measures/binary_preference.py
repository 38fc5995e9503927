"""Binary preference: how many relevant documents stand above the judged ones that are not relevant.

    Bpref = (1/n₊) Σ_{j relevant, retrieved} (1 - min(above_j, n₊) / min(n₊, n₋))

above_j counts the documents judged not relevant that stand above j, n₊ and n₋ all that were judged relevant and not (of
n₋ = 0 the fraction is 0). What nobody judged does not matter, so that pools may be incomplete.

In a tie group with x documents judged not relevant and b before it, every number b, ..., b + x stands above a relevant
one with the same chance, so that the mean of min(., n₊) over these is what counts.

Source: Buckley and Voorhees, Retrieval evaluation with incomplete information, 2004; the form of trec_eval.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.binary import Binary
from rankopt.measures.pooled import Pooled
from rankopt.measures.segments import Floats, Ints, query_of_row, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class BinaryPreference(Pooled, Binary):
    """Preferences kept between judged documents; not defined where none is relevant. Needs qrels."""

    name: ClassVar[str] = "Bpref"
    takes_cutoff: ClassVar[bool] = False

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        pool, query = self.pool_of(ranking), query_of_row(ranking.offsets)
        relevant = self.relevant(ranking.relevance) * pool.judged
        other = pool.judged - relevant
        good, bad = totals(relevant, ranking.offsets), totals(other, ranking.offsets)
        counted = np.concatenate([[0.0], np.cumsum(other)])  # whole numbers: exact
        tied = np.diff(counted[ranking.groups])[ranking.group]
        before = counted[ranking.groups[ranking.group]] - counted[ranking.offsets[:-1]][query]
        above = (_clipped(before + tied + 1, good[query]) - _clipped(before, good[query])) / (tied + 1)
        kept = 1 - above / np.maximum(np.minimum(good, bad), 1)[query]
        found = totals(np.where(pool.retrieved, relevant * kept, 0.0), ranking.offsets)
        return np.asarray(found / np.maximum(good, 1))


def _clipped(count: Floats, most: Floats) -> Floats:
    """Σ_{i < count} min(i, most)."""
    inner = np.minimum(count, most + 1)
    return np.asarray(inner * (inner - 1) / 2 + most * (count - inner))


Bpref = BinaryPreference()
