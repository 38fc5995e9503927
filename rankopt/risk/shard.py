"""A shard: complete queries, their scores as a function of the parameters, and their loss.

The partition of queries into shards depends on the data alone, not on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import frozen
from formulations.display import CompactReprMixin
from rankopt.data.canonical_order import Arrangement
from rankopt.losses.loss import Loss
from rankopt.scorers.linear import Linear, parts_of
from rankopt.scorers.scorer import Scorer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Answer = TypeVar("Answer")
Result = TypeVar("Result", covariant=True)


class ShardFunction(Protocol[Result]):
    """A function evaluated on a shard: plain data that can be sent to the shard's process."""

    def __call__(self, shard: Shard) -> Result: ...


@dataclass(eq=False)
class Touched:
    """The majorant that touches a loss at `touch`, and its summed references, cached until `touch` changes."""

    touch: Floats | None
    loss: Loss
    references: dict[bool, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Shard(CompactReprMixin):
    """Queries first, first + 1, ... of a risk: their documents, cut by offsets (m + 1,), get their scores from
    `scorer`; their weights (m,) in the risk, and their loss.

    remembered: for the shard itself; it saves work and changes no answer.
    """

    scorer: Scorer
    offsets: Ints
    weights: Floats
    loss: Loss
    first: int = 0
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.weights.size)

    def own(self, queries: tuple[int, int] | None) -> tuple[int, int]:
        """Which of these queries of the risk are here, counted within the shard; all if None."""
        if queries is None:
            return 0, len(self)
        return max(queries[0] - self.first, 0), min(queries[1] - self.first, len(self))

    def scores(self, w: Floats, first: int = 0, last: int | None = None) -> Floats:
        """The scores, read-only, of the documents of the queries first <= q < last: (n,) or (n, slots)."""
        last = len(self) if last is None else last
        return frozen(self.scorer.scores(w, int(self.offsets[first]), int(self.offsets[last])))

    def touched(self, touch: Floats | None) -> Touched:
        """The loss, or its majorant that touches at `touch`; cached."""
        known: Touched | None = self.remembered.get("last")
        if known is None or not _same(known.touch, touch):
            loss = self.loss if touch is None else self.loss.majorant(self.scores(touch))
            known = self.remembered["last"] = Touched(touch, loss)
        return known

    def references(self, known: Touched, merged: bool) -> Floats:
        """The summed references of a loss with a fixed reference; cached."""
        if merged not in known.references:
            zeros = np.zeros(int(self.offsets[-1]))
            weights = known.loss.reference_weights(zeros)
            (known.references[merged],) = self.summed((weights,), 0, len(self), merged)
        return known.references[merged]

    def summed(self, slopes: tuple[Floats, ...], first: int, last: int, merged: bool) -> tuple[Floats, ...]:
        """Σ r × ∂s/∂w of each r, for the queries first <= q < last: over all of them with their weights (1,
        dimensions), or one a query."""
        bounds = self.offsets[first : last + 1]
        if merged:
            spread = np.repeat(self.weights[first:last], np.diff(bounds))
            slopes = tuple(r * (spread if r.ndim == 1 else spread[:, None]) for r in slopes)
            bounds = self._parts if last - first == len(self) else parts_of(bounds - bounds[0]) + bounds[0]
        sums = self.scorer.pull(slopes, bounds)
        return tuple(part.sum(axis=0, keepdims=True) for part in sums) if merged else sums

    @cached_property
    def _parts(self) -> Ints:
        return parts_of(self.offsets)


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


SHARD_ROWS = 1 << 17
"""Rows after which a shard is closed."""

Build = Callable[[Arrangement], tuple[Arrangement, Loss]]
"""From queries to those of them that a loss can learn from (`Arrangement.learnable`), and the loss of these."""


def shards(
    queries: Arrangement,
    build: Build,
    scorer: Callable[[Linear], Scorer] = lambda linear: linear,
) -> tuple[Shard, ...]:
    """The queries that a loss can learn from, with that loss, in shards.

    scorer: maps features to scores, if these are not one linear function.
    Raises DataError if no query can be learned from.
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
