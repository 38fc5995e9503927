"""Ranked lists with ties, for all queries at once, and sums, products and orders inside queries.

Rows of query q are `offsets[q]:offsets[q + 1]`; queries may be empty. A ranking of a query is a sequence of tie groups.
All orders of the documents of a group are equally likely. A strict order has groups of size one, so one implementation
of a measure covers both.

`Pool` records which documents were judged and which were retrieved. All measures count only retrieved documents;
those of ir-measures also depend on the judged ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin

MANY = 1 << 14  # number of values from which compiled code sorts


def query_of_row(offsets: Ints) -> Ints:
    """The number of its query for every row (N,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def position_in_query(offsets: Ints) -> Ints:
    """The position (N,) of every row in its query, from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def totals(values: Floats, offsets: Ints) -> Floats:
    """The sum (m,) of the values of each query."""
    sums = np.bincount(query_of_row(offsets), weights=values, minlength=len(offsets) - 1)
    return sums.astype(np.float64, copy=False)


def descending(values: Floats, offsets: Ints) -> Floats:
    """The values (N,), largest first inside each query."""
    if values.size < MANY:
        return np.asarray(values[np.lexsort((-values, query_of_row(offsets)))])
    from formulations.sorting import falling_rows

    return np.asarray(values[falling_rows(offsets, values)])


def running(combine: np.ufunc, values: Floats, offsets: Ints) -> Floats:
    """`combine.accumulate` inside each query: running sums, products or maxima (N,). Loops over positions, so that the
    rounding of a query does not depend on other queries."""
    result = np.array(values, dtype=np.float64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    for position in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > position] + position
        result[rows] = combine(result[rows - 1], result[rows])
    return result


@dataclass(frozen=True, eq=False)
class Pool:
    """Flags (N,) of the documents of a run and qrels.

    judged     has a grade
    pooled     occurs in the qrels, judged or (negative grade) unjudged
    retrieved  occurs in the run; other documents have no position and only count among the relevant ones
    """

    judged: Bools
    pooled: Bools
    retrieved: Bools

    def at(self, rows: Ints) -> Pool:
        """The flags of these rows, in this order."""
        return Pool(self.judged[rows], self.pooled[rows], self.retrieved[rows])


@dataclass(frozen=True, eq=False)
class Ranking(CompactReprMixin):
    """Grades (N,) in the order of the ranked lists, best score first, with bounds of queries and tie groups.

    relevance  (N,) grades; inside a tie group the highest comes first
    offsets    (m + 1,) rows of query q are offsets[q]:offsets[q + 1]
    groups     (G + 1,) rows of tie group g are groups[g]:groups[g + 1]
    classes    (N,) codes, or None: documents of one code may be exchanged at any distance, all orders equally likely
    pool       flags of judged and retrieved documents of a run; documents that are not retrieved come last
    """

    relevance: Floats
    offsets: Ints
    groups: Ints
    pool: Pool | None = None
    classes: Ints | None = None

    @cached_property
    def position(self) -> Ints:
        """The position (N,) of every row in its query, from 1."""
        return position_in_query(self.offsets) + 1

    @cached_property
    def group(self) -> Ints:
        """The index (N,) of the tie group of every row."""
        return query_of_row(self.groups)

    @cached_property
    def size(self) -> Ints:
        """The number of documents (G,) of each tie group."""
        return np.diff(self.groups)

    @property
    def retrieved(self) -> Bools | Literal[True]:
        """Which rows (N,) have a position that counts."""
        return True if self.pool is None else self.pool.retrieved

    @property
    def strict(self) -> bool:
        """Whether no document is tied with another."""
        return len(self.groups) == len(self.relevance) + 1

    @property
    def mixed(self) -> bool:
        """Whether tied documents differ in grade or judgment."""
        filled = np.flatnonzero(self.size)
        first, last = self.groups[filled], self.groups[filled + 1] - 1
        keys = [self.relevance] if self.pool is None else [self.relevance, self.pool.judged]
        return any(bool(np.any(values[first] != values[last])) for values in keys)

    def averaged(self, values: Floats) -> Floats:
        """Each value (N,) replaced by the mean of its tie group."""
        if self.strict:
            return values
        return np.asarray((np.add.reduceat(values, self.groups[:-1]) / self.size)[self.group])

    def exchanged(self, values: Floats) -> Floats:
        """Each value (N,) of a document replaced by the mean of its class."""
        if self.classes is None:
            return values
        return np.asarray((np.bincount(self.classes, weights=values) / np.bincount(self.classes))[self.classes])

    def break_ties(self, how: Literal["best", "worst"]) -> Self:
        """The strict ranking with every tie broken best or worst."""
        rows = np.arange(len(self.relevance))
        strict = replace(self, groups=np.arange(len(rows) + 1))
        if how == "best":
            return strict
        return strict.at(self.groups[:-1][self.group] + self.groups[1:][self.group] - 1 - rows)

    def at(self, rows: Ints) -> Self:
        """The ranking with its rows replaced by these, within the same queries and tie groups."""
        pool = None if self.pool is None else self.pool.at(rows)
        classes = None if self.classes is None else self.classes[rows]
        return replace(self, relevance=self.relevance[rows], pool=pool, classes=classes)


def ranked(
    relevance: Floats,
    scores: Floats,
    offsets: Ints,
    tie_key: Ints | None = None,
    pool: Pool | None = None,
    classes: Ints | None = None,
) -> Ranking:
    """Rank by decreasing scores (N,). With a `tie_key` (N,) equal scores are ordered by increasing key, and only
    documents of equal score and key are tied. With a `pool` documents that are not retrieved come last."""
    query = query_of_row(offsets)
    keys: tuple[NDArray[Any], ...] = (-scores, query) if pool is None else (-scores, ~pool.retrieved, query)
    if tie_key is not None:
        keys = (tie_key, *keys)
    order = np.lexsort((-relevance, *keys) if pool is None else (~pool.judged, -relevance, *keys))
    fresh = np.ones(len(order) + 1, dtype=np.bool_)
    if len(order):
        fresh[1:-1] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    groups = np.flatnonzero(fresh)
    return Ranking(relevance, offsets, groups, pool, classes).at(order)
