"""Scorers: from parameters to scores of documents, and back; the data access of a shard.

Shapes are validated before compiled code, which would otherwise read out of bounds.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

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


def check_weights(w: Any, needed: int, slots: int = 1) -> None:
    """Raise DataError unless w holds one weight for each feature, of each slot: as many as are needed."""
    if np.shape(w) != (needed,):
        have = f"{needed} features" if slots == 1 else f"{needed // slots} features for each of {slots} slots"
        raise DataError(
            f"scores cannot be computed because the documents have {have} and the weights the shape {np.shape(w)}; "
            "pass one weight for each feature, or the features that the weights were trained on."
        )


def check_slopes(r: Floats, documents: int) -> None:
    """Raise DataError unless r is one slope for each of the documents."""
    if r.shape != (documents,):
        raise DataError(
            f"slopes of shape {r.shape} cannot be pulled back to the weights because there are {documents} documents; "
            "pass one slope for each document."
        )


def check_slots(r: Floats, slots: int) -> None:
    """Raise DataError unless r has a column for each of the slots."""
    if r.ndim != 2 or r.shape[1] != slots:
        raise DataError(
            f"slopes of shape {r.shape} cannot be pulled back because there are {slots} slots; pass one for each slot."
        )


def check_rows(rows: Ints, count: int) -> None:
    """Raise DataError unless all rows are among the first `count` ones."""
    if rows.size and not (rows.min() >= 0 and rows.max() < count):
        wrong = int(np.flatnonzero((rows < 0) | (rows >= count))[0])
        raise DataError(
            f"document {wrong} cannot have row {rows[wrong]} because there are {count} rows; pass valid rows."
        )


def check_bounds(bounds: Ints, documents: int) -> None:
    """Raise DataError unless parts are cut within the documents, one after the other."""
    if not (bounds.size and bounds[0] >= 0 and bounds[-1] <= documents and (bounds[1:] >= bounds[:-1]).all()):
        raise DataError(f"parts {bounds} cannot be summed; pass bounds that increase within {documents} documents.")


def check_entries_fit(features: Any) -> None:
    """Raise DataError unless a CSR table has as many columns as values, and bounds for its rows within them."""
    values, columns, bounds = features.data.size, features.indices.size, features.indptr
    if values != columns or bounds.size != features.shape[0] + 1 or bounds[0] < 0 or bounds[-1] > values:
        raise DataError(
            f"sparse features cannot be read because {values} values, {columns} columns and bounds from {bounds[0]} to "
            f"{bounds[-1]} do not make {features.shape[0]} rows; build the table anew."
        )
