"""Ranked lists with ties, for all queries at once.

A ranking of a query is a sequence of tie groups: documents of one group may stand in any order, each equally likely. A
strict order has groups of one. Measures are written for groups once, and so serve both.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.measures.segments import Floats, Ints, position_in_query, query_of_row


@dataclass(frozen=True, eq=False)
class Ranking:
    """Grades (N,) as they stand in the ranked lists, best score first, and where queries and tie groups begin.

    relevance  (N,) grades; inside a tie group the highest comes first
    offsets    (m + 1,) rows of query q are offsets[q]:offsets[q + 1]
    groups     (G + 1,) rows of tie group g are groups[g]:groups[g + 1]
    """

    relevance: Floats
    offsets: Ints
    groups: Ints

    @cached_property
    def position(self) -> Ints:
        """The position (N,) of every row in its query, from 1."""
        return position_in_query(self.offsets) + 1

    @cached_property
    def group(self) -> Ints:
        """The number of its tie group for every row (N,)."""
        return query_of_row(self.groups)

    @cached_property
    def size(self) -> Ints:
        """The number of documents (G,) of each tie group."""
        return np.diff(self.groups)

    @property
    def strict(self) -> bool:
        """Whether no document is tied with another."""
        return len(self.groups) == len(self.relevance) + 1

    @property
    def mixed(self) -> bool:
        """Whether documents of different grades are tied."""
        filled = np.flatnonzero(self.size)
        first, last = self.groups[filled], self.groups[filled + 1] - 1
        return bool(np.any(self.relevance[first] != self.relevance[last]))

    def averaged(self, values: Floats) -> Floats:
        """Each value (N,) replaced by the mean of its tie group."""
        if self.strict:
            return values
        return np.asarray((np.add.reduceat(values, self.groups[:-1]) / self.size)[self.group])

    def broken(self, how: Literal["best", "worst"]) -> Self:
        """The strict ranking in which every tie falls for the best or for the worst."""
        relevance = self.relevance
        if how == "worst":
            first, last = self.groups[:-1][self.group], self.groups[1:][self.group]
            relevance = relevance[first + last - 1 - np.arange(len(relevance))]
        return type(self)(relevance, self.offsets, np.arange(len(relevance) + 1))


def ranked(relevance: Floats, scores: Floats, offsets: Ints, tie_key: NDArray[np.int64] | None = None) -> Ranking:
    """The ranking by decreasing scores (N,). With a `tie_key` (N,) equal scores stand by increasing key, and only
    documents of equal score and key are tied.
    """
    query = query_of_row(offsets)
    keys = (-scores, query) if tie_key is None else (tie_key, -scores, query)
    order = np.lexsort((-relevance, *keys))
    fresh = np.ones(len(order) + 1, dtype=np.bool_)
    if len(order):
        fresh[1:-1] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    return Ranking(relevance[order], offsets, np.flatnonzero(fresh))
