"""Least squares on the gains: the baseline of [ORM, section 6.1], and the start w₀ of the nonconvex bounds."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional
from rankopt.rankers.base import LinearRanker

Floats = NDArray[np.float64]

TARGETS = ("gain", "grade")


class RegressionRanker(LinearRanker):
    """Least squares: min over w and β of `Σ_q v_q Σ_{j in q} (t_j - wᵀx_j - β)² + α ‖w‖²`.

    v_q is the weight of the query (as given, 1 by default), t_j the target of the document. β orders nothing and is
    dropped. Where the solution is not unique, the one of least norm is taken, each feature measured in units of its own
    deviation, so weights do not depend on the order of features and constant features get weight 0.

    alpha: α >= 0, the ridge, in the units of `sklearn.linear_model.Ridge`.
    target: `"gain"`, the gain b(y)_j of `measure` (for nDCG divided by the best DCG of the query), or `"grade"`, the
    relevance y_j itself as in [ORM, section 6.1]; measures without gains (AP, ERR) leave only the latter.
    measure: what `score` means, and the gains; a measure of `rankopt.measures` or its notation.
    """

    def __init__(self, alpha: float = 0.0, *, target: str = "gain", measure: Any = "nDCG@10") -> None:
        self.alpha = alpha
        self.target = target
        self.measure = measure

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        if evaluation is not None:
            raise OptionError("RegressionRanker cannot use eval_set because it chooses nothing; leave it out.")
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise OptionError(f"alpha = {self.alpha} is not a ridge; it must be finite and >= 0.")
        rows = np.repeat(weights, np.diff(queries.offsets))
        self.coef_ = least_squares(queries.features, self._targets(queries), rows, float(self.alpha))

    def _targets(self, queries: Queries) -> Floats:
        if self.target not in TARGETS:
            raise OptionError(f"target = {self.target!r} is unknown; it is one of {', '.join(map(repr, TARGETS))}.")
        relevance = np.asarray(queries.relevance, dtype=np.float64)
        if self.target == "grade":
            return relevance
        measure = parse(self.measure)
        if not isinstance(measure, Positional):
            raise OptionError(f"{measure} has no gains to regress on because it is not positional; use target='grade'.")
        return np.asarray(measure.gain(relevance, queries.offsets))


def least_squares(features: Any, targets: Floats, weights: Floats, alpha: float) -> Floats:
    """The w (d,) of min over w and β of `Σ_j weights_j (targets_j - wᵀx_j - β)² + α ‖w‖²`.

    features (N, d) dense or CSR, targets (N,), weights (N,) >= 0, not all 0. Columns are centred and scaled to norm 1
    first, so features of 1e-9 and 1e9 side by side lose no digits. Dense data is solved by singular values, CSR by LSMR
    without being made dense.
    """
    total = weights.sum()
    root = np.sqrt(weights)
    mean = np.asarray(weights @ features).ravel() / total
    residual = root * (targets - weights @ targets / total)
    if hasattr(features, "tocsr"):
        return _sparse(features.tocsr().astype(np.float64, copy=False), residual, root, mean, alpha)
    centred = root[:, None] * (features - mean)
    scale = _scale(np.sqrt(np.einsum("ij,ij->j", centred, centred)), np.abs(mean) * np.sqrt(total), len(features))
    centred *= scale
    if alpha:
        centred = np.vstack([centred, np.diag(np.sqrt(alpha) * scale)])
        residual = np.concatenate([residual, np.zeros_like(mean)])
    solution = np.linalg.lstsq(centred, residual, rcond=None)[0]
    return np.asarray(solution * scale)


def _scale(norms: Floats, sizes: Floats, n: int) -> Floats:
    # A constant column is left with rounding of its mean only; scaled up it would be noise with a large weight.
    varies = norms > 4 * np.finfo(np.float64).eps * np.sqrt(n) * sizes
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=varies & (norms > 0))


def _sparse(features: Any, residual: Floats, root: Floats, mean: Floats, alpha: float) -> Floats:
    from scipy.sparse.linalg import LinearOperator, lsmr

    n, d = features.shape
    # Σ root² (x - mean)² without the dense difference: entries that are stored, then the zeros between them.
    deviations = features.copy()
    deviations.data = (deviations.data - mean[deviations.indices]) ** 2
    stored = features.copy()
    stored.data = np.ones_like(stored.data)
    squares = root**2 @ deviations + mean**2 * np.maximum((root**2).sum() - root**2 @ stored, 0.0)
    scale = _scale(np.sqrt(squares), np.abs(mean) * np.sqrt((root**2).sum()), n)
    ridge = np.sqrt(alpha) * scale

    def forward(z: Floats) -> Floats:
        w = scale * z.ravel()
        return np.concatenate([root * (features @ w - mean @ w), ridge * z.ravel()])

    def backward(r: Floats) -> Floats:
        rows, columns = root * r.ravel()[:n], r.ravel()[n:]
        return np.asarray(scale * (features.T @ rows - mean * rows.sum()) + ridge * columns)

    operator = LinearOperator((n + d, d), matvec=forward, rmatvec=backward, dtype=np.float64)
    limit = 20 * max(d, 100)
    solution, stopped = lsmr(
        operator, np.concatenate([residual, np.zeros(d)]), atol=1e-13, btol=1e-13, conlim=0.0, maxiter=limit
    )[:2]
    if stopped == 7:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"Least squares did not settle in {limit} iterations; raise alpha or scale the features.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return np.asarray(solution * scale)
