"""Weighted least squares with an unpenalized intercept for each query, for dense or sparse features.

Normal equations are refined to full precision if they are far from singular; else the rows are factorized (QR, SVD), or
iterated on if they are sparse and wide (LSMR). Columns whose squares exceed double precision are scaled by powers of 2:

>>> column_units(np.array([[1.0, 3e200], [2.0, 0.0]]))
array([1.00000000e+000, 3.26605044e-201])
>>> column_units(np.array([[1.0, 3e20], [2.0, 0.0]])) is None
True

`spread` is Σ_j weights_j ‖x_j - x̄_q‖², the trace of the centered Gram matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from formulations.arrays import Floats, Ints
from formulations.parallel import share
from rankopt.scorers.linear import PART, row_scores, row_sums

ROWS = 1024  # rows that are made dense and centered at a time
BLOCKS = 32  # blocks that one thread reduces in sequence; the number of jobs depends on the data alone
SINGULAR = 1e-9  # smallest eigenvalue of the scaled Gram matrix, relative to its largest, that is considered accurate
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class CenteredNormalEquations:
    """The matrix A with the rows root_i (x_i - mean), x_i row rows[i] of the features, as an implicit operator.

    mean: (d,), or one mean for each group (g, d) with row i in group group[i].
    """

    features: Any
    rows: Ints
    root: Floats
    mean: Floats
    group: Ints | None = None

    def blocks(self, job: int) -> Iterator[tuple[slice, Floats]]:
        """The blocks of one job: which rows, and A there."""
        for start in range(job * ROWS * BLOCKS, min(len(self.rows), (job + 1) * ROWS * BLOCKS), ROWS):
            part = slice(start, start + ROWS)
            block = self.features[self.rows[part]]
            block = block.toarray() if hasattr(block, "toarray") else block
            mean = self.mean if self.group is None else self.mean[self.group[part]]
            yield part, self.root[part, None] * (block - mean)

    def reduced(self, reduce: Callable[[Iterator[tuple[slice, Floats]]], Floats]) -> list[Floats]:
        """`reduce` of the blocks of each job, in order. Each job keeps to one thread, of the linear algebra too."""
        jobs = -(-len(self.rows) // (ROWS * BLOCKS))
        found: list[Floats] = [np.empty(0)] * jobs

        def run(job: int) -> None:
            found[job] = reduce(self.blocks(job))

        with _blas().limit(limits=1, user_api="blas"):
            share(jobs, run)
        return found


@cache
def _blas() -> Any:
    """The libraries of linear algebra that are loaded: looking for them takes as long as a small problem."""
    return ThreadpoolController()


def by_normal_equations(
    matrix: CenteredNormalEquations, right: Floats, rounding: Floats, alpha: float | Floats
) -> Floats | None:
    """The w of min ‖A w - right‖² + α‖w‖², α a scalar or one value a column; None if A, scaled, is (nearly) singular.

    One pass over the data computes AᵀA, at a small part of the cost of a QR factorization. Iterative refinement with
    the residual, recomputed from the data, then corrects w until it is stationary: one pass for each iteration.
    rounding (d,): column norms up to which columns count as constant; those get 0.
    """

    def gram(blocks: Iterator[tuple[slice, Floats]]) -> Floats:
        return np.asarray(sum(block.T @ block for _, block in blocks))

    def gradient(blocks: Iterator[tuple[slice, Floats]]) -> Floats:
        return np.asarray(sum(block.T @ (right[part] - block @ solved) for part, block in blocks))

    products = np.sum(matrix.reduced(gram), axis=0)
    squares = np.diagonal(products)
    used = np.flatnonzero((np.sqrt(squares) > rounding) & (squares >= np.finfo(np.float64).tiny))
    solved = np.zeros(squares.size)
    if not used.size:
        return solved
    ridge = np.broadcast_to(alpha, squares.shape)[used]
    scale = 1.0 / np.sqrt(squares[used] + ridge)
    system = products[np.ix_(used, used)] * scale * scale[:, None] + np.diag(ridge * scale**2)
    size = np.linalg.eigvalsh(system)
    if size[0] <= SINGULAR * size[-1]:
        return None
    factor, scaled = cho_factor(system), np.zeros(used.size)
    for _ in range(ROUNDS):
        solved[used] = scale * scaled
        left = np.sum(matrix.reduced(gradient), axis=0)[used] - ridge * solved[used]
        step = cho_solve(factor, left * scale)
        scaled = scaled + step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(scaled):
            solved[used] = scale * scaled
            return solved
    return None


SAFE = 300  # magnitudes of 2**-SAFE to 2**SAFE have squares that can be summed

DEEPEST = 1000
"""A column below 2**-DEEPEST would need weights beyond double precision; it counts as constant, as it did."""


def column_units(features: Any) -> Floats | None:
    """(d,) what to multiply the columns with, None where all are well as they are: one power of two for all columns if
    that helps all, so that their sizes stay in proportion; else one for each that needs it.

    features: dense or CSR.
    """
    largest = np.frexp(largest_magnitudes(features))[1]
    empty = largest < -DEEPEST  # columns of zeros among them
    if ((np.abs(largest) <= SAFE) | empty).all():
        return None
    top = largest[~empty].max()
    if (np.abs(largest - top)[~empty] <= SAFE).all():
        return np.full(largest.size, float(np.ldexp(1.0, -top)))
    return np.ldexp(1.0, np.where((np.abs(largest) <= SAFE) | empty, 0, -largest))


def in_units(features: Any, units: Floats) -> Any:
    """A copy of the features with their columns multiplied."""
    if hasattr(features, "tocsr"):
        scaled = features.astype(np.float64)
        scaled.data = scaled.data * units[scaled.indices]
        return scaled
    return features * units


def largest_magnitudes(features: Any) -> Floats:
    """(d,) the largest magnitude of each column."""
    largest = np.zeros(features.shape[1])
    if hasattr(features, "tocsr"):
        for start in range(0, features.data.size, PART << 6):
            part = slice(start, start + (PART << 6))
            np.maximum.at(largest, features.indices[part], np.abs(features.data[part]))
        return largest
    for start in range(0, features.shape[0], PART):
        np.maximum(largest, np.abs(features[start : start + PART]).max(axis=0), out=largest)
    return largest


NUMBERS = 1 << 22  # sums of parts hold no more numbers than this
WIDE = 512  # features above which sparse data is solved by iteration, without any dense part of it


def least_squares(
    features: Any,
    targets: Floats,
    weights: Floats,
    alpha: float | Floats,
    rows: Ints | None = None,
    offsets: Ints | None = None,
) -> Floats:
    """The w (d,) of min over w and β of `Σ_j weights_j (targets_j - wᵀx_j - β)² + α ‖w‖²`, α a scalar or (d,).

    features: dense or CSR. targets: (N,). weights: (N,) >= 0, not all 0. x_j is row j of the features, or row rows[j].
    offsets (m + 1,) splits the rows into queries with an intercept β each; weights are then equal within a query.
    Columns are centered and scaled to norm 1, so that features of 1e-9 and 1e9 lose no digits. If w is not unique, the
    scaled solution of minimum norm is returned; constant features get 0. Solved by refined normal equations; if these
    are nearly singular, by QR of row blocks and the SVD of the triangle. Sparse data of more than WIDE features are
    solved by LSMR, with a ConvergenceWarning if it did not converge. Columns are rescaled if squares overflow.
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
    matrix, residual = centered(features, targets, weights, rows, offsets)
    # What rounding of the mean leaves of a constant column: scaled up it would be noise with a large weight.
    counted = np.array([weights.sum()]) if offsets is None else np.add.reduceat(weights, offsets[:-1])
    size = np.sqrt(counted @ np.atleast_2d(matrix.mean) ** 2)
    rounding = 4 * np.finfo(np.float64).eps * np.sqrt(weights.size) * size
    solved = by_normal_equations(matrix, residual, rounding, alpha)
    return _by_singular_values(matrix, residual, rounding, alpha) if solved is None else solved


def centered(
    features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints | None
) -> tuple[CenteredNormalEquations, Floats]:
    """The rows less their mean, and the targets (N,) less theirs, times the roots of the weights: β is eliminated."""
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
    """The same w by R and Qᵀ residual of a QR factorization, which keeps all digits."""

    def reduced(factor: Floats, blocks: Iterator[Floats]) -> Floats:
        for block in blocks:
            factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
        return factor

    none = np.empty((0, rounding.size + 1))
    triangles = matrix.reduced(
        lambda blocks: reduced(none, (np.column_stack([block, residual[part]]) for part, block in blocks))
    )
    combined = reduced(none, iter(triangles))
    triangle, right = combined[:, :-1], combined[:, -1]
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
            f"Least squares did not settle in {limit} iterations; increase alpha or remove nearly collinear features.",
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


def spread(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> float:
    """Σ_j weights_j ‖x_j - x̄_q‖², x_j row rows[j] of the features (dense or CSR), x̄_q the mean of its query.

    weights (N,) >= 0, equal inside a query; offsets (m + 1,) cuts the rows into queries. Infinite or NaN where squares
    of the features leave double precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if hasattr(features, "tocsr"):
            own, apart, middle, of_query = _sparse_parts(features.tocsr(), weights, rows, offsets)
            return float(np.repeat(weights, np.diff(own.indptr)) @ apart**2 + of_query @ middle.data**2)
        matrix, _ = centered(features, np.zeros(weights.size), weights, rows, offsets)
        parts = matrix.reduced(lambda blocks: np.array([sum(float(np.vdot(block, block)) for _, block in blocks)]))
        return float(np.sum(parts))


def spreads(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> Floats:
    """(d,) the part of each feature: Σ_j weights_j (x_j - x̄_q)², 0 if that is rounding error."""
    means = row_sums(features, rows, np.repeat(1.0 / np.diff(offsets), np.diff(offsets)), offsets)
    counted = np.add.reduceat(weights, offsets[:-1])
    least = (4 * np.finfo(np.float64).eps) ** 2 * weights.size * (counted @ means**2)
    if hasattr(features, "tocsr"):
        own, apart, middle, of_query = _sparse_parts(features.tocsr(), weights, rows, offsets)
        found = np.bincount(own.indices, np.repeat(weights, np.diff(own.indptr)) * apart**2, means.shape[1])
        found += np.bincount(middle.indices, of_query * middle.data**2, means.shape[1])
    else:
        matrix, _ = centered(features, np.zeros(weights.size), weights, rows, offsets)
        parts = matrix.reduced(lambda blocks: sum((block**2).sum(axis=0) for _, block in blocks))
        found = np.sum(parts, axis=0)
    return np.where(found > least, found, 0.0)


def _sparse_parts(features: Any, weights: Floats, rows: Ints, offsets: Ints) -> tuple[Any, Floats, Any, Floats]:
    """Without any dense part of the features: the rows as a CSR table less the mean of their query, the means as
    another table, and the weight of the documents without an entry where the mean has one."""
    from scipy.sparse import csr_array

    own = features[rows].astype(np.float64)
    own.sum_duplicates()
    sizes, wide = np.diff(offsets), own.shape[1]
    shares = csr_array((np.repeat(1.0 / sizes, sizes), np.arange(rows.size), offsets), (sizes.size, rows.size))
    middle = shares @ own
    middle.sort_indices()
    counts = np.diff(middle.indptr)
    cell = np.repeat(np.arange(sizes.size), counts) * wide + middle.indices
    query = np.repeat(np.repeat(np.arange(sizes.size), sizes), np.diff(own.indptr))
    at = np.searchsorted(cell, query * wide + own.indices)
    apart = own.data - middle.data[at]
    absent = np.repeat(sizes, counts) - np.bincount(at, minlength=cell.size)
    of_query = np.repeat(weights[offsets[:-1]], counts) * absent
    return own, apart, middle, of_query
