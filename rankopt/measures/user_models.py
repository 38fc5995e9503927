"""Measures from models of a user: expected reciprocal rank, rank-biased precision, expected rank utility.

Expected reciprocal rank: a user reads down the list and stops at a document with probability p(y).

    ERR@k = Σ_{i <= k} (1/i) p_i Π_{l < i} (1 - p_l)          p(y) = (2^y - 1) / 2^max_grade

ERR is not an inner product of discount and gain; it is trained with a map of `rankopt.losses.FEATURE_MAPS`. Option
`max_grade`: the highest grade of the scale (not of the data), by default 4 as in the TREC Web track.

In a tie group with factors q = 1 - p, the probability to pass its first i positions is the mean A_i of Π q over all
subsets of i documents, so position i adds (A_{i-1} - A_i) / position. Adding a document with factor q updates
A_i <- ((m + 1 - i) A_i + i q A_{i-1}) / (m + 1): convex combinations, exact to rounding.

Source: Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, 2009.

Rank-biased precision: a user proceeds to the next document with probability p.

    RBP@k = (1 - p) Σ_j [π(j) <= k] p^(π(j) - 1) y_j          a_i = (1 - p) p^(i - 1);  b(y) in {0, 1}

Options: `p` in (0, 1), the user's persistence; `rel`, the smallest grade that counts as relevant. A list of n documents
reaches at most 1 - p^n; the rest, at most p^n, is the residual of the source.

Source: Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, 2008.

Expected rank utility: the probability of viewing a position halves every α - 1 positions.

    ERU  = Σ_j 2^((1 - π(j)) / (α - 1)) max(y_j - d, 0)          NERU = ERU / its best

Options: `alpha` > 1, the position that half of the users reach; `d`, the neutral vote.
Source: Breese, Heckerman and Kadie 1998; [ORM, section 2.3].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.measure import Measure, PositionalMeasure, best_sum, per_best
from rankopt.measures.tied_ranking import Ranking, position_in_query, running, totals
from rankopt.options import number

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class ExpectedReciprocalRank(Measure):
    """Reciprocal of the position at which a cascading user stops, in expectation."""

    name: ClassVar[str] = "ERR"
    max_value: ClassVar[float] = 1.0
    sweep_kind: ClassVar[str] = "cascade"
    has_gain_table: ClassVar[bool] = True
    graded: ClassVar[bool] = True
    max_grade: float = field(default=4.0, metadata={"option": "max_grade"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, max_grade: float = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        top = number(self.max_grade)
        if not 0 < top <= 1000:
            raise MeasureError(f"ERR cannot have max_grade={self.max_grade!r}; give the highest grade of the scale.")
        object.__setattr__(self, "max_grade", top)

    def stopping(self, relevance: Floats) -> Floats:
        """p(y) (N,), the probability to stop at each document. MeasureError for grades outside the scale."""
        outside = (relevance < 0) | (relevance > self.max_grade)
        if np.any(outside):
            raise MeasureError(
                f"ERR cannot use the grade {relevance[outside][0]:g} because the scale ends at {self.max_grade:g}; "
                f"write ERR(max_grade={relevance.max():g})."
            )
        return np.asarray((np.exp2(relevance) - 1) / np.exp2(self.max_grade))

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """Sorted by grade up to the cutoff."""
        position = position_in_query(offsets) + 1
        return self.stopping(relevance), np.where(position <= (self.cutoff or np.inf), 1 / position, 0.0)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import err_gains

        return err_gains(relevance, offsets, self.cutoff, self.max_grade)

    def values(self, ranking: Ranking) -> Floats:
        going_on = 1 - self.stopping(ranking.relevance)
        passed = running(np.multiply, going_on, ranking.offsets)
        reached = np.where(ranking.position > 1, np.roll(passed, 1), 1.0)[ranking.groups[:-1]]
        stopped = 1 - going_on
        for size in np.unique(ranking.size[ranking.size > 1]):
            groups = np.flatnonzero(ranking.size == size)
            rows = ranking.groups[groups][:, None] + np.arange(size)
            stopped[rows] = -np.diff(subset_means(going_on[rows]), axis=1)
        share = stopped * reached[ranking.group] / ranking.position
        counted = (ranking.position <= (self.cutoff or np.inf)) & ranking.retrieved
        return totals(np.where(counted, share, 0.0), ranking.offsets)


def subset_means(factors: Floats) -> Floats:
    """The mean product of i of the t factors, i = 0..t: factors (G, t) gives (G, t + 1)."""
    count, size = factors.shape
    means = np.zeros((count, size + 1))
    means[:, 0] = 1.0
    for m in range(size):
        i = np.arange(1, m + 2)
        means[:, 1 : m + 2] = ((m + 1 - i) * means[:, 1 : m + 2] + i * factors[:, m, None] * means[:, : m + 1]) / (
            m + 1
        )
    return means


ERR = ExpectedReciprocalRank()


@dataclass(frozen=True, repr=False)
class RankBiasedPrecision(Binary, PositionalMeasure):
    """Expected rate at which a user of persistence p finds relevant documents."""

    name: ClassVar[str] = "RBP"
    p: float = field(default=0.8, metadata={"option": "p", "shown": True})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, p: float = ..., rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        super().__post_init__()
        p = number(self.p)
        if not 0 < p < 1:
            raise MeasureError(f"RBP cannot have p={self.p!r}; give a persistence between 0 and 1, such as 0.8.")
        object.__setattr__(self, "p", p)

    def discount(self, n: int) -> Floats:
        positions = np.arange(n)
        return np.where(positions < (self.cutoff or n), (1 - self.p) * self.p**positions, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)


RBP = RankBiasedPrecision()


@dataclass(frozen=True, repr=False)
class ExpectedUtility(PositionalMeasure):
    """Half-life utility of the votes above d."""

    name: ClassVar[str] = "ERU"
    alpha: float = field(default=5.0, metadata={"option": "alpha", "shown": True})
    d: float = field(default=3.0, metadata={"option": "d", "shown": True})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, alpha: float = ..., d: float = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        alpha, d = number(self.alpha), number(self.d)
        if not (np.isfinite(alpha) and alpha > 1 and np.isfinite(d)):
            raise MeasureError(
                f"{self.name} cannot have alpha={self.alpha!r}, d={self.d!r}; give a half-life alpha > 1, a number d."
            )
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "d", d)

    def discount(self, n: int) -> Floats:
        positions = np.arange(n)
        return np.where(positions < (self.cutoff or n), np.exp2(-positions / (self.alpha - 1)), 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return np.maximum(relevance - self.d, 0.0)


@dataclass(frozen=True, repr=False)
class NormalizedExpectedUtility(ExpectedUtility):
    """Expected rank utility divided by its best; undefined on a query without a vote above d."""

    name: ClassVar[str] = "NERU"
    max_value: ClassVar[float] = 1.0

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return per_best(super().gain(relevance, offsets), self.discounts(offsets), offsets)

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        return np.asarray(best_sum(self.discounts(offsets), super().gain(relevance, offsets), offsets) > 0)


ERU = ExpectedUtility()
NERU = NormalizedExpectedUtility()
