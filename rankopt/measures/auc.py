"""Area under the ROC curve: the share of (relevant, other) pairs in the right order.

    AUC = Σ_j (n - π(j)) y_j / (n₊ n₋) - (n₊ - 1)/(2 n₋)          a_i = n - i

since a relevant document at position i stands before n - i documents, and the relevant ones among themselves make
n₊(n₊ - 1)/2 such pairs in any order.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints, query_of_row, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class AreaUnderCurve(Binary, Positional):
    """Pairs in the right order; not defined on a query whose documents are all relevant or all not."""

    name: ClassVar[str] = "AUC"
    takes_cutoff: ClassVar[bool] = False

    def discount(self, n: int) -> Floats:
        return np.arange(n - 1, -1, -1, dtype=np.float64)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        positive, negative = self._classes(relevance, offsets)
        pairs = positive * negative
        share = np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)
        return np.asarray(relevant * share[query_of_row(offsets)])

    def constant(self, relevance: Floats, offsets: Ints) -> Floats:
        positive, negative = self._classes(relevance, offsets)
        both = positive * negative > 0
        return np.divide(positive - 1, 2 * negative, out=np.zeros_like(positive), where=both)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        positive, negative = self._classes(relevance, offsets)
        return np.asarray(positive * negative > 0)

    def values(self, ranking: Ranking) -> Floats:
        """Of a run, what is not retrieved stands behind all that is, in any order."""
        return super().values(replace(ranking, pool=None))

    def _classes(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        positive = totals(self.relevant(relevance), offsets)
        return positive, np.diff(offsets) - positive


AUC = AreaUnderCurve()
