"""Measures of binary relevance, y_j in {0, 1}.

Option `rel`: the smallest grade that counts as relevant; by default every grade above 0 does.

Precision at k: the share of relevant documents among the first k positions.

    P@k = (1/k) Σ_j [π(j) <= k] y_j          a_i = 1/k for i <= k, else 0;  b(y) in {0, 1}

The divisor is k also for queries with fewer than k documents. Source: [ORM, section 2.3].

Recall at k: the share of the relevant documents that are among the first k positions.

    R@k = (1/n₊) Σ_j [π(j) <= k] y_j          a_i = 1 for i <= k, else 0;  b(y) = y/n₊, y in {0, 1}

n₊ counts all relevant documents of the query, including those that a run did not retrieve. (Where "recall at k" means
whether any relevant document is among the first k, use `Success`.)

R-precision: the share of relevant documents among as many first positions as there are relevant documents.

    Rprec = (1/n₊) Σ_j [π(j) <= n₊] y_j

Its cutoff depends on the grades of the query, so it is for evaluation only.

Source: Buckley and Voorhees, Retrieval system evaluation, 2005.

Winner takes all: is the first document relevant?

    WTA = y of the document at position 1          a_1 = 1, else 0;  b(y) in {0, 1}

Source: [ORM, section 2.3].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from rankopt.errors import MeasureError
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.tied_ranking import Ranking, query_of_row, totals
from rankopt.options import number

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure of binary relevance."""

    max_value: ClassVar[float] = 1.0

    rel: float | None = field(default=None, metadata={"option": "rel"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        if self.rel is None:
            return
        least = number(self.rel)
        if not np.isfinite(least):
            raise MeasureError(f"{self.name} cannot have rel={self.rel!r}; give the least grade that is relevant.")
        object.__setattr__(self, "rel", least)

    def relevant(self, relevance: Floats) -> Floats:
        """1 for relevant documents, 0 for others (N,)."""
        marked = relevance > 0 if self.rel is None else relevance >= self.rel
        return marked.astype(np.float64)

    def any_relevant(self, relevance: Floats, offsets: Ints) -> Bools:
        """Which queries (m,) have a relevant document."""
        return np.asarray(totals(self.relevant(relevance), offsets) > 0)


@dataclass(frozen=True, repr=False)
class Precision(Binary, PositionalMeasure):
    """Relevant documents among the first k, over k. Raises MeasureError without a cutoff."""

    name: ClassVar[str] = "P"
    zero_if_short: ClassVar[tuple[str, ...]] = ("zero",)

    def discount(self, n: int) -> Floats:
        if self.cutoff is None:
            raise MeasureError("P needs a cutoff: without one every order has the same value; write P@k, such as P@10.")
        return np.where(np.arange(n) < self.cutoff, 1 / self.cutoff, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)


P = Precision()


@dataclass(frozen=True, repr=False)
class Recall(Binary, PositionalMeasure):
    """Relevant documents among the first k, over all relevant documents; undefined without relevant documents. Raises
    MeasureError without a cutoff."""

    name: ClassVar[str] = "R"

    def discount(self, n: int) -> Floats:
        if self.cutoff is None:
            raise MeasureError("R needs a cutoff: without one all orders have one value; write R@k, such as R@100.")
        return np.where(np.arange(n) < self.cutoff, 1.0, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        return np.asarray(relevant / np.maximum(totals(relevant, offsets), 1)[query_of_row(offsets)])

    defined = Binary.any_relevant


R = Recall()


@dataclass(frozen=True, repr=False)
class RPrecision(Binary):
    """Precision at the number of relevant documents, equal to recall there; undefined without relevant documents."""

    name: ClassVar[str] = "Rprec"
    takes_cutoff: ClassVar[bool] = False

    defined = Binary.any_relevant

    def values(self, ranking: Ranking) -> Floats:
        relevant = self.relevant(ranking.relevance)
        count = totals(relevant, ranking.offsets)
        first = (ranking.position <= count[query_of_row(ranking.offsets)]).astype(np.float64)
        found = totals(ranking.averaged(first) * relevant * ranking.retrieved, ranking.offsets)
        return np.asarray(found / np.maximum(count, 1))


Rprec = RPrecision()


@dataclass(frozen=True, repr=False)
class WinnerTakesAll(Binary, PositionalMeasure):
    """1 where the first document is relevant, else 0."""

    name: ClassVar[str] = "WTA"
    takes_cutoff: ClassVar[bool] = False

    def discount(self, n: int) -> Floats:
        return np.where(np.arange(n) == 0, 1.0, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import rr_gains

        return rr_gains(classes, offsets, 1)


WTA = WinnerTakesAll()
