"""Weighted least squares with an intercept that is thrown away, dense or sparse."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.optimize.column_units import column_units, in_units
from rankopt.optimize.normal_equations import Centred, by_normal_equations
from rankopt.scorers.linear import PART, row_scores, row_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUMBERS = 1 << 22
"""Sums of parts hold no more numbers than this."""

WIDE = 512
"""Features above which sparse data is solved by iteration, without any dense part of it."""


def least_squares(
    features: Any, targets: Floats, weights: Floats, alpha: float | Floats, rows: Ints | None = None
) -> Floats:
    """The w (d,) of min over w and β of `Σ_j weights_j (targets_j - wᵀx_j - β)² + α ‖w‖²`, α one number or (d,).

    features dense or CSR, targets (N,), weights (N,) >= 0, not all 0; x_j is row j of the features, or row rows[j].
    Columns are centred and scaled to norm 1, so features of 1e-9 and 1e9 side by side lose no digits; where w is not
    unique, the scaled one of least norm is taken, and constant features get 0. Solved by refined normal equations;
    where these are nearly singular, blocks of rows are reduced to a triangle, which is solved by singular values.
    Sparse data of more than WIDE features is solved by LSMR; a ConvergenceWarning says where that did not settle.
    Columns whose squares leave double precision are measured in units of their own.
    """
    units = column_units(features)
    if units is not None:  # a ridge holds columns that small at 0 as it is
        ridge = alpha * np.minimum(units, 1.0) ** 2
        units = np.where(ridge > 0, np.minimum(units, 1.0), units)
        return units * _in_range(in_units(features, units), targets, weights, ridge, rows)
    return _in_range(features, targets, weights, alpha, rows)


def _in_range(
    features: Any, targets: Floats, weights: Floats, alpha: float | Floats, rows: Ints | None = None
) -> Floats:
    """The same where squares of features are within double precision."""
    total = weights.sum()
    root = np.sqrt(weights)
    parts = np.append(np.arange(0, len(root), PART), len(root))
    rows = np.arange(len(root)) if rows is None else rows
    mean = row_sums(features, rows, weights, parts).sum(axis=0) / total
    residual = root * (targets - weights @ targets / total)
    # What rounding of the mean leaves of a constant column: scaled up it would be noise with a large weight.
    rounding = 4 * np.finfo(np.float64).eps * np.sqrt(total * len(root)) * np.abs(mean)
    if hasattr(features, "tocsr") and features.shape[1] > WIDE:
        return _by_iteration(features.tocsr(), rows, residual, root, mean, rounding, alpha)
    matrix = Centred(features, rows, root, mean)
    solved = by_normal_equations(matrix, residual, rounding, alpha)
    return _by_singular_values(matrix, residual, rounding, alpha) if solved is None else solved


def _by_singular_values(matrix: Centred, residual: Floats, rounding: Floats, alpha: float | Floats) -> Floats:
    """The same w by R and Qᵀ residual of a QR factorisation, which keeps all digits."""

    def reduced(kept: Floats, blocks: Iterator[Floats]) -> Floats:
        for block in blocks:
            kept = np.asarray(np.linalg.qr(np.vstack([kept, block]), mode="r"))
        return kept

    none = np.empty((0, rounding.size + 1))
    triangles = matrix.reduced(
        lambda blocks: reduced(none, (np.column_stack([block, residual[part]]) for part, block in blocks))
    )
    whole = reduced(none, iter(triangles))
    triangle, right = whole[:, :-1], whole[:, -1]
    norms = np.sqrt(np.einsum("ij,ij->j", triangle, triangle))
    scale = _scale(np.where(norms > rounding, np.hypot(norms, np.sqrt(alpha)), 0.0), rounding)
    system = triangle * scale
    if np.any(alpha):
        system = np.vstack([system, np.diag(np.sqrt(alpha) * scale)])
        right = np.concatenate([right, np.zeros_like(rounding)])
    return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0] * scale)


def _scale(norms: Floats, rounding: Floats) -> Floats:
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > rounding)


def _by_iteration(
    features: Any, rows: Ints, residual: Floats, root: Floats, mean: Floats, rounding: Floats, alpha: float | Floats
) -> Floats:
    from scipy.sparse.linalg import LinearOperator, lsmr

    n, d = len(rows), features.shape[1]
    scale = _scale(np.sqrt(_squares(features, rows, root**2, mean)), rounding)
    ridge = np.sqrt(alpha) * scale
    size = max(PART, -(-n * d // NUMBERS))
    parts, turns = np.append(np.arange(0, n, size), n), np.argsort(rows)

    def forward(z: Floats) -> Floats:
        w = scale * z.ravel()
        return np.concatenate([root * (row_scores(features, rows, w, turns) - mean @ w), ridge * z.ravel()])

    def backward(r: Floats) -> Floats:
        own, columns = root * r.ravel()[:n], r.ravel()[n:]
        sums = row_sums(features, rows, own, parts).sum(axis=0)
        return np.asarray(scale * (sums - mean * own.sum()) + ridge * columns)

    operator = LinearOperator((n + d, d), matvec=forward, rmatvec=backward, dtype=np.float64)
    right = np.concatenate([residual, np.zeros(d)])
    limit = 10 * d
    solution, stopped = lsmr(operator, right, atol=1e-13, btol=1e-13, conlim=0.0, maxiter=limit)[:2]
    if stopped == 7:
        warnings.warn(
            f"Least squares did not settle in {limit} iterations; raise alpha or leave out nearly equal features.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return np.asarray(solution * scale)


def _squares(features: Any, rows: Ints, weights: Floats, mean: Floats) -> Floats:
    """Σ weight (x - mean)² of each column without the dense difference: entries that are stored, then the zeros."""
    squares, stored = np.zeros(mean.size), np.zeros(mean.size)
    for start in range(0, len(rows), PART):
        part = slice(start, start + PART)
        block = features[rows[part]].tocsr()
        weight = np.repeat(weights[part], np.diff(block.indptr))
        squares += np.bincount(block.indices, weight * (block.data - mean[block.indices]) ** 2, mean.size)
        stored += np.bincount(block.indices, weight, mean.size)
    return np.asarray(squares + mean**2 * np.maximum(weights.sum() - stored, 0.0))
