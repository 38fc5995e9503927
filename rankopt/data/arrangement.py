"""Queries in an order of their own: documents are named by their rows, the features stay where they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from rankopt.data.values import Features
from rankopt.errors import DataError

__all__ = ["Arrangement", "rows_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arrangement(CompactReprMixin):
    """Some queries of a data set and their documents, in this order. Document j has the features `features[rows[j]]`.

    Training wants another order of the data, and fewer queries, than the caller has; moving the features would cost as
    much memory again. The fields are those of `Queries`: `offsets` (m + 1,) cuts the documents into queries,
    `relevance` (N,) and the columns of `attributes` are in the order of the documents. `weights` (m,), one a query.
    """

    features: Features
    rows: Ints
    offsets: Ints
    weights: Floats
    relevance: Floats | None
    query_ids: tuple[Hashable, ...]
    attributes: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def graded(self) -> Floats:
        """(N,) the grades; DataError where there are none."""
        if self.relevance is None:
            raise DataError("training cannot learn an order because the queries carry no relevance; give y")
        return self.relevance

    def learnable(self, useful: NDArray[np.bool_], trait: str) -> Arrangement:
        """The queries that are useful (m,) and have a weight, their weights scaled to sum to 1; DataError where none
        is, saying that no query has documents that `trait`, and what its grades lack."""
        kept = np.flatnonzero(useful & (self.weights > 0))
        if not kept.size:
            raise DataError(
                f"these queries have no order to learn or to judge because none has documents that {trait}; "
                f"{self._lacking()}"
            )
        chosen = self if kept.size == len(self) else self.select(kept)
        return replace(chosen, weights=chosen.weights / chosen.weights.sum())

    def _lacking(self) -> str:
        grades, starts = self.graded, self.offsets[:-1]
        if not (np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))[self.weights > 0].any():
            return "give queries with at least two different grades"
        return f"their grades, from {grades.min():g} to {grades.max():g}, differ, but it takes others, or other options"

    def query_of(self, document: int) -> int:
        """Which query holds a document."""
        return int(np.searchsorted(self.offsets, document, side="right")) - 1

    def select(self, chosen: Ints) -> Arrangement:
        """The queries of these positions, in this order."""
        documents = rows_of(self.offsets, chosen)
        return Arrangement(
            features=self.features,
            rows=self.rows[documents],
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[chosen])]),
            weights=self.weights[chosen],
            relevance=None if self.relevance is None else self.relevance[documents],
            query_ids=tuple(self.query_ids[q] for q in chosen.tolist()),
            attributes={name: values[documents] for name, values in self.attributes.items()},
        )


def rows_of(offsets: Ints, chosen: Ints) -> Ints:
    """The rows of these queries, query by query."""
    sizes = np.diff(offsets)[chosen]
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1]) + np.repeat(offsets[chosen] - (ends - sizes), sizes))
