"""Measures of the pattern of grades: what the document at a position earns depends on its grade and on how many of each
grade stand above it, and on nothing else of the documents.

With g relevant documents above and b others (positions from 0, n₊ relevant documents, n₋ others) a document earns

    AUC               (n₋ - b) / (n₊ n₋)                          if it is relevant, as under all of the next two
    AP@k              (g + 1) / (n₊ (g + b + 1))                  [g + b < k]
    RR@k              1 / (b + 1)                                 [g = 0][b < k]
    Discounted        discount[its position] gain[it]             DCG, nDCG, P, whatever has weights, whole or cut
    ERR@k             p Π_{above} (1 - p_i) / (position + 1)      p = (2^grade - 1) / 2^max_grade

and a measure is the sum over documents, between 0 and 1 but for sums of given weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, finite
from formulations.brevity import CompactReprMixin
from formulations.errors import InvalidProblem
from formulations.forms.earnings import Earnings
from formulations.forms.position_weights import Weights, laid_out

__all__ = ["AP", "AUC", "ERR", "RR", "Discounted", "PatternLoss", "relevant"]


class PatternLoss(Protocol):
    """A measure of the pattern of grades. graded: whether every grade counts for itself, for feature maps too; else
    documents are relevant (grade > 0) or not."""

    @property
    def graded(self) -> bool: ...

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        """In numbers, for queries with these grades (N,), query q having rows offsets[q] : offsets[q + 1]."""
        ...


@dataclass(frozen=True)
class AUC:
    """The share of pairs of a relevant document and another that stand in the right order; 0 where there are none."""

    graded = False

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        good, sizes = _relevant_of(relevance, offsets), np.diff(offsets)
        pairs = good * (sizes - good)
        share = np.divide(1.0, pairs, out=np.zeros(sizes.size), where=pairs > 0)
        # A relevant document at position p stands above n - 1 - p documents, n₊(n₊ - 1)/2 of these pairs being good.
        behind = np.asarray(np.repeat(offsets[1:], sizes) - 1 - np.arange(relevance.size), dtype=np.float64)
        return Earnings.by_rank(_at_ranks(share, good, offsets), behind, share * good * (good - 1.0) / 2.0)


@dataclass(frozen=True)
class AP:
    """Average precision: the mean over the relevant documents of the precision at their position, 0 beyond a cutoff."""

    cutoff: int | None = None

    graded = False

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        good, place = _relevant_of(relevance, offsets), _places(offsets)
        share = np.divide(1.0, good, out=np.zeros(good.size), where=good > 0)
        ranks = _at_ranks(share, good, offsets) * (place + 1.0)
        return Earnings.by_rank(ranks, _cut(1.0 / (place + 1.0), place, self.cutoff), np.zeros(good.size))


@dataclass(frozen=True)
class RR:
    """The reciprocal of the position, from 1, of the first relevant document, 0 beyond a cutoff."""

    cutoff: int | None = None

    graded = False

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        good, place = _relevant_of(relevance, offsets), _places(offsets)
        ranks = np.where(place == 0, _at_ranks(np.ones(good.size), good, offsets), 0.0)
        return Earnings.by_rank(ranks, _cut(1.0 / (place + 1.0), place, self.cutoff), np.zeros(good.size))


@dataclass(frozen=True, eq=False)
class Discounted(CompactReprMixin):
    """Σ_j discount[position of j] gain[j].

    discount: an array (weight 0 beyond its end), or a function from the number of documents to one. gain: an array with
    one entry a document, a function from grades to one, None for the grades themselves (for 0 and 1 if not `graded`).
    normalised: divided by the best that the query's gains can earn, 0 where that is 0. graded: whether feature maps see
    each grade; else relevant documents and others, as for P@k.
    """

    discount: ArrayLike | Weights
    gain: ArrayLike | Callable[[Floats], Floats] | None = None
    normalised: bool = False
    graded: bool = True

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        discount = laid_out(self.discount, offsets)
        grade = relevance if self.graded else relevant(relevance)
        gain = grade if self.gain is None else finite("gain", self.gain(grade) if callable(self.gain) else self.gain, 1)
        if gain.size != relevance.size:
            raise InvalidProblem(f"gain has {gain.size} entries, but there are {relevance.size} documents")
        if self.normalised:
            sizes = np.diff(offsets)
            query = np.repeat(np.arange(sizes.size), sizes)
            best = np.add.reduceat(discount * gain[np.lexsort((-gain, query))], offsets[:-1])
            gain = np.divide(gain, np.repeat(best, sizes), out=np.zeros(gain.size), where=np.repeat(best, sizes) > 0)
        return Earnings.by_document(gain, np.ones(gain.size), discount, offsets.size - 1)


@dataclass(frozen=True)
class ERR:
    """Expected reciprocal rank: a user reads down the list and stops at a document with the chance p of its grade.

    max_grade: the highest grade of the scale.
    """

    cutoff: int | None = None
    max_grade: float = 4.0

    graded = True

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        if relevance.size and not (relevance.min() >= 0.0 and relevance.max() <= self.max_grade):
            raise InvalidProblem(
                f"ERR needs grades from 0 to max_grade = {self.max_grade:g}, and they go from {relevance.min():g} to "
                f"{relevance.max():g}; say ERR(max_grade=...)"
            )
        place, stops = _places(offsets), (np.exp2(relevance) - 1.0) / np.exp2(self.max_grade)
        discount = _cut(1.0 / (place + 1.0), place, self.cutoff)
        return Earnings.by_document(stops, 1.0 - stops, discount, offsets.size - 1)


def relevant(relevance: Floats) -> Floats:
    """1 for grades above 0, else 0."""
    return (relevance > 0).astype(np.float64)


def _relevant_of(relevance: Floats, offsets: Ints) -> Floats:
    """(m,) how many relevant documents each query has."""
    return np.add.reduceat(relevant(relevance), offsets[:-1])


def _places(offsets: Ints) -> Floats:
    """(N,) the position, from 0, that each row speaks of."""
    return np.arange(offsets[-1], dtype=np.float64) - np.repeat(offsets[:-1], np.diff(offsets))


def _at_ranks(share: Floats, good: Floats, offsets: Ints) -> Floats:
    """(N,) the share of its query for each rank of a relevant document, 0 beyond them."""
    sizes = np.diff(offsets)
    return np.where(_places(offsets) < np.repeat(good, sizes), np.repeat(share, sizes), 0.0)


def _cut(discount: Floats, place: Floats, cutoff: int | None) -> Floats:
    if cutoff is None:
        return discount
    if cutoff < 1:
        raise InvalidProblem(f"a cutoff of {cutoff} leaves no position; give 1 or more")
    return np.where(place < cutoff, discount, 0.0)
