"""The entries of a sparse table, checked before compiled code reads them: an index out of range is a read elsewhere.

scipy looks at no index when a matrix is made, nor when it turns one format into another, sorts one or cuts rows out; it
reads and writes where the indices say. So they are looked at first, in one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

__all__ = ["check_entries"]

COMPRESSED = {"csr": ("row", "column", 0), "csc": ("column", "row", 1), "bsr": ("row of blocks", "column of blocks", 0)}
"""What lies in a row, what its indices name, and along which axis it goes."""

LARGEST = 2**31 - 1
"""The most columns that features have, as in files: there is one weight for each."""

CURE = "build the matrix anew (`scipy.sparse.csr_array(...)`), or mend its indices."


def check_entries(table: Any) -> None:
    """Raise DataError unless all indices of a scipy sparse matrix or array lie within its shape. One pass, no copy.

    Other formats than CSR, CSC, BSR and COO hold no indices that are read without a check.
    """
    kind = getattr(table, "format", None)
    if table.ndim != 2:
        raise DataError(f"features have shape {table.shape} but are a table of documents × features; reshape them.")
    if table.shape[1] > LARGEST:
        raise DataError(f"Sparse features have {table.shape[1]} columns, more than {LARGEST}; leave out empty ones.")
    if kind in COMPRESSED:
        _check_compressed(table, *COMPRESSED[kind])
    elif kind == "coo":
        for name, indices, size in zip(("row", "column"), (table.row, table.col), table.shape, strict=True):
            _check_indices(indices, size, f"{name}s")
            _check_counts(table.data.shape[0], indices.size, f"{name}s")
    elif kind == "dia":
        _check_counts(table.data.shape[0], table.offsets.size, "diagonals")


def _check_compressed(table: Any, major: str, minor: str, axis: int) -> None:
    sides = (
        table.shape if table.format != "bsr" else [n // b for n, b in zip(table.shape, table.blocksize, strict=True)]
    )
    rows, columns = (sides[0], sides[1]) if axis == 0 else (sides[1], sides[0])
    bounds, indices, values = table.indptr, table.indices, table.data.shape[0]
    _check_kind(bounds, f"bounds of its {major}s")
    if bounds.size != rows + 1 or bounds[0] != 0 or bounds[-1] > values or (bounds[1:] < bounds[:-1]).any():
        raise DataError(
            f"Sparse features have bounds that do not cut {values} entries into {rows} {major}s (there are "
            f"{bounds.size}, which must rise from 0 to {values} at the most); {CURE}"
        )
    _check_counts(values, indices.size, f"{minor}s")
    wrong = _check_indices(indices, columns, f"{minor}s", raises=False)
    if wrong is not None:
        place = int(np.searchsorted(bounds, wrong, side="right")) - 1
        raise DataError(
            f"Sparse features name {minor} {indices[wrong]} in {major} {place}, but there are {columns} {minor}s, "
            f"counted from 0; {CURE}"
        )


def _check_indices(indices: NDArray[Any], size: int, what: str, raises: bool = True) -> int | None:
    """Which index is the first that is none; None where all are within 0 ... size - 1."""
    _check_kind(indices, what)
    if not indices.size or (indices.min() >= 0 and indices.max() < size):
        return None
    wrong = int(np.flatnonzero((indices < 0) | (indices >= size))[0])
    if raises:
        raise DataError(f"Sparse features name {indices[wrong]} among their {what}, but there are {size}; {CURE}")
    return wrong


def _check_kind(indices: NDArray[Any], what: str) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise DataError(f"Sparse features have {what} of {indices.dtype}, shape {indices.shape}, not integers; {CURE}")


def _check_counts(values: int, indices: int, what: str) -> None:
    if values != indices:
        raise DataError(f"Sparse features have {values} values but {indices} {what} to put them in; {CURE}")
