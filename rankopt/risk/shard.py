"""A part of the data that is computed in one place: whole queries, their features and their loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.loss import Loss
from rankopt.risk.planes_at import Question
from rankopt.scorers.linear import pair_sums, parts_of, row_scores, row_sums

__all__ = ["Shard", "ShardAt"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ShardAt:
    """A shard at one w. value, bound, heights: one a query that was asked for. slopes, references: one row a plane, the
    weighted sum over all these queries if merged, else one a query and not weighted. seconds: spent in the argmax."""

    value: Floats
    bound: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float


@dataclass(eq=False)
class Remembered:
    """What holds from question to question: the majorant that touches at `touch`, and its references summed."""

    touch: Floats | None
    loss: Loss
    references: dict[bool, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Shard:
    """Queries first, first + 1, ... of a risk: their documents are `rows` (n,) of the table `features`, cut by offsets
    (m + 1,); their weights (m,) in the risk, and their loss.

    slots: None where w (d,) gives a document one score; else w is (slots, d) in a row, and scores have a column a slot.
    remembered: for the shard itself; it saves work and changes no answer.
    """

    features: Any
    rows: Ints
    offsets: Ints
    weights: Floats
    loss: Loss
    slots: int | None = None
    first: int = 0
    remembered: dict[str, Remembered] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.weights.size)

    @property
    def dimensions(self) -> int:
        """The length of w."""
        return int(self.features.shape[1]) * (self.slots or 1)

    def scores(self, w: Floats, queries: tuple[int, int] | None = None) -> Floats:
        """X w (n,), or X Wᵀ (n, slots); of the queries first <= q < last of the shard, if `queries` says so."""
        if queries is None or queries == (0, len(self)):
            rows, turns = self.rows, self._turns
        else:
            rows, turns = self.rows[slice(*self.offsets[list(queries)])], None
        if self.slots is None:
            return row_scores(self.features, rows, w, turns)
        return np.stack([row_scores(self.features, rows, own, turns) for own in w.reshape(self.slots, -1)], axis=1)

    def answer(self, question: Question) -> ShardAt:
        """Values and planes of the queries asked for that are here."""
        low, high = self._own(question.queries)
        if low >= high:
            none, planes = np.zeros(0), np.zeros((1 if question.merged else 0, self.dimensions))
            return ShardAt(none, none, none, planes, planes, 0.0)
        known = self._touched(question.touch)
        whole = high - low == len(self)
        loss = known.loss if whole else known.loss.only(low, high)
        there = loss.at(self.scores(question.w, (low, high)), question.prove)
        if known.loss.convex and (whole or not question.merged):
            (slopes,) = self._summed((there.placed,), low, high, question.merged)
            references = self._references(known, question)[slice(low, high) if not question.merged else slice(None)]
        else:
            slopes, references = self._summed((there.placed, there.reference), low, high, question.merged)
        return ShardAt(there.value, there.bound, there.height, slopes, references, there.seconds)

    def _own(self, queries: tuple[int, int] | None) -> tuple[int, int]:
        """Which of these queries of the risk are here, counted within the shard."""
        if queries is None:
            return 0, len(self)
        return max(queries[0] - self.first, 0), min(queries[1] - self.first, len(self))

    def _touched(self, touch: Floats | None) -> Remembered:
        """The loss, or its majorant that touches at `touch`; worked out once for each."""
        known = self.remembered.get("last")
        if known is None or not _same(known.touch, touch):
            loss = self.loss if touch is None else self.loss.majorant(self.scores(touch))
            known = self.remembered["last"] = Remembered(touch, loss)
        return known

    def _references(self, known: Remembered, question: Question) -> Floats:
        """The summed references of a loss whose reference is fixed; worked out once."""
        if question.merged not in known.references:
            weights = known.loss.reference_weights(np.zeros(self.rows.size))
            (known.references[question.merged],) = self._summed((weights,), 0, len(self), question.merged)
        return known.references[question.merged]

    def _summed(self, rs: tuple[Floats, ...], low: int, high: int, merged: bool) -> tuple[Floats, ...]:
        """Σ r × feature row of each r, over all queries with their weights, or for each query; slot by slot."""
        if rs[0].ndim == 2:
            slots = [self._summed(tuple(map(np.ascontiguousarray, own)), low, high, merged) for own in _columns(rs)]
            return tuple(np.hstack(part) for part in zip(*slots, strict=True))
        offsets = self.offsets[low : high + 1]
        rows, bounds = self.rows[offsets[0] : offsets[-1]], offsets - offsets[0]
        if merged:
            spread = np.repeat(self.weights[low:high], np.diff(offsets))
            rs = tuple(r * spread for r in rs)
            bounds = self._parts if high - low == len(self) else parts_of(bounds)
        if len(rs) == 1:
            sums: tuple[Floats, ...] = (row_sums(self.features, rows, rs[0], bounds),)
        else:
            sums = pair_sums(self.features, rows, rs[0], rs[1], bounds)
        return tuple(part.sum(axis=0, keepdims=True) for part in sums) if merged else sums

    @cached_property
    def _turns(self) -> Ints:
        """The documents as they lie in memory."""
        return np.argsort(self.rows)

    @cached_property
    def _parts(self) -> Ints:
        return parts_of(self.offsets)


def _columns(rs: tuple[Floats, ...]) -> Iterator[tuple[Floats, ...]]:
    """The columns of several matrices of one shape, side by side."""
    return zip(*(r.T for r in rs), strict=True)


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
