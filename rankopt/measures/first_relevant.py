"""Measures of the position of the first relevant document.

With one relevant document such a measure is an inner product a[π]ᵀy and is trained as one. With several it is not: the
second relevant document adds nothing.

Reciprocal rank of the first relevant document.

    RR@k = 1 / min {π(j) : y_j = 1}, or 0 if that is beyond k

With one relevant document this is Σ_j a[π(j)] y_j with a_i = 1/i. With several it is not an inner product; it is
trained with a map of `rankopt.losses.FEATURE_MAPS`. In a tie group of t documents, r of them relevant, the probability
that the first relevant one is at position i (from 1) is r/(t - i + 1) Π_{l < i} (t - l + 1 - r)/(t - l + 1).

Source: [ORM, section 2.3].

Success at k: is a relevant document among the first k positions?

    Success@k = [min {π(j) : y_j = 1} <= k]

With one relevant document this is Σ_j [π(j) <= k] y_j, a_i = 1 for i <= k, and is trained as such. With several it is
not an inner product; it can be evaluated, and maximized by coordinate ascent. In a tie group of t
documents, r of them relevant, none is among its first i positions with probability C(t - r, i) / C(t, i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.tied_ranking import Ranking, position_in_query, query_of_row, running, totals

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class FirstRelevant(Binary, PositionalMeasure):
    """A function of min {π(j) : y_j = 1}, at best 1; undefined without relevant documents. with_gains: for the error
    message, measures that have gains."""

    averages_exchanges: ClassVar[bool] = False
    with_gains: ClassVar[str]

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        counts = totals(relevant, offsets)
        if np.any(counts > 1):
            query = int(np.argmax(counts > 1))
            raise MeasureError(
                f"{self} has no gains because query {query} (from 0) has {counts[query]:.0f} relevant ones "
                f"and it is an inner product with at most one; take {self.with_gains} where gains are needed."
            )
        return relevant

    def is_inner_product(self, relevance: Floats, offsets: Ints) -> bool:
        return bool(totals(self.relevant(relevance), offsets).max(initial=0) <= 1)

    def best(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.any_relevant(relevance, offsets).astype(np.float64)

    defined = Binary.any_relevant


@dataclass(frozen=True, repr=False)
class ReciprocalRank(FirstRelevant):
    """1 / position of the first relevant document; undefined without relevant documents."""

    name: ClassVar[str] = "RR"
    with_gains: ClassVar[str] = "nDCG@k or P@k"
    sweep_kind: ClassVar[str] = "first relevant"

    def discount(self, n: int) -> Floats:
        ranks = np.arange(1, n + 1)
        return np.where(ranks <= (self.cutoff or n), 1 / ranks, 0.0)

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """A relevant document comes first."""
        return self.relevant(relevance), (position_in_query(offsets) == 0).astype(np.float64)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import rr_gains

        return rr_gains(classes, offsets, self.cutoff)

    def values(self, ranking: Ranking) -> Floats:
        result = np.zeros(len(ranking.offsets) - 1)
        hits = totals(self.relevant(ranking.relevance), ranking.groups)
        decisive = np.flatnonzero(hits)
        queries, first = np.unique(query_of_row(ranking.offsets)[ranking.groups[decisive]], return_index=True)
        decisive = decisive[first]  # the first tie group of its query with a relevant document

        bounds = np.concatenate([[0], np.cumsum(ranking.size[decisive])])
        index, inside = position_in_query(bounds), query_of_row(bounds)
        left = ranking.size[decisive][inside] - index
        chance = hits[decisive][inside] / left
        missed = np.where(index > 0, np.roll(np.maximum(1 - chance, 0.0), 1), 1.0)
        position = ranking.position[ranking.groups[decisive]][inside] + index
        counted = position <= (self.cutoff or np.inf)
        if ranking.pool is not None:
            counted &= ranking.pool.retrieved[ranking.groups[decisive]][inside]
        reciprocal = np.where(counted, 1 / position, 0.0)
        # beyond the last possible position of the first relevant document, `missed` is 0 and stays so
        result[queries] = totals(running(np.multiply, missed, bounds) * np.minimum(chance, 1.0) * reciprocal, bounds)
        return result


RR = ReciprocalRank()


@dataclass(frozen=True, repr=False)
class SuccessAtCutoff(FirstRelevant):
    """1 if a relevant document is among the first k, else 0; undefined without relevant documents."""

    name: ClassVar[str] = "Success"
    with_gains: ClassVar[str] = "R@k or P@k"
    sweep_kind: ClassVar[str] = "crossings"

    def discount(self, n: int) -> Floats:
        return np.where(np.arange(n) < self._first, 1.0, 0.0)

    @property
    def _first(self) -> int:
        if self.cutoff is None:
            raise MeasureError(
                "Success needs a cutoff: without one every order has the same value; write Success@k, as in Success@5."
            )
        return self.cutoff

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """As many relevant documents as there are, first: of several, orders with fewer of them there are best too."""
        return self.relevant(relevance), self.discounts(offsets)

    def values(self, ranking: Ranking) -> Floats:
        """1 minus the probability that no relevant document is among the first k positions."""
        hits, size = totals(self.relevant(ranking.relevance), ranking.groups), ranking.size
        rows = np.minimum(ranking.groups[:-1], max(len(ranking.relevance) - 1, 0))
        begin = ranking.position[rows] if len(rows) else np.zeros(0, np.int64)
        inside = np.clip(self._first - begin + 1, 0, size)  # positions of the group within the cutoff
        if ranking.pool is not None and len(rows):
            inside = np.where(ranking.pool.retrieved[rows], inside, 0)
        missed = np.ones(len(size))
        missed[(hits > 0) & (inside > 0)] = 0.0
        for group in np.flatnonzero((hits > 0) & (inside > 0) & (inside + hits <= size)):
            indices = np.arange(inside[group])
            missed[group] = np.prod((size[group] - hits[group] - indices) / (size[group] - indices))
        all_missed = np.ones(len(ranking.offsets) - 1)
        np.multiply.at(all_missed, query_of_row(ranking.offsets)[rows], missed)
        return np.asarray(1.0 - all_missed)


Success = SuccessAtCutoff()
