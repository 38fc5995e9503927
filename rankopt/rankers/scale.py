"""The λ that is natural to the data: what `lam="scale"` means.

Scores s = Xw have inside query q the mean square (1/n_q) Σ_j (s_j - s̄)² <= ‖w‖² U_q, U_q = (1/n_q) Σ_j ‖x_j - x̄_q‖². So
‖w‖² U, U = Σ_q v_q U_q, is the spread of the scores that w allows, and

    λ = 3 U / m        (λ/2) ‖w‖² = (3/2) (spread) / m

weighs that spread, in units of the margin, against the mean loss of m queries. Features c times as large need weights
1/c times as large: U grows by c² and the problem stays the same, and so it does when constants are added to the
features of a query. The strength falls with 1/m as a fixed C = 1 / (λ m) does. The 3 is measured
(benchmarks/accuracy.md): from 1 to 10 little changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InvalidProblem
from rankopt.optimize.least_squares import centred

if TYPE_CHECKING:
    from rankopt.data.arrangement import Arrangement

__all__ = ["STRENGTH", "natural_lam", "spread"]

Floats = NDArray[np.float64]

STRENGTH = 3.0
"""λ in units of U / m."""


def natural_lam(queries: Arrangement, count: int) -> float:
    """λ = 3 U / m of so many queries with something to order; features that vary nowhere leave 3 / m.

    Raises InvalidProblem where squares of the features leave double precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        unit = spread(queries)
    if not np.isfinite(unit):
        raise InvalidProblem("the squares of the features leave double precision")
    return STRENGTH * (unit if unit > 0 else 1.0) / count


def spread(queries: Arrangement) -> float:
    """U, the mean square distance of a document's features from the mean of its query, each query weighing v_q."""
    sizes = np.diff(queries.offsets)
    shares = np.repeat(queries.weights / queries.weights.sum() / sizes, sizes)
    if hasattr(queries.features, "tocsr"):
        return sparse_spread(queries, shares)
    matrix, _ = centred(queries.features, np.zeros(shares.size), shares, queries.rows, queries.offsets)
    parts = matrix.reduced(lambda blocks: np.array([sum(float(np.vdot(block, block)) for _, block in blocks)]))
    return float(np.sum(parts))


def sparse_spread(queries: Arrangement, shares: Floats) -> float:
    """The same without any dense part of the features: mean squares less squares of means."""
    from scipy.sparse import csr_array

    features: Any = queries.features
    columns = queries.features.tocsr()[queries.rows] if queries.rows.size else features
    of_row = np.repeat(shares, np.diff(columns.indptr))
    sizes = np.diff(queries.offsets)
    middle = csr_array((np.repeat(1.0 / sizes, sizes), np.arange(sizes.sum()), queries.offsets)) @ columns
    of_query = np.repeat(np.add.reduceat(shares, queries.offsets[:-1]), np.diff(middle.indptr))
    squares = columns.data.astype(np.float64) ** 2
    return max(float(of_row @ squares - of_query @ middle.data**2), 0.0)
