"""Kernels as features: rows whose inner products are those of a kernel, so that every linear ranker learns with it."""
# mypy: allow-subclassing-any
# (scikit-learn carries no types: its base classes are `Any` to a type checker)

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rankopt.data.canonical_order import fingerprints
from rankopt.data.validation import Features, as_csr, is_sparse
from rankopt.errors import DataError, OptionError
from rankopt.fitting import AtomicFitMixin

Floats = NDArray[np.float64]

MOST = 16_384
"""Landmarks, at the most: the kernel of these with themselves takes 2 GiB."""

BLOCK = 4096
"""Rows that are transformed at a time: their kernel with the landmarks is held beside the result."""

INDEFINITE = 1e-8
"""A negative eigenvalue of this size, beside the largest, is none of rounding."""


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AtomicFitMixin, BaseEstimator):
    """φ(x) = Λ^(-1/2) Uᵀ k(L, x), where k(L, L) = U Λ Uᵀ over the landmarks L, rows of `fit`.

    φ(x)ᵀφ(z) = k(x, L) k(L, L)⁺ k(L, z). With all rows of `fit` as landmarks that is k(x, z) wherever x or z is one of
    them: a linear ranker on φ is the ranker with this kernel, with the same planes, dual program and scores. Fewer
    landmarks give Nyström's approximation, below the kernel (k - φᵀφ is positive semidefinite) and equal to it on L.

    Args:
        kernel: "rbf", "poly", "laplacian", "cosine", "chi2", or another name of `sklearn.metrics.pairwise`, or a
            function of two tables (a, d), (b, d) to all k(x, z) (a, b), such as those of that module.
        gamma, degree, coef0: of the kernels that scikit-learn names; gamma=None is 1 / d there, and 1 for "chi2".
        landmarks: how many rows; None: all different rows, 16,384 at the most.
        random_state: which ones are drawn. The draw follows the content of rows alone: it is the same however they are
            ordered and repeated, and the features are then the same to rounding.

    Eigenvalues below L ε times the largest are rounding and give no feature, so there are at most as many features as
    landmarks. O(L³ + N L²) time; N L numbers. Dense or CSR in, float64 out. Bring features to one scale first.

    Fitted: `landmarks_` (L, d), `components_` (L, r), `eigenvalues_` (r,) rising, `n_features_in_`.

    Raises OptionError for options that cannot work, DataError for a kernel that is no inner product on these rows
    (a negative eigenvalue), or not finite. Source: Williams and Seeger, Using the Nyström method to speed up kernel
    machines, 2001. `sklearn.kernel_approximation.Nystroem` draws rows by their place and keeps eigenvalues of rounding.
    """

    landmarks_: Any
    components_: Floats
    eigenvalues_: Floats

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        landmarks: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks from the rows of X (N, d) and decompose their kernel."""
        self.landmarks_ = self._drawn(self._read(X, reset=True))
        gram = self._kernel(self.landmarks_, self.landmarks_)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        if values[0] < -INDEFINITE * max(values[-1], 0.0):
            raise DataError(
                f"kernel {self.kernel!r} cannot give features because it is no inner product on these rows (its "
                f"eigenvalues run from {values[0]:.3g} to {values[-1]:.3g}); use 'rbf', 'poly' with coef0 >= 0, or "
                "another positive semidefinite kernel."
            )
        kept = values > values.size * np.finfo(float).eps * max(values[-1], 0.0)
        if not kept.any():  # a kernel that is 0 everywhere: one feature, 0 everywhere
            kept[-1], values[-1] = True, np.inf
        self.eigenvalues_ = values[kept]
        self.components_ = np.asarray(vectors[:, kept] / np.sqrt(self.eigenvalues_))
        return self

    def transform(self, X: Any) -> Floats:
        """φ (N, r) of the rows of X (N, d)."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        made = np.empty((table.shape[0], self.components_.shape[1]))
        for start in range(0, table.shape[0], BLOCK):
            made[start : start + BLOCK] = self._kernel(table[start : start + BLOCK], self.landmarks_) @ self.components_
        return made

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def _drawn(self, table: Features) -> Features:
        """The landmarks, in an order that follows their content."""
        wanted = self.landmarks
        if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int | np.integer) or wanted < 1):
            raise OptionError(
                f"landmarks = {wanted!r} is no number of rows; give a whole number >= 1, or None for all."
            )
        exact = fingerprints(table)
        different = np.unique(exact, return_index=True)[1]
        # The last digits of a row depend on the machine that worked it out, and none should draw otherwise for that.
        different = different[np.lexsort((exact[different], fingerprints(_coarse(table))[different]))]
        count = different.size if wanted is None else min(int(wanted), different.size)
        if count > MOST:
            raise OptionError(
                f"{count} landmarks are too many: their kernel takes {8e-9 * count * count:.0f} GB; pass "
                f"landmarks=1000, or up to {MOST}."
            )
        if count < different.size:
            drawn = check_random_state(self.random_state).choice(different.size, count, replace=False)
            different = different[np.sort(drawn)]
        return table[different]

    def _kernel(self, x: Features, z: Features) -> Floats:
        """k (a, b) of the rows of two tables."""
        if callable(self.kernel):
            found = self.kernel(x, z)
        elif self.kernel in kernel_metrics():
            options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            found = pairwise_kernels(x, z, metric=self.kernel, filter_params=True, **options)
        else:
            raise OptionError(
                f"kernel cannot be {str(self.kernel)[:80]!r}; it is a function of two tables, or one of "
                f"{', '.join(sorted(kernel_metrics()))}."
            )
        values = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
        if values.shape != (x.shape[0], z.shape[0]):
            raise DataError(
                f"the kernel of {x.shape[0]} and {z.shape[0]} rows has shape {values.shape}; a function takes two "
                "tables and gives one number for each pair of rows."
            )
        if not np.isfinite(values).all():
            raise DataError(f"kernel {self.kernel!r} is not finite on these rows; scale the features, or lower degree.")
        return values

    def _read(self, X: Any, *, reset: bool) -> Features:
        return validate_data(
            self,
            as_csr(X) if is_sparse(X) else X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel not in ("laplacian", "chi2", "additive_chi2")
        return tags


def _coarse(table: Features) -> Features:
    """The table in whole 2⁻²⁴ of its largest number or so: of a power of two near it, which does not jump at 1."""
    values = table.data if is_sparse(table) else table
    if not values.size:
        return table
    rounded = np.rint(np.ldexp(values, 24 - int(np.frexp(0.7 * np.abs(values).max())[1]))) + 0.0
    if not is_sparse(table):
        return np.asarray(rounded)
    made = table.copy()
    made.data = rounded
    made.eliminate_zeros()
    return made
