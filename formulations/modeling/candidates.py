"""Few candidates: cells that no best ranking of a set needs.

Two documents are of one kind if the set tells them apart nowhere: the same rows with the same coefficients, the same
cells forbidden. Of a kind only the k best-paid documents of each position need be candidates for it: if a ranking has
another one there, one of these k is free (the other positions hold k - 1 documents at most) and may take its place. The
prices of the smaller program prove the larger one: a free document has the price 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from formulations.modeling.set_rows import SetRows

__all__ = ["candidates", "kinds"]


def kinds(stated: SetRows) -> Ints:
    """(n,) the kind of each document, counted from 0."""
    k, n = stated.shape
    others = stated.matrix.shape[0] - k - stated.kept.size
    # Row j: the coefficients of document j at each position in each row that is not its own, and where it may stand.
    entries = csr_array(stated.weights[:, stated.kept.size :]).tocoo()
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
    table.sort_indices()
    seen: dict[tuple[bytes, bytes], int] = {}
    found = np.empty(n, dtype=np.int64)
    for j in range(n):
        part = slice(table.indptr[j], table.indptr[j + 1])
        found[j] = seen.setdefault((table.indices[part].tobytes(), table.data[part].tobytes()), len(seen))
    return found


def candidates(stated: SetRows, profit: Floats) -> Bools | None:
    """Which allowed cells are needed for this profit (k, n); None where all may be."""
    k, n = stated.shape
    kind = stated.kind
    large = np.flatnonzero(np.bincount(kind) > k)
    if not large.size:
        return None
    needed = np.ones((k, n), dtype=bool)
    for one in large.tolist():
        members = np.flatnonzero(kind == one)
        best = np.argpartition(-profit[:, members], k - 1, axis=1)[:, :k]
        needed[:, members] = False
        needed[np.arange(k)[:, None], members[best]] = True
    return np.asarray(needed.ravel()[stated.cell])
