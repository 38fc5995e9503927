"""A smaller part of a matrix that still has no quick proof.

What is totally unimodular stays so when rows and columns are left out, and so does what is a network matrix. Lines are
left out, many at a time and then fewer, while the quick proofs still fail; what is left is often small enough to go
through all its sets of rows.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Ints
from formulations.integrality.evidence import Proof, Signs
from formulations.integrality.proving import prove

__all__ = ["narrowed"]


def narrowed(matrix: Signs, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Rows and columns of a part without a quick proof, from which no line can be left out without giving it one."""
    held = [np.arange(matrix.shape[0]), np.arange(matrix.shape[1])]
    changed = True
    while changed:
        changed = False
        for axis in (1, 0):
            before = held[axis].size
            held[axis] = _fewer(matrix, held, axis, rng)
            changed |= held[axis].size < before
    return held[0], held[1]


def _fewer(matrix: Signs, held: list[Ints], axis: int, rng: np.random.Generator) -> Ints:
    lines = rng.permutation(held[axis])
    width = max(1, lines.size // 2)
    while True:
        start = 0
        while start < lines.size:
            kept = np.sort(np.delete(lines, slice(start, start + width)))
            trial = [kept, held[1]] if axis == 0 else [held[0], kept]
            if kept.size and not isinstance(prove(csr_array(matrix[np.ix_(*trial)], dtype=np.float64)), Proof):
                lines = np.delete(lines, slice(start, start + width))
            else:
                start += width
        if width == 1:
            return np.sort(lines)
        width = max(1, width // 2)
