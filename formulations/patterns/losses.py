"""Measures of the pattern of grades: what the document at a position earns depends on its grade and on how many of each
grade stand above it, and on nothing else of the documents.

With g relevant documents above and b others (positions from 0, n₊ relevant documents, n₋ others) a document earns

    AUC               (n₋ - b) / (n₊ n₋)                          if it is relevant, as under all of the next two
    AP@k              (g + 1) / (n₊ (g + b + 1))                  [g + b < k]
    RR@k              1 / (b + 1)                                 [g = 0][b < k]
    Discounted        discount[its position] gain[it]             DCG, nDCG, P, whatever has weights, whole or cut
    ERR@k             p Π_{above} (1 - p_i) / (position + 1)      p = (2^grade - 1) / 2^max_grade

and a measure is the sum over documents, between 0 and 1 but for sums of given weights.

Losses of patterns by name: "AUC", "AP", "RR", "ERR", "nDCG", "DCG", "P", and "@k" behind all but the first.

>>> pattern_loss("RR@10")
RR(cutoff=10)

Losses of patterns of a user's own: a function, asked once for all cells.

>>> import numpy as np
>>> first_three = Cells(lambda good, bads, relevant, others: (good + bads < 3) / np.maximum(relevant, 1))
>>> first_three.earnings(np.array([0.0, 1.0]), np.array([0, 2])).table.reshape(2, 2, 2)[1]
array([[1., 0.],
       [1., 0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, finite
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblem
from formulations.problems.ranking import Weights, laid_out
from formulations.problems.relevance_values import Earnings


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


NAMES = ("AP", "AUC", "DCG", "ERR", "P", "RR", "nDCG")


def pattern_loss(loss: PatternLoss | str) -> PatternLoss:
    """The loss of this name; one that is given is returned. DCG and nDCG count 2^grade - 1 by 1 / log2(position + 1).

    Raises `InvalidProblem` for what names none.
    """
    if not isinstance(loss, str):
        if not callable(getattr(loss, "earnings", None)) or not isinstance(getattr(loss, "graded", None), bool):
            raise InvalidProblem(
                f"a {type(loss).__name__} is no loss of patterns: give a name, or a record of formulations.patterns"
            )
        return loss
    name, _, tail = loss.partition("@")
    if name not in NAMES or (tail and not (tail.isdecimal() and int(tail) > 0)) or loss.endswith("@"):
        known = ", ".join(NAMES)
        raise InvalidProblem(f"no loss of patterns is called {loss!r}; write {known}, or such a name and @k")
    cutoff = int(tail) if tail else None
    if name == "AUC":
        if cutoff is not None:
            raise InvalidProblem(f"{loss!r}: AUC has no cutoff; write 'AUC'")
        return AUC()
    if name in ("DCG", "nDCG"):
        return Discounted(_Logarithms(cutoff), _exponential, normalised=name == "nDCG")
    if name == "P":
        return Discounted(_Share(cutoff), graded=False)
    if name == "AP":
        return AP(cutoff)
    return RR(cutoff) if name == "RR" else ERR(cutoff)


class _Logarithms:
    """n → 1 / log2(position + 1), 0 beyond the cutoff."""

    def __init__(self, cutoff: int | None) -> None:
        self.cutoff = cutoff

    def __call__(self, n: int) -> Floats:
        count = n if self.cutoff is None else min(n, self.cutoff)
        return np.asarray(1.0 / np.log2(np.arange(2.0, count + 2.0)))


class _Share:
    """n → 1 / k for the first k positions."""

    def __init__(self, cutoff: int | None) -> None:
        self.cutoff = cutoff

    def __call__(self, n: int) -> Floats:
        count = n if self.cutoff is None else self.cutoff
        return np.full(min(count, n), 1.0 / count)


def _exponential(grade: Floats) -> Floats:
    return np.asarray(np.exp2(grade) - 1.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """cell(good, bads, relevant, others): what a relevant document earns that has `good` relevant ones and `bads`
    others above it, in a query with so many `relevant` and `others`; arrays of counts in, the same shape out."""

    cell: Callable[[Ints, Ints, int, int], Floats]

    graded = False

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        tables, known = [], dict[tuple[int, int], Floats]()
        for low, high in pairwise(offsets.tolist()):
            good = int(relevant(relevance[low:high]).sum())
            shape = (good, high - low - good)
            if shape not in known:
                known[shape] = self._table(*shape)
            tables.append(known[shape])
        return Earnings.by_table(tables, relevance.size)

    def _table(self, good: int, bads: int) -> Floats:
        """(chains, others + 1, relevant + 1): others stand before the relevant, being of lower grade."""
        b, g = np.meshgrid(np.arange(bads + 1), np.arange(good), indexing="ij")
        cells = np.zeros((bads + 1, good + 1))
        cells[:, :good] = _asked("cell", self.cell(g, b, good, bads), g.shape)
        if not good:
            return np.zeros((1, bads + 1))
        return cells[:1] if not bads else np.stack([np.zeros(cells.shape), cells])


@dataclass(frozen=True, eq=False)
class StepwiseLoss:
    """step(grade, grades, above): what a document of this grade earns below `above[i]` documents of grades[i], rising;
    grades (G,), above (G, ...) in, (...) out."""

    step: Callable[[float, Floats, Ints], Floats]

    graded = True

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        tables = []
        for low, high in pairwise(offsets.tolist()):
            grades, sizes = np.unique(relevance[low:high], return_counts=True)
            above = np.indices(tuple(int(size) + 1 for size in sizes))
            steps = [_asked("step", self.step(grade, grades, above), above.shape[1:]) for grade in grades.tolist()]
            for chain, step in enumerate(steps):
                np.moveaxis(step, chain, 0)[-1] = 0.0  # none of this grade is left
            tables.append(np.stack(steps))
        return Earnings.by_table(tables, relevance.size)


def _asked(name: str, said: object, shape: tuple[int, ...]) -> Floats:
    try:
        return np.array(np.broadcast_to(np.asarray(said, dtype=np.float64), shape))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblem(f"{name}(...) must return numbers of shape {shape}: {error}") from None
