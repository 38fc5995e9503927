"""The largest singular value by iteration, with its pair: Lanczos bidiagonalisation [Golub and Kahan 1965].

From a start v the spaces of v, (ΨᵀΨ) v, (ΨᵀΨ)² v, ... and of Ψ v, (ΨΨᵀ) Ψ v, ... are spanned by orthonormal columns,
between which Ψ is bidiagonal; the largest singular value of that small matrix is one of Ψ nearly, and never larger than
‖Ψ‖₂ but for rounding. Which one it is near depends on the start: what is orthogonal to it is never seen. So what comes
out is an estimate from below; `largest_singular_value` proves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["SingularPair", "natural_start", "top_pair"]

Floats = NDArray[np.float64]

STEPS = 48
"""Columns of a space; then it begins anew from the best vector that it has."""

SETTLED = 1e-12
"""Residual, relative to the singular value, at which the pair is found."""


class SingularPair(NamedTuple):
    """value = leftᵀ Ψ right nearly, left (rows,), right (columns,) of length 1; residual = ‖Ψᵀ left - value right‖."""

    value: float
    left: Floats
    right: Floats
    residual: float


def natural_start(psi: csr_array) -> Floats:
    """(columns,) the length of each column, with the sign of its sum: it goes along when rows and columns are given
    other names, which a random start does not."""
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
