"""How queries are cut into shards: it belongs to the data, never to the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankopt.data.arrangement import Arrangement
from rankopt.losses.loss import Loss
from rankopt.risk.shard import Shard
from rankopt.scorers.linear import Linear
from rankopt.scorers.scorer import Scorer

__all__ = ["SHARD_ROWS", "Build", "shards", "shards_of_grades"]

Ints = NDArray[np.int64]

SHARD_ROWS = 1 << 17
"""Rows after which a shard is closed."""

Build = Callable[[Arrangement], tuple[Arrangement, Loss]]
"""From queries to those of them that a loss can learn from (`Arrangement.learnable`), and the loss of these."""


def shards(
    queries: Arrangement,
    build: Build,
    scorer: Callable[[Linear], Scorer] = lambda linear: linear,
) -> tuple[Shard, ...]:
    """The queries that a loss can learn from, with that loss, in shards: one function for every loss.

    scorer: from a document's features to its scores, where these are not one linear function.
    Raises DataError where there is nothing to learn.
    """
    queries, loss = build(queries)
    cuts = cut(queries.offsets)
    found = []
    for first, last in cuts:
        low, high = queries.offsets[first], queries.offsets[last]
        found.append(
            Shard(
                scorer(Linear(queries.features, queries.rows[low:high])),
                queries.offsets[first : last + 1] - low,
                queries.weights[first:last],
                loss if len(cuts) == 1 else loss.only(first, last),
                first,
            )
        )
    return tuple(found)


def shards_of_grades(queries: Arrangement, factory: Callable[[NDArray[np.float64], Ints], Loss]) -> tuple[Shard, ...]:
    """The queries that have documents of different grades, in shards, with the loss that `factory` makes of relevance
    and offsets. Raises DataError where there are none."""

    def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
        grades, starts = queries.graded, queries.offsets[:-1]
        useful = np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts)
        queries = queries.learnable(useful, "have different grades")
        return queries, factory(queries.graded, queries.offsets)

    return shards(queries, build)


def cut(offsets: Ints, rows: int | None = None) -> list[tuple[int, int]]:
    """Ranges of queries, each of at least `rows` rows but the last; None is SHARD_ROWS."""
    rows = SHARD_ROWS if rows is None else rows
    ranges, first = [], 0
    for query in range(1, offsets.size):
        if offsets[query] - offsets[first] >= rows or query == offsets.size - 1:
            ranges.append((first, query))
            first = query
    return ranges
