"""Least squares by its normal equations, refined to full precision; only where they are far from singular."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from rankopt.rankers.centred_blocks import Centred

__all__ = ["by_normal_equations"]

Floats = NDArray[np.float64]

SINGULAR = 1e-9
"""Least eigenvalue of the scaled Gram matrix, beside its largest, below which its digits are not trusted."""
ROUNDS = 4


def by_normal_equations(matrix: Centred, right: Floats, rounding: Floats, alpha: float) -> Floats | None:
    """The w of min ‖A w - right‖² + α‖w‖², or None where A is (nearly) singular with its columns brought to one size.

    One pass over the data for AᵀA, which costs a small part of a QR factorisation; then the residual, taken anew from
    the data, corrects w until it stands still: the digits that AᵀA lost come back, a pass a round.
    rounding (d,): norms of columns up to which they count as constant; those get 0.
    """

    def gram(blocks: Iterator[tuple[slice, Floats]]) -> Floats:
        return np.asarray(sum(block.T @ block for _, block in blocks))

    def gradient(blocks: Iterator[tuple[slice, Floats]]) -> Floats:
        return np.asarray(sum(block.T @ (right[part] - block @ solved) for part, block in blocks))

    products = np.sum(matrix.reduced(gram), axis=0)
    squares = np.diagonal(products)
    used = np.flatnonzero(np.sqrt(squares) > rounding)
    solved = np.zeros(squares.size)
    if not used.size:
        return solved
    scale = 1.0 / np.sqrt(squares[used] + alpha)
    system = products[np.ix_(used, used)] * scale * scale[:, None] + alpha * np.diag(scale**2)
    size = np.linalg.eigvalsh(system)
    if size[0] <= SINGULAR * size[-1]:
        return None
    factor, scaled = cho_factor(system), np.zeros(used.size)
    for _ in range(ROUNDS):
        solved[used] = scale * scaled
        left = np.sum(matrix.reduced(gradient), axis=0)[used] - alpha * solved[used]
        step = cho_solve(factor, left * scale)
        scaled = scaled + step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(scaled):
            solved[used] = scale * scaled
            return solved
    return None
