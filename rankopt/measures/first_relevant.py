"""Measures of the position where the first relevant document stands.

With one relevant document such a measure is an inner product, a[π]ᵀy, and is trained as one. With several it is none,
whatever its gains: the second of them adds nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints, totals


@dataclass(frozen=True, repr=False)
class FirstRelevant(Binary, Positional):
    """A function of min {π(j) : y_j = 1}, at best 1; not defined where nothing is relevant.

    with_gains: measures to take instead where gains are needed, for the message.
    """

    with_gains: ClassVar[str]

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        counts = totals(relevant, offsets)
        if np.any(counts > 1):
            query = int(np.argmax(counts > 1))
            raise MeasureError(
                f"{self} has no gains because query {query} (from 0) has {counts[query]:.0f} relevant ones "
                f"and it is an inner product with at most one; take {self.with_gains} where gains are needed."
            )
        return relevant

    def inner(self, relevance: Floats, offsets: Ints) -> bool:
        return bool(totals(self.relevant(relevance), offsets).max(initial=0) <= 1)

    def best(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.any_relevant(relevance, offsets).astype(np.float64)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)
