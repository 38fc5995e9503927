"""DCG@k and nDCG@k.

    DCG@k  = Σ_j a[π(j)] b(y_j)          a_i = 1/log2(i + 1) for i <= k, else 0;  b(y) = 2^y - 1
    nDCG@k = DCG@k / max over orders of DCG@k

Options `discount` and `gain`: see `rankopt.measures.gain_and_discount`. Left open, they are settled by the convention
of an evaluation; training takes the formula above.

Source: Järvelin and Kekäläinen 2002; exponential gain of Burges et al. 2005; [ORM, section 2.3].
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.convention import Convention
from rankopt.measures.gain_and_discount import Discount, Gain, discount_form, discount_of, gain_form, gain_of
from rankopt.measures.positional import Positional, best_sum, per_best
from rankopt.measures.segments import Floats, Ints


@dataclass(frozen=True, repr=False)
class DiscountedGain(Positional):
    """Discounted cumulative gain."""

    name: ClassVar[str] = "DCG"
    stated_discount: Any = field(default=None, metadata={"option": "discount"})
    stated_gain: Any = field(default=None, metadata={"option": "gain"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, discount: Discount | None = ..., gain: Gain | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stated_discount", discount_form(self.stated_discount))
        object.__setattr__(self, "stated_gain", gain_form(self.stated_gain))

    def under(self, convention: Convention) -> Self:
        return replace(
            self,
            stated_discount=convention.discount if self.stated_discount is None else self.stated_discount,
            stated_gain=convention.gain if self.stated_gain is None else self.stated_gain,
        )

    def discount(self, n: int) -> Floats:
        return discount_of("log2" if self.stated_discount is None else self.stated_discount, n, self.cutoff)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return gain_of("exp2" if self.stated_gain is None else self.stated_gain, relevance)


@dataclass(frozen=True, repr=False)
class NormalizedDiscountedGain(DiscountedGain):
    """Discounted cumulative gain over its best; not defined on a query whose best is 0."""

    name: ClassVar[str] = "nDCG"
    zero_when_short: ClassVar[tuple[str, ...]] = ("zero", "zero-ndcg")

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return per_best(super().gain(relevance, offsets), self.discounts(offsets), offsets)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return np.asarray(best_sum(self.discounts(offsets), super().gain(relevance, offsets), offsets) > 0)


DCG = DiscountedGain()
nDCG = NormalizedDiscountedGain()
