"""Recall at k: the share of the relevant documents that stand among the first k positions.

    R@k = (1/n₊) Σ_j [π(j) <= k] y_j          a_i = 1 for i <= k, else 0;  b(y) = y/n₊, y in {0, 1}

n₊ counts all relevant documents of the query: where a run is held against qrels, also those that were not retrieved.
(Where "recall at k" asks whether any relevant document stands there, it is `Success`.)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints, query_of_row, totals


@dataclass(frozen=True, repr=False)
class Recall(Binary, Positional):
    """Relevant documents among the first k, over all of them; not defined where there is none.

    Without a cutoff every order has the same: MeasureError.
    """

    name: ClassVar[str] = "R"

    def discount(self, n: int) -> Floats:
        if self.cutoff is None:
            raise MeasureError("R cannot tell orders apart because all documents are counted; write R@k, as in R@100.")
        return np.where(np.arange(n) < self.cutoff, 1.0, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        return np.asarray(relevant / np.maximum(totals(relevant, offsets), 1)[query_of_row(offsets)])

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)


R = Recall()
