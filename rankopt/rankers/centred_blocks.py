"""Centred, weighted features in blocks of rows: what least squares reduces, block by block, on all threads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from formulations.threads import share

__all__ = ["Centred"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS = 1024
"""Rows that are made dense and centred at a time."""
BLOCKS = 32
"""Blocks that are reduced by one thread, one after the other; the data says how many such jobs there are."""


@dataclass(frozen=True, eq=False)
class Centred:
    """The matrix A with the rows root_i (x_i - mean), x_i row rows[i] of the features, never written out whole."""

    features: Any
    rows: Ints
    root: Floats
    mean: Floats

    def blocks(self, job: int) -> Iterator[tuple[slice, Floats]]:
        """The blocks of one job: which rows, and A there."""
        for start in range(job * ROWS * BLOCKS, min(len(self.rows), (job + 1) * ROWS * BLOCKS), ROWS):
            part = slice(start, start + ROWS)
            block = self.features[self.rows[part]]
            block = block.toarray() if hasattr(block, "toarray") else block
            yield part, self.root[part, None] * (block - self.mean)

    def reduced(self, reduce: Callable[[Iterator[tuple[slice, Floats]]], Floats]) -> list[Floats]:
        """`reduce` of the blocks of each job, in order. Each job keeps to one thread, of the linear algebra too."""
        jobs = -(-len(self.rows) // (ROWS * BLOCKS))
        found: list[Floats] = [np.empty(0)] * jobs

        def run(job: int) -> None:
            found[job] = reduce(self.blocks(job))

        with threadpool_limits(1, user_api="blas"):
            share(jobs, run)
        return found
