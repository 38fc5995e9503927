"""Losses of the relevance vector: the gain of a document depends on its grade and on the counts of each grade above.

With g relevant documents above and b others (positions from 0, n₊ relevant documents, n₋ others) a document gains

    AUC               (n₋ - b) / (n₊ n₋)                          if it is relevant, as for AP and RR
    AP@k              (g + 1) / (n₊ (g + b + 1))                  [g + b < k]
    RR@k              1 / (b + 1)                                 [g = 0][b < k]
    Discounted        discount[position] gain[document]           DCG, nDCG, P and other weighted sums
    ERR@k             p Π_{above} (1 - p_i) / (position + 1)      p = (2^grade - 1) / 2^max_grade

and the measure is the sum over documents. A `GainTable` stores these numbers.

>>> get_relevance_loss("RR@10")
NamedLoss(name='RR', cutoff=10)

A loss of your own is a function of the counts, evaluated once for all cells:

>>> import numpy as np
>>> first_three = TableLoss(lambda good, bad, relevant, others: (good + bad < 3) / np.maximum(relevant, 1))
>>> first_three.gain_table(np.array([0.0, 1.0]), np.array([0, 2])).table.reshape(2, 2, 2)[1]
array([[1., 0.],
       [1., 0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, finite
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.problems.ranking import Weights, laid_out
from formulations.problems.relevance_values import GainTable


class RelevanceLoss(Protocol):
    """A measure as a function of the relevance vector of a ranking.

    graded: whether every grade is a class of its own, also in feature maps; else relevance is binary (grade > 0).
    """

    @property
    def graded(self) -> bool: ...

    def gain_table(self, relevance: Floats, offsets: Ints) -> GainTable:
        """The gains of documents, for grades (N,) of queries with rows offsets[q] : offsets[q + 1]."""
        ...


def auc_gains(relevance: Floats, offsets: Ints) -> GainTable:
    """Share of (relevant, irrelevant) pairs in the right order; 0 where there are none."""
    good, sizes = _relevant_of(relevance, offsets), np.diff(offsets)
    pairs = good * (sizes - good)
    share = np.divide(1.0, pairs, out=np.zeros(sizes.size), where=pairs > 0)
    # A relevant document at position p is above n - 1 - p documents; n₊(n₊ - 1)/2 of these pairs are both relevant.
    behind = np.asarray(np.repeat(offsets[1:], sizes) - 1 - np.arange(relevance.size), dtype=np.float64)
    return GainTable.by_rank(_at_ranks(share, good, offsets), behind, share * good * (good - 1.0) / 2.0)


def ap_gains(relevance: Floats, offsets: Ints, cutoff: int | None = None) -> GainTable:
    """Average precision: mean over the relevant documents of the precision at their position, 0 beyond the cutoff."""
    good, position = _relevant_of(relevance, offsets), _positions(offsets)
    share = np.divide(1.0, good, out=np.zeros(good.size), where=good > 0)
    ranks = _at_ranks(share, good, offsets) * (position + 1.0)
    return GainTable.by_rank(ranks, _discount_at(1.0 / (position + 1.0), position, cutoff), np.zeros(good.size))


def rr_gains(relevance: Floats, offsets: Ints, cutoff: int | None = None) -> GainTable:
    """Reciprocal of the position, from 1, of the first relevant document, 0 beyond the cutoff."""
    good, position = _relevant_of(relevance, offsets), _positions(offsets)
    ranks = np.where(position == 0, _at_ranks(np.ones(good.size), good, offsets), 0.0)
    return GainTable.by_rank(ranks, _discount_at(1.0 / (position + 1.0), position, cutoff), np.zeros(good.size))


def err_gains(relevance: Floats, offsets: Ints, cutoff: int | None = None, max_grade: float = 4.0) -> GainTable:
    """Expected reciprocal rank: a user stops at a document with the probability of its grade (up to max_grade)."""
    if relevance.size and not (relevance.min() >= 0.0 and relevance.max() <= max_grade):
        got = f"{relevance.min():g} to {relevance.max():g}"
        raise InvalidProblemError(f"ERR needs grades from 0 to {max_grade:g}; got {got}. Pass ERR(max_grade=...).")
    position, stops = _positions(offsets), (np.exp2(relevance) - 1.0) / np.exp2(max_grade)
    discount = _discount_at(1.0 / (position + 1.0), position, cutoff)
    return GainTable.by_document(stops, 1.0 - stops, discount, offsets.size - 1)


@dataclass(frozen=True)
class NamedLoss:
    """AP, AUC, ERR or RR by name, with a cutoff."""

    name: str
    cutoff: int | None = None

    @property
    def graded(self) -> bool:
        return self.name == "ERR"

    def gain_table(self, relevance: Floats, offsets: Ints) -> GainTable:
        if self.name == "AUC":
            return auc_gains(relevance, offsets)
        gains = {"AP": ap_gains, "ERR": err_gains, "RR": rr_gains}[self.name]
        return gains(relevance, offsets, self.cutoff)


@dataclass(frozen=True, eq=False)
class Discounted(CompactReprMixin):
    """Σ_j discount[position of j] gain[j].

    discount: an array (weight 0 beyond its end), or a function from the number of documents to one. gain: an array with
    one entry a document, a function from grades to one, None for the grades themselves (for 0 and 1 if not `graded`).
    normalized: divided by the ideal value of the query, 0 if that is 0. graded: whether feature maps distinguish
    each grade; else relevance is binary, as for P@k.
    """

    discount: ArrayLike | Weights
    gain: ArrayLike | Callable[[Floats], Floats] | None = None
    normalized: bool = False
    graded: bool = True

    def gain_table(self, relevance: Floats, offsets: Ints) -> GainTable:
        discount = laid_out(self.discount, offsets)
        grade = relevance if self.graded else relevant(relevance)
        gain = grade if self.gain is None else finite("gain", self.gain(grade) if callable(self.gain) else self.gain, 1)
        if gain.size != relevance.size:
            raise InvalidProblemError(f"gain has {gain.size} entries, but there are {relevance.size} documents")
        if self.normalized:
            sizes = np.diff(offsets)
            query = np.repeat(np.arange(sizes.size), sizes)
            best = np.add.reduceat(discount * gain[np.lexsort((-gain, query))], offsets[:-1])
            gain = np.divide(gain, np.repeat(best, sizes), out=np.zeros(gain.size), where=np.repeat(best, sizes) > 0)
        return GainTable.by_document(gain, np.ones(gain.size), discount, offsets.size - 1)


def relevant(relevance: Floats) -> Floats:
    """1 for grades above 0, else 0."""
    return (relevance > 0).astype(np.float64)


def _relevant_of(relevance: Floats, offsets: Ints) -> Floats:
    """(m,) the number of relevant documents of each query."""
    return np.add.reduceat(relevant(relevance), offsets[:-1])


def _positions(offsets: Ints) -> Floats:
    """(N,) the position of each row within its query, from 0."""
    return np.arange(offsets[-1], dtype=np.float64) - np.repeat(offsets[:-1], np.diff(offsets))


def _at_ranks(share: Floats, good: Floats, offsets: Ints) -> Floats:
    """(N,) the share of its query for each rank of a relevant document, 0 beyond them."""
    sizes = np.diff(offsets)
    return np.where(_positions(offsets) < np.repeat(good, sizes), np.repeat(share, sizes), 0.0)


def _discount_at(discount: Floats, position: Floats, cutoff: int | None) -> Floats:
    if cutoff is None:
        return discount
    if cutoff < 1:
        raise InvalidProblemError(f"cutoff must be at least 1; got {cutoff}.")
    return np.where(position < cutoff, discount, 0.0)


NAMES = ("AP", "AUC", "DCG", "ERR", "P", "RR", "nDCG")


def get_relevance_loss(loss: RelevanceLoss | str) -> RelevanceLoss:
    """The loss of this name; a loss is returned as it is. DCG and nDCG count 2^grade - 1 by 1 / log2(position + 1).

    Raises `InvalidProblemError` for an unknown name or an object without `graded` and `gain_table`.
    """
    if not isinstance(loss, str):
        if not callable(getattr(loss, "gain_table", None)) or not isinstance(getattr(loss, "graded", None), bool):
            names = ", ".join(NAMES)
            raise InvalidProblemError(f"loss must be a name ({names}) or a RelevanceLoss; got a {type(loss).__name__}.")
        return loss
    name, _, tail = loss.partition("@")
    if name not in NAMES or (tail and not (tail.isdecimal() and int(tail) > 0)) or loss.endswith("@"):
        raise InvalidProblemError(f"unknown relevance loss {loss!r}. Use one of {', '.join(NAMES)}, or a name and @k.")
    cutoff = int(tail) if tail else None
    if name == "AUC" and cutoff is not None:
        raise InvalidProblemError(f"AUC has no cutoff; got {loss!r}. Write 'AUC'.")
    if name in ("DCG", "nDCG"):
        return Discounted(partial(_logarithms, cutoff=cutoff), _exponential, normalized=name == "nDCG")
    if name == "P":
        return Discounted(partial(_shares, cutoff=cutoff), graded=False)
    return NamedLoss(name, cutoff)


def _logarithms(n: int, cutoff: int | None) -> Floats:
    """1 / log2(position + 1), 0 beyond the cutoff."""
    return np.asarray(1.0 / np.log2(np.arange(2.0, min(n, cutoff or n) + 2.0)))


def _shares(n: int, cutoff: int | None) -> Floats:
    """1 / k for the first k positions."""
    return np.full(min(n, cutoff or n), 1.0 / (cutoff or n))


def _exponential(grade: Floats) -> Floats:
    return np.asarray(np.exp2(grade) - 1.0)


@dataclass(frozen=True, eq=False)
class TableLoss:
    """cell(good, bad, relevant, others): the gain of a relevant document with `good` relevant and `bad` other documents
    above it, in a query with `relevant` and `others` of them; arrays of counts in, the same shape out."""

    cell: Callable[[Ints, Ints, int, int], Floats]

    graded = False

    def gain_table(self, relevance: Floats, offsets: Ints) -> GainTable:
        tables, known = [], dict[tuple[int, int], Floats]()
        for low, high in pairwise(offsets.tolist()):
            good = int(relevant(relevance[low:high]).sum())
            shape = (good, high - low - good)
            if shape not in known:
                known[shape] = self._table(*shape)
            tables.append(known[shape])
        return GainTable.by_table(tables, relevance.size)

    def _table(self, good: int, bad: int) -> Floats:
        """(chains, others + 1, relevant + 1): others come before the relevant ones, because of their lower grade."""
        b, g = np.meshgrid(np.arange(bad + 1), np.arange(good), indexing="ij")
        cells = np.zeros((bad + 1, good + 1))
        cells[:, :good] = _check_table("cell", self.cell(g, b, good, bad), g.shape)
        if not good:
            return np.zeros((1, bad + 1))
        return cells[:1] if not bad else np.stack([np.zeros(cells.shape), cells])


@dataclass(frozen=True, eq=False)
class StepwiseLoss:
    """step(grade, grades, above): the gain of a document of this grade below `above[i]` documents of grades[i], rising.

    Arguments: grades (G,), above (G, ...); result: (...).
    """

    step: Callable[[float, Floats, Ints], Floats]

    graded = True

    def gain_table(self, relevance: Floats, offsets: Ints) -> GainTable:
        tables = []
        for low, high in pairwise(offsets.tolist()):
            grades, sizes = np.unique(relevance[low:high], return_counts=True)
            above = np.indices(tuple(int(size) + 1 for size in sizes))
            steps = [_check_table("step", self.step(g, grades, above), above.shape[1:]) for g in grades.tolist()]
            for chain, step in enumerate(steps):
                np.moveaxis(step, chain, 0)[-1] = 0.0  # none of this grade is left
            tables.append(np.stack(steps))
        return GainTable.by_table(tables, relevance.size)


def _check_table(name: str, result: object, shape: tuple[int, ...]) -> Floats:
    try:
        return np.array(np.broadcast_to(np.asarray(result, dtype=np.float64), shape))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name}(...) must return numbers of shape {shape}: {error}") from None
