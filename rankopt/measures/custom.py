"""A user-defined measure: Custom(discount=a, gain=b) is Σ_j a[π(j)] b(y_j).

a  numbers (a_1, a_2, ...), continued by 0, or a function n -> (n,); never increasing
b  numbers (b(0), b(1), ...), one a grade, or a function of an array of grades; never decreasing

The normalized version is nDCG(discount=a, gain=b). Measures with functions print but do not parse.

>>> from rankopt.measures import Custom, evaluate
>>> Custom(discount=[3, 2, 1], gain=[0, 1, 10])
Custom(discount=(3.0, 2.0, 1.0), gain=(0.0, 1.0, 10.0))
>>> evaluate([0, 2, 1], [9., 8., 7.], Custom(discount=[3, 2, 1], gain=[0, 1, 10])).mean()
21.0
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from rankopt.errors import MeasureError
from rankopt.measures.dcg import DiscountedGain
from rankopt.measures.measure import Convention
from rankopt.measures.tied_ranking import Floats, Ints


@dataclass(frozen=True, repr=False)
class CustomMeasure(DiscountedGain):
    """A discount and a gain defined by the user; conventions do not change them."""

    name: ClassVar[str] = "Custom"

    def with_convention(self, convention: Convention) -> Self:
        return self

    def discount(self, n: int) -> Floats:
        if self.stated_discount is None:
            raise MeasureError("Custom has no discount; write Custom(discount=..., gain=...).")
        return super().discount(n)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        if self.stated_gain is None:
            raise MeasureError("Custom has no gain; write Custom(discount=..., gain=...).")
        return super().gain(relevance, offsets)


Custom = CustomMeasure()
