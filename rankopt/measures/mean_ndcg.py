"""MeanNDCG: the mean of nDCG@k over all k = 1..n, reported by LETOR.

    MeanNDCG = (1/n) Σ_k DCG@k / best DCG@k = Σ_j A[π(j)] b(y_j),    A_i = (a_i / n) Σ_{k >= i} 1 / best DCG@k

The position weights A depend on the grades of the query, so it is for evaluation only. Options as of nDCG.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.convention import Convention
from rankopt.measures.dcg import DiscountedGain
from rankopt.measures.gain_and_discount import Discount, Gain, discount_form, gain_form
from rankopt.measures.measure import Measure
from rankopt.measures.segments import Floats, Ints, descending, query_of_row, running, totals
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class MeanNormalizedDiscountedGain(Measure):
    """nDCG averaged over its cutoffs; not defined on a query whose best DCG is 0."""

    name: ClassVar[str] = "MeanNDCG"
    takes_cutoff: ClassVar[bool] = False
    stated_discount: Any = field(default=None, metadata={"option": "discount"})
    stated_gain: Any = field(default=None, metadata={"option": "gain"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, discount: Discount | None = ..., gain: Gain | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stated_discount", discount_form(self.stated_discount))
        object.__setattr__(self, "stated_gain", gain_form(self.stated_gain))

    @property
    def dcg(self) -> DiscountedGain:
        """The DCG that is averaged."""
        return DiscountedGain(stated_discount=self.stated_discount, stated_gain=self.stated_gain)

    def under(self, convention: Convention) -> Self:
        settled = self.dcg.under(convention)
        return replace(self, stated_discount=settled.stated_discount, stated_gain=settled.stated_gain)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return np.asarray(self.dcg.best(relevance, offsets) > 0)

    def values(self, ranking: Ranking) -> Floats:
        offsets = ranking.offsets
        discounts, gain = self.dcg.discounts(offsets), self.dcg.gain(ranking.relevance, offsets)
        best = running(np.add, discounts * descending(gain, offsets), offsets)
        shares = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
        backwards = running(np.add, shares[::-1], offsets[-1] - offsets[::-1])[::-1]
        weights = discounts * backwards / np.diff(offsets)[query_of_row(offsets)]
        return totals(ranking.averaged(weights) * gain * ranking.retrieved, offsets)


MeanNDCG = MeanNormalizedDiscountedGain()
