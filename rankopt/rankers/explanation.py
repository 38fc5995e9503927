"""Why one document stands above another: a linear score taken apart, feature by feature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

Floats = NDArray[np.float64]

SHOWN = 10
"""Features that a printed explanation lists; the rest is summed in one line."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """`score(x) - score(y) = Σ_j coef_j (x_j - y_j)`, its terms sorted by magnitude.

    Fields (d features, most important first; terms of equal magnitude in the order of the features):

    * `features`: their names, `x0`, `x1`, ... where the data named none
    * `contributions` (d,): coef_j (x_j - y_j), in units of the score; positive speaks for x
    * `coef`, `x`, `y` (d,): the factors
    """

    features: tuple[str, ...]
    contributions: Floats
    coef: Floats
    x: Floats
    y: Floats

    @classmethod
    def of(cls, features: tuple[str, ...], coef: Floats, x: Floats, y: Floats) -> "Explanation":
        """Take the difference of the scores of `x` and `y` (both (d,)) apart. DataError for other widths."""
        widths = [np.shape(one) for one in (coef, x, y)]
        if widths != [(len(features),)] * 3:
            raise DataError(
                f"scores cannot be explained because {len(features)} features are named and the weights, x and y have "
                f"the shapes {', '.join(map(str, widths))}; give the features that the weights were learnt on."
            )
        terms = coef * (x - y)
        order = np.argsort(-np.abs(terms), kind="stable")
        columns = [column[order] for column in (terms, coef, x, y)]
        for column in columns:
            column.setflags(write=False)
        return cls(tuple(features[j] for j in order), *columns)

    @property
    def total(self) -> float:
        """The score of x minus the score of y: above 0 where x stands above y."""
        return float(self.contributions.sum())

    def __str__(self) -> str:
        """A table of the largest contributions, the sum of all others, and the total."""
        shown = min(SHOWN, len(self.features))
        width = max(8, *(len(name) for name in self.features[:shown])) if shown else 8
        lines = [f"{'feature':<{width}} {'coef':>10} {'x':>10} {'y':>10} {'adds':>10}"]
        for j in range(shown):
            numbers = (self.coef[j], self.x[j], self.y[j])
            lines.append(
                f"{self.features[j]:<{width}} "
                + " ".join(f"{number:>10.4g}" for number in numbers)
                + f" {self.contributions[j]:>+10.4g}"
            )
        rest = len(self.features) - shown
        if rest:
            lines.append(f"{f'{rest} others':<{width}} {'':>32} {self.contributions[shown:].sum():>+10.4g}")
        lines.append(f"{'total':<{width}} {'':>32} {self.total:>+10.4g}")
        return "\n".join(lines)
