"""What qrels and a run say of documents beside grades and scores: who was judged, who was retrieved.

A measure may count only what a run retrieved (all do), tell unjudged documents from documents judged not relevant
(`Bpref`, `infAP`), or count judgments themselves (`Judged`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.bool_]

__all__ = ["Marks", "Pool"]


@dataclass(frozen=True, eq=False)
class Pool:
    """Of N documents, (N,) each.

    judged     has a grade
    pooled     stands in the qrels, with a grade or, as a negative one says, without
    retrieved  stands in the run; what does not has no position, and counts only among the relevant documents there are
    """

    judged: Marks
    pooled: Marks
    retrieved: Marks

    def at(self, rows: NDArray[np.int64]) -> Pool:
        """The same of these rows, in their order."""
        return Pool(self.judged[rows], self.pooled[rows], self.retrieved[rows])
