"""Linear scores, and the two products with the features that a step of training needs: X w, and sums of Xᵀ r.

Features may be dense (a memory-mapped file is one) or CSR, float32 or float64; sums are in float64. Documents name
their rows, so the features stay where they are. All threads work; how many there are changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.threads import share
from rankopt.errors import DataError
from rankopt.scorers.widths import check_bounds, check_entries_fit, check_rows, check_slopes, check_weights

__all__ = ["Linear", "linear_scores", "pair_sums", "parts_of", "row_scores", "row_sums"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PART = 1 << 11
"""Rows, about, that one thread takes at a time; sums are taken in parts of this size and then added up."""


@dataclass(frozen=True, eq=False)
class Linear:
    """s_i = ⟨features[rows[i]], w⟩: document i has row rows[i] of the table. DataError for rows that it has not."""

    features: Any
    rows: Ints

    def __post_init__(self) -> None:
        if self.features is not None:
            check_rows(self.rows, self.features.shape[0])

    @property
    def dimensions(self) -> int:
        return int(self.features.shape[1])

    def with_features(self, features: Any) -> Linear:
        return Linear(features, self.rows)

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        if (first, last) == (0, self.rows.size):
            return row_scores(self.features, self.rows, w, self._turns)
        return row_scores(self.features, self.rows[first:last], w)

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        rows, parts = self.rows[bounds[0] : bounds[-1]], bounds - bounds[0]
        if len(slopes) == 2:
            return pair_sums(self.features, rows, *slopes, parts)
        return tuple(row_sums(self.features, rows, r, parts) for r in slopes)

    def columns(self, chosen: Ints) -> Floats:
        """(D, N) the features of these numbers, of every document. Of a CSR table only what is stored is read."""
        if not (hasattr(self.features, "tocsr") or isinstance(self.features, np.ndarray)):
            raise DataError("columns cannot be read because there are no features; give the scorer its table")
        values = np.zeros((chosen.size, self.rows.size))
        for line, column in zip(values, chosen.tolist(), strict=True):
            if isinstance(self.features, np.ndarray):
                line[:] = self.features[self.rows, column]
            else:
                table = self._by_column
                stored = slice(table.indptr[column], table.indptr[column + 1])
                line[table.indices[stored]] = table.data[stored]
        return values

    @cached_property
    def _by_column(self) -> Any:
        """The rows of a CSR table, entries of one place added up, by columns: they are sorted once."""
        own = self.features[self.rows]
        own.sum_duplicates()
        return own.tocsc()

    @cached_property
    def _turns(self) -> Ints:
        """The documents as they lie in memory."""
        return np.argsort(self.rows)


def parts_of(offsets: Ints, rows: int = PART) -> Ints:
    """Bounds of parts of whole queries, given as rows: each of `rows` rows, give or take a query, but the last."""
    marks = np.arange(rows, offsets[-1], rows)
    bounds = np.unique(offsets[np.searchsorted(offsets, marks)])
    return np.unique(np.concatenate([[0], bounds, offsets[-1:]]))


def row_scores(features: Any, rows: Ints, w: Floats, turns: Ints | None = None) -> Floats:
    """(N,) ⟨features[rows[i]], w⟩.

    turns: an order in which the documents are visited, a permutation of 0 ... N - 1. It changes no score; where it
        follows the rows as they lie in memory, it saves up to two thirds of the time.
    Raises DataError where w has another width than the features. Rows, and the columns of a CSR table, are trusted:
    `Linear` and `Queries` check them once.
    """
    check_weights(w, features.shape[1])
    scores = np.empty(rows.size)
    turns = np.arange(rows.size) if turns is None else turns
    w = np.ascontiguousarray(w, dtype=np.float64)
    count = -(-rows.size // PART)
    if hasattr(features, "tocsr"):
        from rankopt.scorers.sparse_products import sparse_scores

        entries = _entries(features)
        share(
            count, lambda p: sparse_scores(*entries, rows, turns, w, p * PART, min(rows.size, (p + 1) * PART), scores)
        )
    else:
        from rankopt.scorers.dense_products import dense_scores

        table = np.ascontiguousarray(features)
        share(count, lambda p: dense_scores(table, rows, turns, w, p * PART, min(rows.size, (p + 1) * PART), scores))
    return scores


def row_sums(features: Any, rows: Ints, r: Floats, bounds: Ints) -> Floats:
    """(P, d) Σ r[i] × features[rows[i]] over each part bounds[p] <= i < bounds[p + 1]. DataError where r has not an
    entry for each of the rows, or a part ends beyond them."""
    check_slopes(r, rows.size)
    check_bounds(bounds, rows.size)
    parts = bounds.size - 1
    sums = np.empty((parts, features.shape[1]))
    some = _parts_at_once(rows, parts)
    count = -(-parts // some)
    if hasattr(features, "tocsr"):
        from rankopt.scorers.sparse_products import sparse_sums

        entries = _entries(features)
        share(count, lambda p: sparse_sums(*entries, rows, r, bounds, p * some, min(parts, (p + 1) * some), sums))
    else:
        from rankopt.scorers.dense_products import dense_sums, dense_sums_in_numpy

        table = np.ascontiguousarray(features)
        if not dense_sums.pays(3 * rows.size * table.shape[1]):
            return dense_sums_in_numpy(table, rows, r, bounds)
        share(count, lambda p: dense_sums(table, rows, r, bounds, p * some, min(parts, (p + 1) * some), sums))
    return sums


def pair_sums(features: Any, rows: Ints, r: Floats, other: Floats, bounds: Ints) -> tuple[Floats, Floats]:
    """`row_sums` of r and of `other`; dense features are read once for both."""
    if hasattr(features, "tocsr"):
        return row_sums(features, rows, r, bounds), row_sums(features, rows, other, bounds)
    from rankopt.scorers.dense_products import dense_pair_sums, dense_sums_in_numpy

    check_slopes(r, rows.size)
    check_slopes(other, rows.size)
    check_bounds(bounds, rows.size)
    table, parts = np.ascontiguousarray(features), bounds.size - 1
    if not dense_pair_sums.pays(6 * rows.size * table.shape[1]):
        return dense_sums_in_numpy(table, rows, r, bounds), dense_sums_in_numpy(table, rows, other, bounds)
    sums, others = np.empty((parts, table.shape[1])), np.empty((parts, table.shape[1]))
    some = _parts_at_once(rows, parts)
    share(
        -(-parts // some),
        lambda p: dense_pair_sums(table, rows, r, other, bounds, p * some, min(parts, (p + 1) * some), sums, others),
    )
    return sums, others


def _parts_at_once(rows: Ints, parts: int) -> int:
    """How many parts make up about PART rows."""
    return max(1, int(PART * parts / max(rows.size, 1)))


def _entries(features: Any) -> tuple[Any, Any, Any]:
    """Values, columns and bounds of rows of a CSR table."""
    check_entries_fit(features)
    return features.data, features.indices, features.indptr


def linear_scores(features: Any, coef: Floats) -> Floats:
    """The scores X w (N,) of features X (N, d), float64.

    Each row is summed on its own and in one order, so equal documents get equal scores wherever they stand. A BLAS
    product does not promise that: it sums the last rows of a block differently, and what ought to be ties is none.
    """
    return row_scores(features, np.arange(features.shape[0]), coef)
