"""Few candidates: cells that no best ranking of a set needs.

Two documents are of one kind if the set tells them apart nowhere: the same rows with the same coefficients, the same
cells forbidden. Of a kind the k best-paid documents of each position suffice for the best ranking: if it has another
one there, one of these is free (the other positions hold k - 1 documents at most) and may take its place. One more
makes the prices of the smaller program prove the larger one: of k + 1 documents one is not placed, so its own price is
0, and its position earns at least what any document left out could earn.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.sets.rows import SetRows

__all__ = ["candidates", "equal_rows", "kinds"]


def kinds(stated: SetRows) -> Ints:
    """(n,) the kind of each document, counted from 0; kept with the rows."""
    return stated.kept("kinds", lambda: frozen(_kinds(stated)))


def _kinds(stated: SetRows) -> Ints:
    k, n = stated.shape
    others = stated.matrix.shape[0] - k - stated.own_row.size
    # Row j: the coefficients of document j at each position in each row that is not its own, and where it may stand.
    entries = csr_array(stated.weights[:, stated.own_row.size :]).tocoo()
    cell, row = entries.coords
    position, document = np.divmod(stated.cell[cell], n)
    allowed, holder = np.divmod(stated.cell, n)
    width = others + 1
    table = csr_array(
        (
            np.concatenate([entries.data, np.ones(stated.cell.size)]),
            (np.concatenate([document, holder]), np.concatenate([position * width + row, allowed * width + others])),
        ),
        shape=(n, k * width),
    )
    return equal_rows(table)


def equal_rows(table: csr_array) -> Ints:
    """A number for each row of a matrix, the same for equal rows, counted from 0."""
    table.sort_indices()
    seen: dict[tuple[bytes, bytes], int] = {}
    found = np.empty(table.shape[0], dtype=np.int64)
    for row in range(found.size):
        part = slice(table.indptr[row], table.indptr[row + 1])
        found[row] = seen.setdefault((table.indices[part].tobytes(), table.data[part].tobytes()), len(seen))
    return found


def candidates(stated: SetRows, profit: Floats) -> Bools | None:
    """Which allowed cells are needed for this profit (k, n); None where all may be."""
    k, n = stated.shape
    kind = kinds(stated)
    large = np.flatnonzero(np.bincount(kind) > k + 1)
    if not large.size:
        return None
    needed = np.ones((k, n), dtype=bool)
    for one in large.tolist():
        members = np.flatnonzero(kind == one)
        best = np.argpartition(-profit[:, members], k, axis=1)[:, : k + 1]
        needed[:, members] = False
        needed[np.arange(k)[:, None], members[best]] = True
    return np.asarray(needed.ravel()[stated.cell])
