"""Least squares by its normal equations, refined to full precision; only where they are far from singular."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController

from formulations.threads import share

__all__ = ["CenteredNormalEquations", "by_normal_equations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS = 1024
"""Rows that are made dense and centred at a time."""
BLOCKS = 32
"""Blocks that are reduced by one thread, one after the other; the data says how many such jobs there are."""

SINGULAR = 1e-9
"""Least eigenvalue of the scaled Gram matrix, beside its largest, below which its digits are not trusted."""
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class CenteredNormalEquations:
    """The matrix A with the rows root_i (x_i - mean), x_i row rows[i] of the features, never written out whole.

    mean (d,); or a mean of each group (g, d), row i belonging to group group[i].
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
    """The w of min ‖A w - right‖² + α‖w‖², α one number or one a column, or None where A is (nearly) singular with its
    columns brought to one size.

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
