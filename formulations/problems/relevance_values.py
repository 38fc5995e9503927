"""Feature maps of rankings: φ(y)·w = r(y)ᵀs for scores s = X w, defined by the slope r(y).

    positional       r_j = c[position of j]                                                        φ_dorm of [paper 4]
    pairwise         r_j = κ (higher grades below j - lower grades above j)                        φ_po
    first-relevant   r_j = 1 on each document above the first relevant one, minus their number on that one  φ_mrr

times a strength. The order by grade has slope 0 under the last two.

A gain table stores a loss of the relevance vector. The document at position p (from 0) of its query gains

    kind "rank"       share[g] discount[p]       if relevant, with g relevant documents above it; else 0
    kind "document"   share[j] Π passing[i] discount[p]       the product over the documents i above it
    kind "table"      table[its chain, counts of each chain above it]

and gain(y) is the sum over documents less the constant of the query. AUC, AP, RR and binary sums of discounts are of
the first kind, graded ones and ERR of the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import LARGEST, Floats, Ints, Shorts, check_type, finite, integers, numbers
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.problems.problem import EPSILON
from formulations.sorting import alike

FEATURE_MAPS = POSITIONAL, PAIRWISE, FIRST = "positional", "pairwise", "first-relevant"


@dataclass(frozen=True, eq=False)
class FeatureMap(CompactReprMixin):
    """kind: "positional", "pairwise" or "first-relevant". weight: of the positional one (N,), the weight of position
    r - offsets[q] at row r; of the others (m,), >= 0: κ, or the strength, of each query."""

    kind: str
    weight: Floats

    def __post_init__(self) -> None:
        if self.kind not in FEATURE_MAPS:
            raise InvalidProblemError(f"feature map must be one of {FEATURE_MAPS}; got {self.kind!r}.")
        object.__setattr__(self, "weight", finite("weight", self.weight, 1))
        if self.kind != POSITIONAL and (self.weight < 0).any():
            raise InvalidProblemError("the scale of a feature map must not be negative: it would reward wrong pairs")

    def select_queries(self, first: int, last: int, low: int, high: int) -> FeatureMap:
        """The feature map of the queries first <= q < last with rows low <= r < high."""
        part = slice(low, high) if self.kind == POSITIONAL else slice(first, last)
        return FeatureMap(self.kind, self.weight[part])


def strength_of(strength: float) -> float:
    """The scale of a feature map as a float; raises `InvalidProblemError` for anything but a number >= 0."""
    number = isinstance(strength, int | float | np.integer | np.floating) and not isinstance(strength, bool)
    if not number or not 0.0 <= strength <= LARGEST:
        raise InvalidProblemError(f"scale must be a number from 0 to {LARGEST:g}, not one per query; got {strength!r}.")
    return float(strength)


RANK, DOCUMENT, TABLE = "rank", "document", "table"


@dataclass(frozen=True, eq=False)
class GainTable(CompactReprMixin):
    """discount, share, passing: (N,), row r of query q belongs to position r - offsets[q], to the relevant document
    of that rank ("rank") or to document r ("document"). constant: (m,). table: the tables of all queries, that of
    query q being table[starts[q] : starts[q + 1]], of shape (chains, N_0 + 1, N_1 + 1, ...), chains by rising grade
    with N_h documents each; empty except for kind "table"."""

    kind: str
    discount: Floats
    share: Floats
    passing: Floats
    constant: Floats
    table: Floats
    starts: Ints

    def __post_init__(self) -> None:
        check_type("kind", self.kind, str)
        if self.kind not in (RANK, DOCUMENT, TABLE):
            raise InvalidProblemError(f"gain table must be {RANK!r}, {DOCUMENT!r} or {TABLE!r}; got {self.kind!r}.")
        for name in ("discount", "share", "passing", "constant", "table"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        object.__setattr__(self, "starts", integers("starts", self.starts))
        if not self.discount.size == self.share.size == self.passing.size:
            raise InvalidProblemError("discount, share and passing need one entry per row")
        if self.starts.size != self.constant.size + 1 or self.starts[-1] != self.table.size:
            raise InvalidProblemError(f"starts must split the {self.table.size} entries of table among the queries")
        if (np.abs(self.passing) > 1.0).any():
            raise InvalidProblemError("passing must be at most 1")

    @classmethod
    def by_rank(cls, share: Floats, discount: Floats, constant: Floats) -> GainTable:
        return cls(RANK, discount, share, np.ones(share.size), constant, *_no_table(constant.size))

    @classmethod
    def by_document(cls, share: Floats, passing: Floats, discount: Floats, queries: int) -> GainTable:
        return cls(DOCUMENT, discount, share, passing, np.zeros(queries), *_no_table(queries))

    @classmethod
    def by_table(cls, tables: list[Floats], rows: int) -> GainTable:
        """tables: one per query, each (chains, N_0 + 1, ...)."""
        tables = [numbers("tables", table) for table in tables]
        starts = np.cumsum([0] + [table.size for table in tables])
        flat = np.concatenate([table.ravel() for table in tables])
        nothing = np.zeros(rows)
        return cls(TABLE, nothing, nothing, np.ones(rows), np.zeros(len(tables)), flat, starts)

    def select_queries(self, first: int, last: int, low: int, high: int) -> GainTable:
        """The gains of the queries first <= q < last with rows low <= r < high."""
        rows, begin, end = slice(low, high), int(self.starts[first]), int(self.starts[last])
        return GainTable(
            self.kind, self.discount[rows], self.share[rows], self.passing[rows], self.constant[first:last],
            self.table[begin:end], self.starts[first : last + 1] - begin,
        )  # fmt: skip


def _no_table(queries: int) -> tuple[Floats, Ints]:
    return np.zeros(0), np.zeros(queries + 1, dtype=np.int64)


TINY = 2.0**-900  # more than what a few thousand products drop where they fall below what doubles hold


@dataclass(frozen=True, eq=False)
class OrderValues:
    """slope (N,): r(y). earned (m,): gain(y). value (m,): r(y)ᵀs - gain(y) in doubles. off (m,) bounds its error."""

    slope: Floats
    earned: Floats
    value: Floats
    off: Floats

    @property
    def least(self) -> Floats:
        """(m,) value, rounded down."""
        return np.asarray(np.where(self.off > 0.0, np.nextafter(self.value - self.off, -np.inf), self.value))


@dataclass(frozen=True, eq=False)
class OrderedBatch:
    """Orders of the queries of a batch: order (N,) holds the document, counted within its query, at each position.

    level (N,): the rank of each document's grade in its query, by `alike`. number: converts doubles, for rationals.
    """

    grade: Floats
    level: Shorts | Ints
    map: FeatureMap
    earnings: GainTable
    offsets: Ints
    order: Ints
    number: Callable[[Any], NDArray[Any]] = np.asarray

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)

    @cached_property
    def starts(self) -> Ints:
        return self.offsets[:-1]

    @cached_property
    def query(self) -> Ints:
        """(N,) the query of each row."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def rows(self) -> Ints:
        """(N,) the row of the document at each position."""
        return np.asarray(self.starts[self.query] + self.order)

    @cached_property
    def position(self) -> Ints:
        """(N,) the position, from 0, of each row."""
        return np.asarray(np.arange(self.order.size) - self.starts[self.query])

    def judged(self, scores: Floats) -> OrderValues:
        """The values of the orders at these scores."""
        slope = np.empty(self.rows.size)
        slope[self.rows] = self.slopes()
        gains, constant = self.gains(), self.earnings.constant
        assigned = slope * scores
        earned = self._sums(gains) - constant
        value = self._sums(assigned) - earned + 0.0
        size = self._sums(np.abs(assigned)) + self._sums(np.abs(gains)) + np.abs(constant)
        off = np.where(size > 0.0, EPSILON * (16.0 + 4.0 * self.sizes) * size + TINY, 0.0)
        return OrderValues(slope, earned, value, off)

    def _sums(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.starts))

    def slopes(self) -> NDArray[Any]:
        """r of the document at each position."""
        weight = self.number(self.map.weight)
        if self.map.kind == POSITIONAL:
            return weight
        grade, starts = self.grade[self.rows], self.starts
        if self.map.kind == PAIRWISE:
            return np.asarray(weight[self.query] * self.number(self._pairs()))
        good = grade > 0
        first = np.minimum.reduceat(np.where(good, self.position, self.position.size), starts)
        slope = np.where(self.position < first[self.query], weight[self.query], 0)
        at = np.flatnonzero(good & (self.position == first[self.query]))
        slope[at] = -weight[self.query[at]] * self.number(self.position)[at]
        return slope

    def _pairs(self) -> Floats:
        """Documents of higher grade below each position, less documents of lower grade above it."""
        level = self.level[self.rows]
        starts = self.starts
        count = np.zeros(self.rows.size)
        for cut in range(int(level.max(initial=0))):
            higher = level > cut
            above: Ints = np.cumsum(higher) - higher
            above -= np.repeat(above[starts], self.sizes)
            total = np.add.reduceat(higher.astype(np.int64), starts)[self.query]
            count += np.where(level == cut, total - above, 0.0)
            lower = ~higher
            passed: Ints = np.cumsum(lower) - lower
            passed -= np.repeat(passed[starts], self.sizes)
            count -= np.where(level == cut + 1, passed, 0.0)
        return count

    def gains(self) -> NDArray[Any]:
        """The gain of the document at each position."""
        earnings = self.earnings
        if earnings.kind == TABLE:
            return np.concatenate([self.number(self._table_of(q)) for q in range(self.sizes.size)])
        share, discount = self.number(earnings.share), self.number(earnings.discount)
        if earnings.kind == RANK:
            good = self.grade[self.rows] > 0
            rank: Ints = np.cumsum(good) - good
            rank -= np.repeat(rank[self.starts], self.sizes)
            earned = share[self.starts[self.query] + rank]
            return np.asarray(np.where(good, earned, 0) * discount)
        worth = np.asarray(share[self.rows] * discount)
        if (earnings.passing == 1.0).all():
            return worth
        passing = self.number(earnings.passing)
        passed = np.empty_like(worth)
        for low, high in zip(self.starts.tolist(), self.offsets[1:].tolist(), strict=True):
            chances = passing[self.rows[low:high]]
            passed[low:high] = np.concatenate([[0 * chances[0] + 1], np.cumprod(chances)[:-1]])
        return np.asarray(worth * passed)

    def _table_of(self, query: int) -> Floats:
        low, high = self.offsets[query : query + 2].tolist()
        begin, end = self.earnings.starts[query : query + 2].tolist()
        grades, chain = np.unique(self.grade[low:high], return_inverse=True)
        counts = np.bincount(chain)
        table = self.earnings.table[begin:end].reshape(grades.size, *(counts + 1))
        at = chain[self.rows[low:high] - low]
        taken = np.zeros((grades.size, at.size), dtype=np.int64)
        taken[at, np.arange(at.size)] = 1
        above = np.cumsum(taken, axis=1) - taken
        return np.asarray(table[(at, *above)])


def reach_of(map: FeatureMap, earnings: GainTable, offsets: Ints) -> tuple[Floats, Floats]:
    """(m,) the largest |r_j| of a query; (m,) a bound on the magnitude of its gain: the i-th relevant document is at
    position i or below, and the sum of products is largest if shares and discounts both descend."""
    sizes, starts = np.diff(offsets), offsets[:-1]
    weight = np.abs(map.weight)
    slope: Floats = np.maximum.reduceat(weight, starts) if map.kind == POSITIONAL else weight * sizes
    discount, share = np.abs(earnings.discount), np.abs(earnings.share)
    falls = discount[1:] <= discount[:-1]
    falls[starts[1:] - 1] = True
    if earnings.kind != RANK or not falls.all():
        query = np.repeat(np.arange(sizes.size), sizes)
        discount, share = (part[np.lexsort((-part, query))] for part in (discount, share))
    most = np.add.reduceat(discount * share, starts) + np.abs(earnings.constant)
    if earnings.table.size:
        parts = pairwise(earnings.starts.tolist())
        most += sizes * np.array([np.abs(earnings.table[low:high]).max(initial=0.0) for low, high in parts])
    return slope, np.asarray(most, dtype=np.float64)


def exact_value(scores: Floats, grade: Floats, map: FeatureMap, earnings: GainTable, order: Ints) -> Fraction:
    """r(y)ᵀ scores - gain(y) of one query in rational numbers; order[p] is the document at position p."""
    offsets = np.array([0, order.size])
    assigned = OrderedBatch(grade, alike(offsets, grade), map, earnings, offsets, order, rational_array)
    slopes, gains = assigned.slopes(), assigned.gains()
    value = (slopes * rational_array(scores)[order]).sum() - gains.sum()
    return Fraction(value) + Fraction(float(earnings.constant[0]))


def rational_array(values: Any) -> NDArray[Any]:
    """The same numbers as fractions."""
    array = np.asarray(values, dtype=np.float64)
    made = np.empty(array.size, dtype=object)
    made[:] = [Fraction(value) for value in array.ravel().tolist()]
    return made.reshape(array.shape)
