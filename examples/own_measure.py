"""Three measures of your own: a table of numbers, a discount function, and a class with its own notation.

python examples/own_measure.py
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.data import load_sample
from rankopt.measures import Custom, PositionalMeasure, evaluate, nDCG
from rankopt.rankers import LargeMarginRanker
from rankopt.testing import check_measure

# 1. Numbers: positions 1 to 3 have discounts 3, 2 and 1; grades 0 to 4 have gains 0, 1, 3, 6 and 10.
podium = Custom(discount=[3, 2, 1], gain=[0, 1, 3, 6, 10])


# 2. A function: a reader stops after each document with probability 0.2. nDCG divides by the best possible value.
def patience(n):
    return 0.8 ** np.arange(n)


patient = nDCG(discount=patience, gain="linear")


# 3. A class: the number of documents with a grade of at least `bar` among the first k.
@dataclass(frozen=True, repr=False)
class Screen(PositionalMeasure):
    """Σ_j [π(j) <= k] [y_j >= bar]: the number of good documents on the first screen of k."""

    name: ClassVar[str] = "Screen"
    bar: float = 3.0

    def discount(self, n):
        return np.where(np.arange(n) < (self.cutoff or n), 1.0, 0.0)

    def gain(self, relevance, offsets):
        return (relevance >= self.bar).astype(np.float64)


measures = {"podium": podium, "patient": patient, "screen": Screen() @ 5}
for measure in measures.values():
    check_measure(measure)  # sorting by grade is optimal, discounts do not increase, the order of rows has no effect
print("All three measures pass the checks of rankopt.testing.\n")

sample = load_sample("les-miserables")
print(f"{'trained on':<12}{'podium':>10}{'patient':>10}{'screen':>10}   relative gap of the objective")
for name, measure in measures.items():
    ranker = LargeMarginRanker(measure, bound="convex").fit(sample.train)
    means = [evaluate(sample.test, ranker.predict(sample.test), other).mean() for other in measures.values()]
    print(f"{name:<12}{''.join(f'{mean:>10.4f}' for mean in means)}   {ranker.certificate_.relative_gap:.1e}")
