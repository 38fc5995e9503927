"""Expected rank utility: the chance of looking at a position halves every α - 1 positions.

    ERU  = Σ_j 2^((1 - π(j)) / (α - 1)) max(y_j - d, 0)          NERU = ERU / its best

Options: `alpha` > 1, the position that half of the users reach; `d`, the neutral vote.
Source: Breese, Heckerman and Kadie 1998; [ORM, section 2.3].
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.positional import Positional, best_sum, per_best
from rankopt.measures.segments import Floats, Ints


@dataclass(frozen=True, repr=False)
class ExpectedUtility(Positional):
    """Half-life utility of the votes above d."""

    name: ClassVar[str] = "ERU"
    alpha: float = field(default=5.0, metadata={"option": "alpha", "shown": True})
    d: float = field(default=3.0, metadata={"option": "d", "shown": True})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, alpha: float = ..., d: float = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        try:
            alpha, d = float(self.alpha), float(self.d)
        except (TypeError, ValueError):
            alpha = d = np.nan
        if not (np.isfinite(alpha) and alpha > 1 and np.isfinite(d)):
            raise MeasureError(
                f"{self.name} cannot have alpha={self.alpha!r}, d={self.d!r}; give a half-life alpha > 1, a number d."
            )
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "d", d)

    def discount(self, n: int) -> Floats:
        places = np.arange(n)
        return np.where(places < (self.cutoff or n), np.exp2(-places / (self.alpha - 1)), 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return np.maximum(relevance - self.d, 0.0)


@dataclass(frozen=True, repr=False)
class NormalizedExpectedUtility(ExpectedUtility):
    """Expected rank utility over its best; not defined on a query without a vote above d."""

    name: ClassVar[str] = "NERU"

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return per_best(super().gain(relevance, offsets), self.discounts(offsets), offsets)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return np.asarray(best_sum(self.discounts(offsets), super().gain(relevance, offsets), offsets) > 0)


ERU = ExpectedUtility()
NERU = NormalizedExpectedUtility()
