"""How far apart the documents of a query are: Σ_j weights_j ‖x_j - x̄_q‖², the trace of the products inside queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.least_squares import centred
from rankopt.scorers.linear import row_sums

__all__ = ["spread", "spreads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def spread(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> float:
    """Σ_j weights_j ‖x_j - x̄_q‖², x_j row rows[j] of the features (dense or CSR), x̄_q the mean of its query.

    weights (N,) >= 0, equal inside a query; offsets (m + 1,) cuts the rows into queries. Infinite or NaN where squares
    of the features leave double precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if hasattr(features, "tocsr"):
            return of_sparse(features.tocsr(), weights, rows, offsets)
        matrix, _ = centred(features, np.zeros(weights.size), weights, rows, offsets)
        parts = matrix.reduced(lambda blocks: np.array([sum(float(np.vdot(block, block)) for _, block in blocks)]))
        return float(np.sum(parts))


def of_sparse(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> float:
    """The same without any dense part of the features: entries that are stored less the mean of their query, and that
    mean for each entry that is not."""
    own, apart, middle, of_query = _sparse_parts(features, weights, rows, offsets)
    return float(np.repeat(weights, np.diff(own.indptr)) @ apart**2 + of_query @ middle.data**2)


def spreads(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> Floats:
    """(d,) the part of each feature: Σ_j weights_j (x_j - x̄_q)², 0 where that is nothing but rounding."""
    means = row_sums(features, rows, np.repeat(1.0 / np.diff(offsets), np.diff(offsets)), offsets)
    counted = np.add.reduceat(weights, offsets[:-1])
    least = (4 * np.finfo(np.float64).eps) ** 2 * weights.size * (counted @ means**2)
    if hasattr(features, "tocsr"):
        own, apart, middle, of_query = _sparse_parts(features.tocsr(), weights, rows, offsets)
        found = np.bincount(own.indices, np.repeat(weights, np.diff(own.indptr)) * apart**2, means.shape[1])
        found += np.bincount(middle.indices, of_query * middle.data**2, means.shape[1])
    else:
        matrix, _ = centred(features, np.zeros(weights.size), weights, rows, offsets)
        parts = matrix.reduced(lambda blocks: sum((block**2).sum(axis=0) for _, block in blocks))
        found = np.sum(parts, axis=0)
    return np.where(found > least, found, 0.0)


def _sparse_parts(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> tuple[Any, Floats, Any, Floats]:
    """The rows as a CSR table, its entries less the mean of their query, the means as another, and the weight of the
    documents that store nothing where a mean does."""
    from scipy.sparse import csr_array

    own = features[rows].astype(np.float64)
    own.sum_duplicates()
    sizes, wide = np.diff(offsets), own.shape[1]
    shares = csr_array((np.repeat(1.0 / sizes, sizes), np.arange(rows.size), offsets), (sizes.size, rows.size))
    middle = shares @ own
    middle.sort_indices()
    kept = np.diff(middle.indptr)
    place = np.repeat(np.arange(sizes.size), kept) * wide + middle.indices
    query = np.repeat(np.repeat(np.arange(sizes.size), sizes), np.diff(own.indptr))
    at = np.searchsorted(place, query * wide + own.indices)
    apart = own.data - middle.data[at]
    absent = np.repeat(sizes, kept) - np.bincount(at, minlength=place.size)
    of_query = np.repeat(weights[offsets[:-1]], kept) * absent
    return own, apart, middle, of_query
