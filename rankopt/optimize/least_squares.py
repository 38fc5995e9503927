"""Weighted least squares with an intercept that is thrown away, dense or sparse."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.optimize.column_units import column_units, in_units
from rankopt.optimize.normal_equations import CenteredNormalEquations, by_normal_equations
from rankopt.scorers.linear import PART, row_scores, row_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUMBERS = 1 << 22
"""Sums of parts hold no more numbers than this."""

WIDE = 512
"""Features above which sparse data is solved by iteration, without any dense part of it."""


def least_squares(
    features: Any,
    targets: Floats,
    weights: Floats,
    alpha: float | Floats,
    rows: Ints | None = None,
    offsets: Ints | None = None,
) -> Floats:
    """The w (d,) of min over w and β of `Σ_j weights_j (targets_j - wᵀx_j - β)² + α ‖w‖²`, α one number or (d,).

    features dense or CSR, targets (N,), weights (N,) >= 0, not all 0; x_j is row j of the features, or row rows[j].
    offsets (m + 1,) cuts the rows into queries that have a β each; weights are equal inside a query then.
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
        return units * _in_range(in_units(features, units), targets, weights, ridge, rows, offsets)
    return _in_range(features, targets, weights, alpha, rows, offsets)


def _in_range(
    features: Any, targets: Floats, weights: Floats, alpha: float | Floats, rows: Ints | None, offsets: Ints | None
) -> Floats:
    """The same where squares of features are within double precision."""
    rows = np.arange(weights.size) if rows is None else rows
    if hasattr(features, "tocsr") and features.shape[1] > WIDE:
        return _by_iteration(features.tocsr(), rows, targets, weights, alpha, offsets)
    matrix, residual = centred(features, targets, weights, rows, offsets)
    # What rounding of the mean leaves of a constant column: scaled up it would be noise with a large weight.
    counted = np.array([weights.sum()]) if offsets is None else np.add.reduceat(weights, offsets[:-1])
    size = np.sqrt(counted @ np.atleast_2d(matrix.mean) ** 2)
    rounding = 4 * np.finfo(np.float64).eps * np.sqrt(weights.size) * size
    solved = by_normal_equations(matrix, residual, rounding, alpha)
    return _by_singular_values(matrix, residual, rounding, alpha) if solved is None else solved


def centred(
    features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints | None
) -> tuple[CenteredNormalEquations, Floats]:
    """The rows less their mean, and the targets (N,) less theirs, both times the roots of the weights: what is left of
    the problem once each β is eliminated."""
    root = np.sqrt(weights)
    if offsets is None:
        parts = np.append(np.arange(0, root.size, PART), root.size)
        mean = row_sums(features, rows, weights, parts).sum(axis=0) / weights.sum()
        return CenteredNormalEquations(features, rows, root, mean), root * (targets - weights @ targets / weights.sum())
    sizes = np.diff(offsets)
    shares = np.repeat(1.0 / sizes, sizes)
    means = row_sums(features, rows, shares, offsets)
    of_query = np.repeat(np.arange(sizes.size), sizes)
    middle = np.add.reduceat(shares * targets, offsets[:-1])
    return CenteredNormalEquations(features, rows, root, means, of_query), root * (targets - middle[of_query])


def _by_singular_values(
    matrix: CenteredNormalEquations, residual: Floats, rounding: Floats, alpha: float | Floats
) -> Floats:
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
    features: Any, rows: Ints, targets: Floats, weights: Floats, alpha: float | Floats, offsets: Ints | None
) -> Floats:
    from scipy.sparse.linalg import LinearOperator, lsmr

    n, d, root = len(rows), features.shape[1], np.sqrt(weights)
    size = max(PART, -(-n * d // NUMBERS))
    parts, turns = np.append(np.arange(0, n, size), n), np.argsort(rows)
    total = weights.sum()
    mean = row_sums(features, rows, weights, parts).sum(axis=0) / total
    rounding = 4 * np.finfo(np.float64).eps * np.sqrt(total * n) * np.abs(mean)
    scale = _scale(np.sqrt(_squares(features, rows, weights, mean)), rounding)
    ridge = np.sqrt(alpha) * scale
    cut = np.array([0, n]) if offsets is None else offsets
    sums = np.add.reduceat(weights, cut[:-1])

    def middled(values: Floats) -> Floats:
        """The values less their mean in each query, or of all."""
        middle = np.divide(np.add.reduceat(weights * values, cut[:-1]), sums, out=np.zeros_like(sums), where=sums > 0)
        return np.asarray(values - np.repeat(middle, np.diff(cut)))

    def forward(z: Floats) -> Floats:
        scores = row_scores(features, rows, scale * z.ravel(), turns)
        return np.concatenate([root * middled(scores), ridge * z.ravel()])

    def backward(r: Floats) -> Floats:
        left = np.divide(r.ravel()[:n], root, out=np.zeros(n), where=root > 0)
        own = weights * middled(left)  # the mean is taken away in the metric of the weights, where that is symmetric
        pulled = row_sums(features, rows, own, parts).sum(axis=0)
        return np.asarray(scale * pulled + ridge * r.ravel()[n:])

    operator = LinearOperator((n + d, d), matvec=forward, rmatvec=backward, dtype=np.float64)
    right = np.concatenate([root * middled(targets), np.zeros(d)])
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
