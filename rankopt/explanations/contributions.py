"""Explain why one document is ranked above another: decomposition of a linear score by features.

Importance of a feature: its weight times its deviation within queries. Variation between queries affects no order.

    deviation_j = √( Σ_q Σ_{i in q} (x_ij - mean of x_j over q)² / N )

coef_j × deviation_j is the effect of a feature on scores, in one unit for all features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from rankopt.data.validation import INDICATOR
from rankopt.errors import DataError
from rankopt.scorers.linear import parts_of

SHOWN = 10  # features that a printed explanation lists; the rest is summed in one line


@dataclass(frozen=True, eq=False)
class Explanation(CompactReprMixin):
    """`score(x) - score(y) = Σ_j coef_j (x_j - y_j)`, its terms sorted by magnitude.

    Of trees the terms are differences of SHAP values, and `coef` is NaN.

    Fields (d features, most important first; terms of equal magnitude in the order of the features):

    * `features`: their names, `x0`, `x1`, ... where the data named none
    * `contributions` (d,): the terms, in units of the score; positive speaks for x
    * `coef`, `x`, `y` (d,): the factors
    * `column` (d,): the column of each feature in the data
    * `documents`: the ids of x and y, empty if unknown
    """

    features: tuple[str, ...]
    contributions: Floats
    coef: Floats
    x: Floats
    y: Floats
    column: Ints
    documents: tuple[str, str] = ("", "")

    @classmethod
    def from_coefficients(cls, features: tuple[str, ...], coef: Floats, x: Floats, y: Floats) -> Explanation:
        """Take the difference of the scores of `x` and `y` (both (d,)) apart. DataError for other widths."""
        widths = [np.shape(one) for one in (coef, x, y)]
        if widths != [(len(features),)] * 3:
            raise DataError(
                f"scores cannot be explained because {len(features)} features are named and the weights, x and y have "
                f"the shapes {', '.join(map(str, widths))}; give the features that the weights were learned on."
            )
        return cls.from_terms(features, coef * (x - y), coef, x, y)

    @classmethod
    def from_terms(cls, features: tuple[str, ...], terms: Floats, coef: Floats, x: Floats, y: Floats) -> Explanation:
        """Sort the terms (d,)."""
        order = np.argsort(-np.abs(terms), kind="stable")
        found = cls(tuple(features[j] for j in order), terms[order], coef[order], x[order], y[order], order)
        for column in (found.contributions, found.coef, found.x, found.y, found.column):
            column.setflags(write=False)
        return found

    @property
    def total(self) -> float:
        """The score of x minus the score of y: positive if x is ranked above y."""
        return float(self.contributions.sum())

    def __str__(self) -> str:
        """A table of the largest contributions, the sum of all others, and the total."""
        shown = min(SHOWN, len(self.features))
        width = max(8, *(len(name) for name in self.features[:shown])) if shown else 8
        known = {"coef": self.coef, "x": self.x, "y": self.y}
        if np.isnan(self.coef).all():
            del known["coef"]
        head, space = " ".join(f"{name:>10}" for name in known), " " * (11 * len(known) - 1)
        named = [f"{name}: {one}" for name, one in zip("xy", self.documents, strict=True) if one]
        lines = [*([", ".join(named)] if named else []), f"{'feature':<{width}} {head} {'adds':>10}"]
        for j in range(shown):
            numbers = [column[j] for column in known.values()]
            lines.append(
                f"{self.features[j]:<{width}} "
                + " ".join(f"{number:>10.4g}" for number in numbers)
                + f" {self.contributions[j]:>+10.4g}"
            )
        rest = len(self.features) - shown
        if rest:
            lines.append(f"{f'{rest} others':<{width}} {space} {self.contributions[shown:].sum():>+10.4g}")
        lines.append(f"{'total':<{width}} {space} {self.total:>+10.4g}")
        return "\n".join(lines)


ROUNDING = 1e-14  # squares of deviations below this part of the mean square are what rounding leaves of a constant


def deviations_within(features: Any, offsets: Ints) -> Floats:
    """(d,) the deviation of each feature about its mean in the query; 0 for one that is constant in every query.
    features: (N, d) dense or CSR, documents of query q in rows offsets[q] : offsets[q + 1]; read once, in parts."""
    sizes = np.diff(offsets)
    if hasattr(features, "tocsr"):
        table = csr_array(features).astype(np.float64)
        cut = csr_array((np.ones(offsets[-1]), np.arange(offsets[-1]), offsets), shape=(sizes.size, offsets[-1]))
        means = csr_array(cut @ table)
        means.data = means.data**2 / np.repeat(sizes, np.diff(means.indptr))
        table.data = table.data**2
        squares = np.asarray(table.sum(axis=0)).ravel()
        left = squares - np.asarray(means.sum(axis=0)).ravel()
    else:
        squares, left = np.zeros(features.shape[1]), np.zeros(features.shape[1])
        for low, high in pairwise(parts_of(offsets).tolist()):
            part = np.asarray(features[low:high], dtype=np.float64)
            own = np.flatnonzero((offsets[:-1] >= low) & (offsets[:-1] < high))
            means = np.add.reduceat(part, offsets[own] - low, axis=0) / sizes[own, None]
            squares += (part**2).sum(axis=0)
            left += ((part - np.repeat(means, sizes[own], axis=0)) ** 2).sum(axis=0)
    left[left <= ROUNDING * squares] = 0.0
    return np.asarray(np.sqrt(left / offsets[-1]))


@dataclass(frozen=True, eq=False)
class Weights(CompactReprMixin):
    """Features (d,) by falling magnitude of `effect` = coef × deviation, the deviation being that within queries: in
    units of the score, so that features of other units can be compared. `share`: its part of the sum of magnitudes.
    `column`: the column of each in the data."""

    features: tuple[str, ...]
    coef: Floats
    deviation: Floats
    column: Ints

    @classmethod
    def from_coefficients(cls, names: Sequence[str], coef: Floats, deviation: Floats) -> Weights:
        """The weights `coef` (d,) of features that vary by `deviation` (d,)."""
        order = np.argsort(-np.abs(coef * deviation), kind="stable")
        return cls(tuple(names[j] for j in order.tolist()), coef[order], deviation[order], order)

    @classmethod
    def from_queries(cls, names: Sequence[str], coef: Floats, queries: Any) -> Weights:
        """The same, deviations taken of the documents of `queries`."""
        own = queries.grouped()
        return cls.from_coefficients(names, coef, deviations_within(own.features, own.offsets))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def effect(self) -> Floats:
        return self.coef * self.deviation

    @property
    def share(self) -> Floats:
        size = np.abs(self.effect)
        return size / total if (total := float(size.sum())) > 0.0 else size

    @property
    def finding(self) -> str:
        """One sentence: how many features carry most of the score."""
        few = min(int(np.searchsorted(np.cumsum(self.share), 0.8)) + 1, len(self))
        if not self.share.any():
            return "No feature moves the scores: all weights are 0, or no feature varies within a query."
        unused = int((self.effect == 0.0).sum())
        most = f"{self.features[0]} moves scores most, by {self.effect[0]:+.3g} a deviation"
        marks = sum(name.startswith(INDICATOR) for name in self.features)
        columns = f"{len(self)} features" + (f" (indicators of missing values: {marks})" if marks else "")
        rest = f"; {unused} have no effect" if unused else ""
        return f"{most}; {few} of {columns} have four fifths of the effect on scores{rest}."
