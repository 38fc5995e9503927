"""Documents whose own row ("at most once") another row of the set implies, so that it need not be stated."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats

__all__ = ["implied_documents"]


def implied_documents(extra: csr_array, upper: Floats, document: csr_array) -> Bools:
    """(n,) whether a row of `extra` that is at most 1 holds all cells of a document (or the document has none)."""
    held = np.diff(document.indptr)
    row = np.repeat(np.arange(upper.size), np.diff(extra.indptr))
    below = np.zeros(upper.size, dtype=bool)
    np.logical_or.at(below, row, extra.data < 1.0)
    capping = np.flatnonzero(~below & (upper <= 1.0) & (np.diff(extra.indptr) > 0))
    if not capping.size:
        return np.asarray(held == 0)
    counted = csr_array(extra[capping].astype(bool).astype(np.float64) @ document.T).tocsc()
    most = np.zeros(held.size)
    seen = np.diff(counted.indptr) > 0
    most[seen] = np.maximum.reduceat(counted.data, counted.indptr[:-1][seen])
    return np.asarray(most == held)
