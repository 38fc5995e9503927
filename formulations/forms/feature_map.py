"""Feature maps of rankings: φ(y)·w = r(y)ᵀs for scores s = X w, told by the slope r(y).

    positional       r_j = decay[position of j]                                                    φ_dorm of [paper 4]
    pairwise         r_j = κ (higher grades below j - lower grades above j)                        φ_po
    first-relevant   r_j = 1 on each document above the first relevant one, minus their number on that one  φ_mrr

times a strength. The order by grade has slope 0 under the last two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.arrays import LARGEST, Floats, Ints, finite
from formulations.brevity import CompactReprMixin
from formulations.errors import InvalidProblem

__all__ = ["FIRST", "PAIRWISE", "POSITIONAL", "FeatureMap", "strength_of", "unequal_pairs"]

POSITIONAL, PAIRWISE, FIRST = "positional", "pairwise", "first-relevant"


@dataclass(frozen=True, eq=False)
class FeatureMap(CompactReprMixin):
    """kind: "positional", "pairwise" or "first-relevant". weight: of the positional one (N,), the decay of position
    r - offsets[q] at row r; of the others (m,), >= 0: κ, or the strength, of each query."""

    kind: str
    weight: Floats

    def __post_init__(self) -> None:
        if self.kind not in (POSITIONAL, PAIRWISE, FIRST):
            raise InvalidProblem(
                f"no feature map is called {self.kind!r}; write {POSITIONAL!r}, {PAIRWISE!r}, {FIRST!r}"
            )
        object.__setattr__(self, "weight", finite("weight", self.weight, 1))
        if self.kind != POSITIONAL and (self.weight < 0).any():
            raise InvalidProblem("the strength of a feature map must not be negative: it would reward wrong pairs")

    def only(self, first: int, last: int, low: int, high: int) -> FeatureMap:
        """Of the queries first <= q < last, which have the rows low <= r < high."""
        part = slice(low, high) if self.kind == POSITIONAL else slice(first, last)
        return FeatureMap(self.kind, self.weight[part])


def strength_of(strength: float) -> float:
    """The strength that is given for all queries; raises `InvalidProblem` for what is no number, or below 0."""
    number = isinstance(strength, int | float | np.integer | np.floating) and not isinstance(strength, bool)
    if not number or not 0.0 <= strength <= LARGEST:
        raise InvalidProblem(
            f"strength is {strength!r}, but the strength of a feature map must be one number from 0 to {LARGEST:g}, "
            "the same for all queries; below 0 it would reward wrong pairs"
        )
    return float(strength)


def unequal_pairs(grade: Floats, offsets: Ints) -> Floats:
    """(m,) the number of pairs of documents of unequal grade: n₊ n₋ where there are two grades."""
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(sizes.size), sizes)
    rows = np.lexsort((grade, query))
    new = np.ones(grade.size, dtype=bool)
    new[1:] = (np.diff(grade[rows]) != 0) | (np.diff(query[rows]) != 0)
    begins = np.flatnonzero(new)
    runs = np.diff(np.append(begins, grade.size)).astype(np.float64)
    equal = np.bincount(query[rows[begins]], runs * runs, sizes.size)
    return np.asarray((sizes.astype(np.float64) ** 2 - equal) / 2.0)
