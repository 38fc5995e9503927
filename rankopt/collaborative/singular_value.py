"""‖Ψ‖₂ from above, proved in floats: a Cholesky factor of t I - ΨᵀΨ is a proof that √t is not below it.

An iteration finds *a* singular value; a small residual does not prove that it is the largest one. Therefore:

1. σ̂ is estimated (`top_pairs`), G = ΨᵀΨ is formed on the smaller side, n wide, as Ĝ;
2. t = σ̂² (1 + a tiny step), and LAPACK computes the Cholesky factor of Â = fl(t I - Ĝ); where there is none, the step
   is made longer;
3. where the factor exists, what rounding may have hidden is added, and τ is the root, rounded up.

What is added, u = 2⁻⁵³, γ_k = k u / (1 - k u), Ψ scaled by a power of two so that its largest entry is in [1, 2):

    ‖Ĝ - G‖₂ <= γ_k min(‖Ψ‖_F², ‖|Ψ|‖₂²)    an entry is a sum of at most k products, in any order, k the longest
                                            column: |Ĝ - G| <= γ_k |Ψ|ᵀ|Ψ|, whose norm is below both
    ‖Â - (t I - Ĝ)‖₂ <= u t                 one subtraction on the diagonal, whose result a factor needs in [0, t]
    λ_min(Â) >= -φ n t,  φ = γ/(1 - γ)      γ = γ_{n+16}: a factor R̂ that is computed to its end has R̂ᵀR̂ = Â + ΔA,
                                            |ΔA| <= γ |R̂ᵀ||R̂| [Higham 2002, Theorem 10.3, for any order of the sums;
                                            16 instead of 1 allows for reciprocals instead of quotients], so
                                            ‖r̂_i‖² <= â_ii / (1 - γ), |Δa_ij| <= φ √(â_ii â_jj) and ‖ΔA‖₂ <= φ tr Â
                                            [Demmel 1989; Rump 2006], tr Â <= n t

    ‖Ψ‖₂² = λ_max(G) <= t + (u + φ n) t + γ_k min(...)

This takes IEEE double precision and a BLAS that sums products as they are (in any order, fused or not; no Strassen).
What underflow loses is less than 2⁻⁹⁶⁰. With n = 1,682 the surplus is 1e-9 of τ, with n = 5,000 7e-9.

Where the smaller side is wider than that, only the bounds by sizes are proved.

>>> largest_singular_value(csr_array(np.array([[3.0, 4.0], [4.0, -3.0]])))
SingularValue(5 proved by cholesky, estimate 5)

Upper bounds of ‖Ψ‖₂ by the sizes of its entries alone:

    ‖Ψ‖₂ <= ‖Ψ‖_F
    ‖Ψ‖₂² <= ‖ |Ψ| ‖₂² <= max_j (|Ψ|ᵀ|Ψ| x)_j / x_j     for every x > 0          [Collatz 1942, Schur 1911]

x = 1 gives at most ‖Ψ‖₁ ‖Ψ‖_∞; the better x, the closer to ‖ |Ψ| ‖₂, and x ← |Ψ|ᵀ|Ψ| x is better each time. What signs
take away from ‖ |Ψ| ‖₂ is not seen.

Rounding. All terms are >= 0, so a sum of k computed products is within (1 ± u)^(k + 1) of the true one, u = 2⁻⁵³; both
products, the quotient and what is added here stay within 1 + 2u (k + k' + 16), k, k' the longest row and column.

`top_pairs`: where factors start, and where λ leaves none. For factors near zero J changes by ⟨Ψ, UMᵀ⟩ + (λ/2)(‖U‖² +
‖M‖²), which falls along singular vectors of -Ψ of values above λ = √(λ_U λ_M), and along no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter, sqrt
from typing import Any, Literal

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_array

from formulations.arrays import Floats
from rankopt.collaborative.linear_algebra import UNIT
from rankopt.errors import DataError

TIMES = 24  # turns of x ← |Ψ|ᵀ|Ψ| x
LEAST = 1e-9  # of the largest entry of x; smaller ones are raised to this
TINY = 2.0**-960  # more than all products below the smallest normal double lose, if the largest entry is near 1


def longest(psi: csr_array) -> tuple[int, int]:
    """How many entries the longest row and the longest column have."""
    columns = np.bincount(psi.indices, minlength=1)
    return int(np.diff(psi.indptr).max(initial=0)), int(columns.max(initial=0))


def frobenius_bound(psi: csr_array) -> float:
    """More than ‖Ψ‖_F², of a matrix whose largest entry is near 1 or 0."""
    squares = float((psi.data * psi.data).sum())
    return squares * (1.0 + 2.0 * UNIT * (float(psi.nnz) + 16.0)) + TINY


def weighted_bound(psi: csr_array) -> float:
    """More than ‖ |Ψ| ‖₂², of a matrix whose largest entry is near 1 or 0."""
    size = abs(psi)
    back, x, least = csr_array(size.T), np.ones(psi.shape[1]), np.inf
    for _ in range(TIMES):
        grown = back @ (size @ x)
        largest = float((grown / x).max(initial=0.0))
        better = largest < least * (1.0 - 1e-4)
        least = min(least, largest)
        if not better or largest == 0.0:
            break
        x = np.maximum(grown / grown.max(), LEAST)
    return least * (1.0 + 2.0 * UNIT * (sum(longest(psi)) + 16)) + TINY


WIDEST = 5000  # smaller sides up to this wide are proved by a factor: two dense matrices of them are held


@dataclass(frozen=True, eq=False)
class SingularValue:
    """bound >= ‖Ψ‖₂, and by which proof; estimate: what an iteration found, below it or a little above by rounding."""

    bound: float
    proof: Literal["cholesky", "norms"]
    estimate: float

    def __repr__(self) -> str:
        return f"SingularValue({self.bound:.10g} proved by {self.proof}, estimate {self.estimate:.10g})"


def largest_singular_value(psi: csr_array, *, widest: int = WIDEST) -> SingularValue:
    """A number that is not below ‖Ψ‖₂, the proof of it, and an estimate. psi: (rows, columns), sparse. widest: up to
    which width of the smaller side the proof is a Cholesky factor. Raises DataError for entries that are not finite."""
    psi = csr_array(psi, dtype=np.float64)
    if not np.isfinite(psi.data).all():
        raise DataError("the singular values of a matrix with NaN or infinite entries are not defined; leave them out.")
    largest = float(np.abs(psi.data).max(initial=0.0))
    if largest == 0.0:
        return SingularValue(0.0, "norms", 0.0)
    unit = 2.0 ** np.floor(np.log2(largest))
    psi = csr_array((psi.data / unit, psi.indices, psi.indptr), shape=psi.shape)
    estimate = float(top_pairs(psi, 1)[1][0])
    norms = min(frobenius_bound(psi), weighted_bound(psi))
    proved = inf
    if min(psi.shape) <= widest:
        proved = _factor_bound(csr_array(psi.T) if psi.shape[1] > psi.shape[0] else psi, estimate, norms)
    bound = sqrt(min(proved, norms)) * (1.0 + 4.0 * UNIT) * unit
    proof: Literal["cholesky", "norms"] = "cholesky" if proved < norms else "norms"
    return SingularValue(nextafter(bound, inf), proof, estimate * unit)


def _factor_bound(psi: csr_array, estimate: float, norms: float) -> float:
    """More than ‖Ψ‖₂², infinite where no factor was found below `norms`."""
    n = psi.shape[1]
    gram = (psi.T @ psi).toarray()  # its rows are its columns; one of the two triangles is read
    surplus = _gamma(longest(psi)[1] + 16) * norms + TINY
    phi = _gamma(n + 16) / (1.0 - _gamma(n + 16))
    step = 8.0 * phi * n + 16.0 * UNIT
    while (t := estimate * estimate * (1.0 + step) + 2.0 * surplus) < norms:
        shifted = -gram
        shifted[np.diag_indices(n)] += t
        _, failed = dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)  # as columns: in-place
        if failed == 0:
            return float((t + (UNIT + phi * n) * t + surplus) * (1.0 + 16.0 * UNIT))
        step *= 4.0
    return inf


def _gamma(terms: int) -> float:
    """γ_k, and a little more."""
    return terms * UNIT / (1.0 - terms * UNIT) * (1.0 + 4.0 * UNIT)


SMALL = 256  # matrices whose smaller side is at most this, or three times the wanted pairs, are decomposed fully


def scaled(table: Any, rows: Floats, columns: Floats) -> Any:
    """A CSR table with row u divided by √rows[u], column j by √columns[j]; itself where these are 1."""
    if (rows == 1.0).all() and (columns == 1.0).all():
        return table
    found = table.copy()
    found.data *= np.repeat(1.0 / np.sqrt(rows), np.diff(table.indptr))
    found.data *= (1.0 / np.sqrt(columns))[table.indices]
    return found


def scaled_slopes(problem: Any, now: Any, rows: Floats, columns: Floats) -> Any:
    """The dual state Ψ of a `ModelState`, scaled like that: a table, or the operator S + α XYᵀ."""
    from scipy.sparse.linalg import aslinearoperator

    table = scaled(problem.rated.table(now.slopes), rows, columns)
    if not problem.unrated:
        return table
    left, right = now.factors.sides()
    left, right = problem.unrated * left / np.sqrt(rows)[:, None], right / np.sqrt(columns)[:, None]
    return aslinearoperator(table) + aslinearoperator(left) @ aslinearoperator(right.T)


def top_pairs(table: Any, count: int) -> tuple[Floats, Floats, Floats]:
    """Left (n, count), values (count,) falling, right (m, count) of the largest singular values of a CSR table or a
    linear operator. Values are iterative estimates from below. Pairs beyond the smaller side are 0."""
    n, m = table.shape
    left, values, right = np.zeros((n, count)), np.zeros(count), np.zeros((m, count))
    k = min(count, n, m)
    small = min(n, m) <= max(SMALL, 3 * count)
    if small and not hasattr(table, "data"):
        table = csr_array(table @ np.eye(m))
    if not k or (hasattr(table, "data") and not np.any(table.data)):
        return left, values, right
    if small:
        first, size, second = _dense_svd(table, k)
    else:
        from scipy.sparse.linalg import LinearOperator, svds

        back = table.T  # shares its memory, which svds' own transpose does not
        product = LinearOperator(table.shape, matvec=lambda x: table @ x, rmatvec=lambda x: back @ x, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=min(n, m))  # of the canonical order: nobody's names matter
        first, size, second = svds(product, k=k, v0=start, solver="arpack")
        order = np.argsort(-size, kind="stable")
        first, size, second = first[:, order], size[order], second[order].T
    sign = np.where(np.abs(first).max(axis=0) == first.max(axis=0), 1.0, -1.0)
    left[:, :k], values[:k], right[:, :k] = first * sign, size, second * sign
    return left, values, right


def _dense_svd(table: Any, k: int) -> tuple[Floats, Floats, Floats]:
    """By the eigenvectors of the smaller of ΨΨᵀ and ΨᵀΨ; pairs that rounding hides have the value 0."""
    if table.shape[0] > table.shape[1]:
        right, size, left = _dense_svd(table.T.tocsr(), k)
        return left, size, right
    square, vectors = np.linalg.eigh((table @ table.T).toarray())
    first = vectors[:, ::-1][:, :k]
    size = np.sqrt(np.maximum(square[::-1][:k], 0.0))
    size[size <= 1e-7 * size[0]] = 0.0
    second = np.divide(table.T @ first, size, out=np.zeros((table.shape[1], k)), where=size > 0)
    return first, size, second
