"""The table of features of parsed lines: CSR or an array, but no array that a small file only counts up to."""

from typing import Any

import numpy as np

from rankopt.data.svmlight.parsed import Parsed
from rankopt.data.values import Features, sealed
from rankopt.errors import DataError, OptionError

__all__ = ["check_sparse", "features_of"]

SPARSE_BELOW = 0.1
"""With sparse="auto": features are CSR where a smaller part of them is written in the file."""

SMALL, LARGER = 1 << 28, 1000
"""An array of fewer bytes is always made; a greater one only up to so many times the text that it comes from."""


def check_sparse(sparse: bool | str) -> None:
    """Raise OptionError for what says neither CSR nor array."""
    if sparse not in (True, False, "auto"):
        raise OptionError(f"sparse cannot be {sparse!r}; it is True, False or 'auto'.")


def features_of(parsed: Parsed, d: int, dtype: np.dtype[Any], sparse: bool | str, where: str | None) -> Features:
    """The table (N, d) of all entries, read-only.

    where: what asks for so many features, for the error about an array out of proportion; None if the caller does.
    """
    n = parsed.grades.size
    values = parsed.values.astype(dtype, copy=False)
    for array in (values, parsed.columns, parsed.bounds):
        sealed(array)
    if sparse is True or (sparse == "auto" and values.size < SPARSE_BELOW * n * d):
        from scipy.sparse import csr_array

        return csr_array((values, parsed.columns, parsed.bounds), shape=(n, d))
    if values.size == n * d:  # rising indices, so each line has them all
        return values.reshape(n, d)
    size = n * d * dtype.itemsize
    if where is not None and size > max(SMALL, LARGER * parsed.size):
        raise DataError(
            f"{where} makes an array of {n} documents × {d} features, {size / 2**30:.1f} GiB from {parsed.size} bytes "
            f"of text; read with sparse=True, or say n_features={d} if it is meant."
        )
    table = np.zeros((n, d), dtype=dtype)
    table[np.repeat(np.arange(n), np.diff(parsed.bounds)), parsed.columns] = values
    return sealed(table)
