"""‖Ψ‖₂ from above, proved in floats: a Cholesky factor of t I - ΨᵀΨ is a proof that √t is not below it.

An iteration finds *a* singular value; a small residual does not prove that it is the largest one. Therefore:

1. σ̂ is estimated (`top_pair`), G = ΨᵀΨ is formed on the smaller side, n wide, as Ĝ;
2. t = σ̂² (1 + a tiny step), and LAPACK computes the Cholesky factor of Â = fl(t I - Ĝ);
3. if there is none, LAPACK has met a direction x with xᵀ(t I - G) x <= 0: the iteration starts anew from
   x, and from there sees what it had missed; where that gives nothing, the step is made longer;
4. where the factor exists, what rounding may have hidden is added, and τ is the root, rounded up.

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
products together, the quotient and what is added here stay within 1 + 2u (k + k' + 16), k and k' the longest row and
column.

The iteration is Lanczos bidiagonalization [Golub and Kahan 1965]. Its estimate is from below, and near a singular value
that depends on the start: it never sees what is orthogonal to the start.

`top_pairs`: where factors start, and where λ leaves none. For factors near zero J changes by ⟨Ψ, UMᵀ⟩ + (λ/2)(‖U‖² +
‖M‖²), which falls along a pair of singular vectors of -Ψ where its singular value exceeds λ = √(λ_U λ_M), and along no
direction if none does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
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


STEPS = 48  # columns of a space; then it begins anew from the best vector that it has
SETTLED = 1e-12  # residual, relative to the singular value, at which the pair is found


class SingularPair(NamedTuple):
    """value = leftᵀ Ψ right nearly, left (rows,), right (columns,) of length 1; residual = ‖Ψᵀ left - value right‖."""

    value: float
    left: Floats
    right: Floats
    residual: float


def natural_start(psi: csr_array) -> Floats:
    """(columns,) the length of each column, with the sign of its sum: equivariant to permutations of rows and
    columns, which a random start is not."""
    lengths = np.sqrt(np.asarray(psi.multiply(psi).sum(axis=0)).ravel())
    return np.asarray(np.where(np.asarray(psi.sum(axis=0)).ravel() < 0, -lengths, lengths))


def top_pair(psi: csr_array, start: Floats, rounds: int = 40) -> SingularPair:
    """The largest singular value that is seen from `start`, (columns,), not all 0, with its pair."""
    back = csr_array(psi.T)
    right, length = start / np.linalg.norm(start), psi.shape[1]
    found = SingularPair(0.0, np.zeros(psi.shape[0]), right, 0.0)
    for _ in range(rounds):
        found = _one_space(psi, back, right, min(STEPS, length))
        if found.residual <= SETTLED * found.value:
            break
        right = found.right
    turn = -1.0 if float((found.right * np.abs(found.right)).sum()) < 0 else 1.0  # of the two signs the same each time
    return SingularPair(found.value, turn * found.left, turn * found.right, found.residual)


def _one_space(psi: csr_array, back: csr_array, start: Floats, steps: int) -> SingularPair:
    """The best pair of the space of `start`, of at most so many columns."""
    lefts, rights = np.empty((steps, psi.shape[0])), np.empty((steps, psi.shape[1]))
    bidiagonal, rest, right = np.zeros((steps, steps)), 0.0, start
    used = 0
    for k in range(steps):
        rights[k] = right
        left = psi @ right
        left = _orthogonal(left, lefts[:k])
        along = float(np.linalg.norm(left))
        largest = float(np.abs(bidiagonal).max(initial=0.0))
        if along <= 1e-15 * largest or along == 0.0:  # the space is closed: this column of the small matrix ends it
            used, rest = k + 1, 0.0
            lefts[k] = 0.0
            break
        lefts[k], bidiagonal[k, k] = left / along, along
        right = _orthogonal(back @ lefts[k], rights[: k + 1])
        rest, used = float(np.linalg.norm(right)), k + 1
        if rest <= 1e-15 * max(largest, along):
            rest = 0.0
            break
        right = right / rest
        if k + 1 < steps:
            bidiagonal[k, k + 1] = rest
    small_left, values, small_right = np.linalg.svd(bidiagonal[:used, :used])
    left, right = lefts[:used].T @ small_left[:, 0], rights[:used].T @ small_right[0]
    return SingularPair(float(values[0]), left, right, rest * abs(float(small_left[-1, 0])))


def _orthogonal(vector: Floats, columns: Floats) -> Floats:
    """The vector less its part in the span of orthonormal rows, twice, so that rounding leaves nothing of it."""
    for _ in range(2):
        vector = vector - columns.T @ (columns @ vector)
    return vector


WIDEST = 5000  # smaller sides up to this wide are proved by a factor: two dense matrices of them are held
ATTEMPTS = 40


@dataclass(frozen=True, eq=False)
class SingularValue:
    """bound >= ‖Ψ‖₂, and by which proof; estimate: what an iteration found, below it or a little above by rounding,
    with its pair left (rows,), right (columns,): leftᵀ Ψ right = estimate nearly."""

    bound: float
    proof: Literal["cholesky", "norms"]
    estimate: float
    left: Floats
    right: Floats

    def __repr__(self) -> str:
        return f"SingularValue({self.bound:.10g} proved by {self.proof}, estimate {self.estimate:.10g})"


def largest_singular_value(psi: csr_array, *, start: Floats | None = None, widest: int = WIDEST) -> SingularValue:
    """A number that is not below ‖Ψ‖₂, the proof of it, and an estimate with the singular pair that belongs to it. psi:
    (rows, columns), sparse. start: (columns,) where the iteration begins, `natural_start` by default. widest: up to
    which width of the smaller side the proof is a Cholesky factor. Raises DataError for entries that are not finite."""
    psi = csr_array(psi, dtype=np.float64)
    if not np.isfinite(psi.data).all():
        raise DataError("the singular values of a matrix with NaN or infinite entries are not defined; leave them out.")
    largest = float(np.abs(psi.data).max(initial=0.0))
    if largest == 0.0:
        return SingularValue(0.0, "norms", 0.0, np.zeros(psi.shape[0]), np.zeros(psi.shape[1]))
    unit = 2.0 ** np.floor(np.log2(largest))
    psi = csr_array((psi.data / unit, psi.indices, psi.indptr), shape=psi.shape)
    pair = top_pair(psi, natural_start(psi) if start is None else start)
    norms = min(frobenius_bound(psi), weighted_bound(psi))
    proved = inf
    if min(psi.shape) <= widest:
        narrow = csr_array(psi.T) if psi.shape[1] > psi.shape[0] else psi
        proved, right = _factor_bound(narrow, pair.right if narrow is psi else pair.left, pair.value, norms)
        if right is not None:  # the factor showed a direction that the iteration had missed
            pair = top_pair(psi, right if narrow is psi else psi.T @ right)
    bound = sqrt(min(proved, norms)) * (1.0 + 4.0 * UNIT) * unit
    proof: Literal["cholesky", "norms"] = "cholesky" if proved < norms else "norms"
    return SingularValue(nextafter(bound, inf), proof, pair.value * unit, pair.left, pair.right)


def _factor_bound(psi: csr_array, right: Floats, estimate: float, norms: float) -> tuple[float, Floats | None]:
    """More than ‖Ψ‖₂², infinite where no factor was found below `norms`; and a better direction, where one was met."""
    n = psi.shape[1]
    gram = (psi.T @ psi).toarray()  # its rows are its columns; one of the two triangles is read
    surplus = _gamma(longest(psi)[1] + 16) * norms + TINY
    phi = _gamma(n + 16) / (1.0 - _gamma(n + 16))
    least = 8.0 * phi * n + 16.0 * UNIT
    step, better = least, None
    for _ in range(ATTEMPTS):
        t = estimate * estimate * (1.0 + step) + 2.0 * surplus
        if t >= norms:
            return inf, better
        shifted = -gram
        shifted[np.diag_indices(n)] += t
        factor, failed = dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)  # as columns: in-place
        if failed == 0:
            return (t + (UNIT + phi * n) * t + surplus) * (1.0 + 16.0 * UNIT), better
        seen = top_pair(psi, _direction(factor, gram, failed - 1))
        if seen.value > estimate * (1.0 + step / 8.0):
            estimate, better, step = seen.value, seen.right, least
        else:
            step *= 4.0
    return inf, better


def _direction(factor: Floats, gram: Floats, index: int) -> Floats:
    """x with xᵀ(t I - G) x <= 0, where the factor ends at this index: it eliminates the rows before it."""
    x = np.zeros(len(gram))
    x[index] = 1.0
    if index:
        before = factor[:index, :index]
        half = solve_triangular(before, gram[:index, index], lower=True, check_finite=False)
        x[:index] = solve_triangular(before, half, lower=True, trans="T", check_finite=False)
    return x if np.isfinite(x).all() else np.eye(1, x.size, index).ravel()


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
    linear operator. Values are iterative estimates from below. There are as many pairs as the smaller side has; the
    rest is 0."""
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
