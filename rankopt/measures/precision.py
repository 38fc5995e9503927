"""Precision at k: the share of relevant documents among the first k positions.

    P@k = (1/k) Σ_j [π(j) <= k] y_j          a_i = 1/k for i <= k, else 0;  b(y) in {0, 1}

A query of fewer than k documents still divides by k. Source: [ORM, section 2.3].
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints


@dataclass(frozen=True, repr=False)
class Precision(Binary, Positional):
    """Relevant documents among the first k, over k. Without a cutoff every order has the same: MeasureError."""

    name: ClassVar[str] = "P"
    zero_when_short: ClassVar[tuple[str, ...]] = ("zero",)

    def discount(self, n: int) -> Floats:
        if self.cutoff is None:
            raise MeasureError("P cannot tell orders apart because all documents are counted; write P@k, such as P@10.")
        return np.where(np.arange(n) < self.cutoff, 1 / self.cutoff, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)


P = Precision()
