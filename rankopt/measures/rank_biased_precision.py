"""Rank-biased precision: a user looks at the next document with chance p.

    RBP@k = (1 - p) Σ_j [π(j) <= k] p^(π(j) - 1) y_j          a_i = (1 - p) p^(i - 1);  b(y) in {0, 1}

Options: `p` in (0, 1), the user's persistence; `rel`, the least grade that counts as relevant. A list of n documents
reaches 1 - p^n at most: what stands behind it adds p^n more at most, the residual of the source.

Source: Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, 2008.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints


@dataclass(frozen=True, repr=False)
class RankBiasedPrecision(Binary, Positional):
    """Expected rate at which a user of persistence p finds relevant documents."""

    name: ClassVar[str] = "RBP"
    p: float = field(default=0.8, metadata={"option": "p", "shown": True})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, p: float = ..., rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            p = float(self.p)
        except (TypeError, ValueError):
            p = np.nan
        if not 0 < p < 1:
            raise MeasureError(f"RBP cannot have p={self.p!r}; give a persistence between 0 and 1, such as 0.8.")
        object.__setattr__(self, "p", p)

    def discount(self, n: int) -> Floats:
        places = np.arange(n)
        return np.where(places < (self.cutoff or n), (1 - self.p) * self.p**places, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)


RBP = RankBiasedPrecision()
