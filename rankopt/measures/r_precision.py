"""R-precision: the share of relevant documents among as many first positions as there are relevant documents.

    Rprec = (1/n₊) Σ_j [π(j) <= n₊] y_j

Where the list ends depends on the grades of the query, so it is for evaluation only.

Source: Buckley and Voorhees, Retrieval system evaluation, 2005.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.binary import Binary
from rankopt.measures.segments import Floats, Ints, query_of_row, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class RPrecision(Binary):
    """Precision, and recall, at the number of relevant documents; not defined where there is none."""

    name: ClassVar[str] = "Rprec"
    takes_cutoff: ClassVar[bool] = False

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        relevant = self.relevant(ranking.relevance)
        count = totals(relevant, ranking.offsets)
        first = (ranking.position <= count[query_of_row(ranking.offsets)]).astype(np.float64)
        found = totals(ranking.averaged(first) * relevant * ranking.retrieved, ranking.offsets)
        return np.asarray(found / np.maximum(count, 1))


Rprec = RPrecision()
