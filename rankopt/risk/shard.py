"""A part of the data that is computed in one place: whole queries, from parameters to scores, and their loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import frozen
from formulations.brevity import CompactReprMixin
from rankopt.losses.loss import Loss
from rankopt.scorers.linear import parts_of
from rankopt.scorers.scorer import Scorer

__all__ = ["Answer", "ShardFunction", "Shard"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Answer = TypeVar("Answer")
Told = TypeVar("Told", covariant=True)


class ShardFunction(Protocol[Told]):
    """What a shard is asked: plain data that goes wherever the shard is."""

    def __call__(self, shard: Shard) -> Told: ...


@dataclass(eq=False)
class Touched:
    """The majorant that touches a loss at `touch`, and its references summed, which hold until it is asked
    elsewhere."""

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
        """The loss, or its majorant that touches at `touch`; worked out once for each."""
        known: Touched | None = self.remembered.get("last")
        if known is None or not _same(known.touch, touch):
            loss = self.loss if touch is None else self.loss.majorant(self.scores(touch))
            known = self.remembered["last"] = Touched(touch, loss)
        return known

    def references(self, known: Touched, merged: bool) -> Floats:
        """The summed references of a loss whose reference is fixed; worked out once."""
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
