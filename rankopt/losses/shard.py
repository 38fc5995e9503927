"""A part of the data that is computed in one place: whole queries, their features and their loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.loss import Loss
from rankopt.losses.scores import linear_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Shard", "ShardAt"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ShardAt:
    """A shard at one w. value, bound, heights: one a query. slopes, references: one row a plane, the weighted sum over
    all queries if merged, else one a query and not weighted. seconds: spent in the argmax."""

    value: Floats
    bound: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class Shard:
    """features (n, d), offsets (m + 1,) of its queries, their weights (m,) in the risk, and their loss.

    slots: None where w (d,) gives a document one score; else w is (slots, d) in a row, and scores have a column a slot.
    """

    features: Floats | csr_array
    offsets: Ints
    weights: Floats
    loss: Loss
    slots: int | None = None

    def scores(self, w: Floats) -> Floats:
        """X w (n,), or X Wᵀ (n, slots)."""
        if self.slots is None:
            return linear_scores(self.features, w)
        return np.stack([linear_scores(self.features, own) for own in w.reshape(self.slots, -1)], axis=1)

    def at(self, w: Floats, merged: bool, prove: bool = False) -> ShardAt:
        """Values and planes of all queries of the shard at w."""
        there = self.loss.at(self.scores(w), prove)
        return ShardAt(
            there.value,
            there.bound,
            there.height,
            self._gathered(there.placed, merged),
            self._gathered(there.reference, merged),
            there.seconds,
        )

    def majorant(self, w: Floats) -> Shard:
        """The shard with the convex majorant of its loss at w."""
        return replace(self, loss=self.loss.majorant(self.scores(w)))

    def only(self, first: int, last: int) -> Shard:
        """The queries first <= q < last of the shard."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        part = self.loss.only(first, last)
        return Shard(self.features[rows], offsets, self.weights[first:last], part, self.slots)

    def _gathered(self, row_weights: Floats, merged: bool) -> Floats:
        """Σ row weight × feature row, over all queries with their weights, or for each query; slot by slot."""
        if row_weights.ndim == 2:
            return np.hstack([self._gathered(np.ascontiguousarray(own), merged) for own in row_weights.T])
        if merged:
            weighted = row_weights * np.repeat(self.weights, np.diff(self.offsets))
            return np.asarray(self.features.T @ weighted, dtype=np.float64)[None, :]
        # One product with a block-diagonal matrix: row q of it holds the row weights of query q.
        from scipy.sparse import csr_array

        rows = np.arange(row_weights.size)
        blocks = csr_array((row_weights, rows, self.offsets), shape=(self.weights.size, row_weights.size))
        product = blocks @ self.features
        return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)
