"""Three measures of your own: a discount and a gain in place, the same as a value, and a family with its own notation.

python examples/your_own_measure.py
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.data import load_sample
from rankopt.measures import Custom, PositionalMeasure, evaluate, nDCG
from rankopt.rankers import LargeMarginRanker
from rankopt.testing import check_measure

# 1. Numbers: three places count 3, 2 and 1, grades count 0, 1, 3, 6, 10.
podium = Custom(discount=[3, 2, 1], gain=[0, 1, 3, 6, 10])


# 2. A function: a reader who stops at each place with probability 0.2, over the best that the query allows.
def patience(n):
    return 0.8 ** np.arange(n)


patient = nDCG(discount=patience, gain="linear")


# 3. A family of its own: documents of the highest grade at least `bar`, counted on the first screen.
@dataclass(frozen=True, repr=False)
class Screen(PositionalMeasure):
    """Σ_j [π(j) <= k] [y_j >= bar]: how many good documents the first screen of k shows."""

    name: ClassVar[str] = "Screen"
    bar: float = 3.0

    def discount(self, n):
        return np.where(np.arange(n) < (self.cutoff or n), 1.0, 0.0)

    def gain(self, relevance, offsets):
        return (relevance >= self.bar).astype(np.float64)


screen = Screen() @ 5
for measure in (podium, patient, screen):
    check_measure(measure)  # sorting by grade is best, weights never increase, documents may be shuffled
print("podium, patient and screen pass the checks of rankopt.testing\n")

sample = load_sample("les-miserables")
measures = {"podium": podium, "patient": patient, "screen": screen}
print(f"{'trained on':<12}{'podium':>10}{'patient':>10}{'screen':>10}   proven gap of the objective")
for name, measure in measures.items():
    ranker = LargeMarginRanker(measure, bound="convex").fit(sample.train)
    reached = [evaluate(sample.test, ranker.predict(sample.test), other).mean() for other in measures.values()]
    print(f"{name:<12}{''.join(f'{mean:>10.4f}' for mean in reached)}   {ranker.certificate_.relative_gap:.1e}")
