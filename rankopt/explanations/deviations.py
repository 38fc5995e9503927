"""What a feature varies by where it matters: inside queries, since what all documents of a query share orders none.

    deviation_j = √( Σ_q Σ_{i in q} (x_ij - mean of x_j over q)² / N )

coef_j × deviation_j is what a feature moves scores by, in one unit for all features.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankopt.scorers.linear import parts_of

__all__ = ["deviations_within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-14
"""Squares of deviations below this part of the mean square are what rounding leaves of a constant."""


def deviations_within(features: Any, offsets: Ints) -> Floats:
    """(d,) the deviation of each feature about its mean in the query; 0 for one that is constant in every query.

    features: (N, d) dense or CSR, documents of query q in rows offsets[q] : offsets[q + 1]; read once, in parts.
    """
    sizes = np.diff(offsets)
    if hasattr(features, "tocsr"):
        table = csr_array(features).astype(np.float64)
        cut = csr_array((np.ones(offsets[-1]), np.arange(offsets[-1]), offsets), shape=(sizes.size, offsets[-1]))
        means = csr_array(cut @ table)
        means.data = means.data**2 / np.repeat(sizes, np.diff(means.indptr))
        table.data = table.data**2
        squares = np.asarray(table.sum(axis=0)).ravel()
        left = squares - np.asarray(means.sum(axis=0)).ravel()
    else:
        squares, left = np.zeros(features.shape[1]), np.zeros(features.shape[1])
        for low, high in pairwise(parts_of(offsets).tolist()):
            part = np.asarray(features[low:high], dtype=np.float64)
            own = np.flatnonzero((offsets[:-1] >= low) & (offsets[:-1] < high))
            means = np.add.reduceat(part, offsets[own] - low, axis=0) / sizes[own, None]
            squares += (part**2).sum(axis=0)
            left += ((part - np.repeat(means, sizes[own], axis=0)) ** 2).sum(axis=0)
    left[left <= ROUNDING * squares] = 0.0
    return np.asarray(np.sqrt(left / offsets[-1]))
