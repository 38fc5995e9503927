"""From parameters to scores of documents, and back: what a shard holds of its data."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scorer(Protocol):
    """Documents 0, 1, ..., n - 1 whose scores are linear in the parameters w: s_i = ⟨∂s_i/∂w, w⟩."""

    @property
    def dimensions(self) -> int:
        """The length of w."""
        ...

    @property
    def features(self) -> Any:
        """The table that it reads, shared by many scorers: engines ship it apart."""
        ...

    def with_features(self, features: Any) -> Self:
        """The same scorer of the same table elsewhere, or without one (None)."""
        ...

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        """(last - first,) or (last - first, slots): the scores of the documents first <= i < last."""
        ...

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        """(P, dimensions) for each of the slopes r: Σ r_i ∂s_i/∂w over each part bounds[p] <= i < bounds[p + 1]. r has
        an entry, or one a slot, for each of the documents bounds[0] <= i < bounds[-1]."""
        ...
