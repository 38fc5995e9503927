"""Features and grades as rankings need them: of one type, finite, judged, read-only.

The entries of a sparse table, checked before compiled code reads them: an index out of range is a read elsewhere.

scipy looks at no index when a matrix is made, nor when it turns one format into another, sorts one or cuts rows out; it
reads and writes where the indices say. So they are looked at first, in one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankopt.data.typing import Unjudged
from rankopt.errors import DataError

COMPRESSED = {"csr": ("row", "column", 0), "csc": ("column", "row", 1), "bsr": ("row of blocks", "column of blocks", 0)}
"""What lies in a row, what its indices name, and along which axis it goes."""

LARGEST = 2**31 - 1
"""The most columns that features have, as in files: there is one weight for each."""

CURE = "build the matrix anew (`scipy.sparse.csr_array(...)`), or correct its indices."


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


Floats = NDArray[np.float64]
Features = Any
"""(N, d) float64 or float32: a C-contiguous array, or a scipy CSR matrix or array."""

Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array itself where nobody can write to it or to what it is a view of, else a read-only copy."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return sealed(array.copy())
        owner = owner.base
    return array


def sealed(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array, read-only from now on, with all that it is a view of: for arrays that nobody else holds."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return array


def check_unmasked(values: Any, name: str) -> None:
    """Raise DataError for a masked array in which something is masked: the number below a mask is none."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise DataError(f"{name} of row {row} is masked, so its value is unknown; fill it in, or drop the row.")


def as_array(values: Any) -> Any:
    """What a column of a table knows to be as NumPy's array; anything else as it is."""
    if not hasattr(values, "to_numpy"):
        return values
    try:
        return values.to_numpy()
    except ValueError:  # pyarrow copies words only if it may
        return values.to_numpy(zero_copy_only=False)


def column(values: Any, n: int, name: str, dtype: type[np.float64] | None = None) -> NDArray[Any]:
    """One value a document, (n,). Raises DataError for another shape, for words, dates and complex numbers where real
    numbers are wanted, and for what is masked."""
    values = as_array(values)
    check_unmasked(values, name)
    try:
        array = np.asarray(values)
        if dtype is not None:
            _check_real(array, name)
            array = np.asarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read: {error}; pass one value a row.") from None
    if array.shape != (n,):
        raise DataError(f"{name} has shape {array.shape} but there are {n} rows; pass one value a row.")
    return array


def _check_real(array: NDArray[Any], name: str) -> None:
    """Raise DataError for what NumPy would make real numbers of that say something else."""
    kinds = {array.dtype.kind} if array.dtype != object else {_kind(one) for one in array.ravel().tolist()}
    if "c" in kinds:
        raise DataError(f"{name} cannot be complex numbers because these have no order; pass their real parts (.real).")
    if kinds & {*"mM"}:
        raise DataError(
            f"{name} cannot be dates or durations, which are no numbers; pass the column of numbers, or count "
            "them in a unit: (dates - first) / np.timedelta64(1, 'D')."
        )


def _kind(one: Any) -> str:
    return one.dtype.kind if isinstance(one, np.generic) else "c" if isinstance(one, complex) else "O"


def picked(items: Sequence[Hashable], rows: NDArray[np.int64]) -> tuple[Hashable, ...]:
    """The items at these positions."""
    return tuple(items[row] for row in rows.tolist())


def is_sparse(features: Features) -> bool:
    """Whether the features are a scipy sparse matrix or array; scipy is not loaded for the question."""
    return hasattr(features, "tocsr")


def as_features(features: Any) -> Features:
    """Features as a C-contiguous array or canonical CSR; float32 and float64 are kept, whole numbers become float64.

    The result may share memory with the argument. Raises DataError for anything that is no table of real numbers, and
    for a sparse matrix whose indices are not within its shape.
    """
    if is_sparse(features):
        return _canonical(as_csr(features))
    if hasattr(features, "to_numpy"):
        features = features.to_numpy()
    check_unmasked(features, "features")
    table = np.asarray(features)
    if table.ndim != 2:
        raise DataError(f"features have shape {table.shape} but are a table of documents × features; reshape them.")
    try:
        kept = table.dtype in (np.float32, np.float64)
        return np.ascontiguousarray(table, dtype=table.dtype if kept else _real(table.dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"features cannot be read as numbers: {error}; encode words as numbers first.") from None


def as_csr(features: Features) -> Features:
    """A sparse matrix as CSR of plain arrays, its indices checked before and after: see `check_entries`."""
    check_entries(features)
    table = features.tocsr()
    if table is not features:
        check_entries(table)
    parts = (table.data, table.indices, table.indptr)
    alike = table.indices.dtype == table.indptr.dtype and table.indices.dtype in (np.int32, np.int64)
    if alike and all(part.flags.c_contiguous for part in parts):
        return table
    return type(table)(tuple(map(np.ascontiguousarray, parts)), shape=table.shape)


def _canonical(table: Features) -> Features:
    """CSR of real numbers, columns rising in each row."""
    if table.dtype not in (np.float32, np.float64):
        try:
            table = table.astype(_real(table.dtype))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"features cannot be read as numbers: {error}; encode words as numbers first.") from None
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _real(dtype: Any) -> type[np.float64]:
    if dtype.kind == "c":
        raise DataError("features are complex numbers but scores are real; pass real and imaginary parts apart.")
    return np.float64


def frozen_features(features: Features) -> Features:
    """Features (of `as_features`) that nobody can write to; copied where the caller could."""
    if not is_sparse(features):
        return frozen(features)
    parts = (frozen(features.data), frozen(features.indices), frozen(features.indptr))
    made = type(features)(parts, shape=features.shape, copy=False)
    made.has_canonical_format = True
    return made


def lent(features: Features) -> Features:
    """The same features, not copied, as ones that nobody can write to: for a caller who promises not to meanwhile."""
    if is_sparse(features):
        parts = (_lent(features.data), _lent(features.indices), _lent(features.indptr))
        return type(features)(parts, shape=features.shape, copy=False)
    return _lent(features) if features.flags.c_contiguous else features


def _lent(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view that does not show what it is a view of."""
    return np.asarray(array.data.toreadonly()) if array.size else array


def taken(features: Features, rows: NDArray[np.int64]) -> Features:
    """These rows of the features, read-only."""
    table = features[rows]
    for array in (table.data, table.indices, table.indptr) if is_sparse(table) else (table,):
        sealed(array)
    return table


def judged(relevance: Floats, unjudged: Unjudged) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Grades (N,) with negative ones given the meaning `unjudged`, and which rows to keep (None: all).

    unjudged: None refuses negative grades, a grade >= 0 replaces them, "drop" leaves the rows out. Raises DataError.
    """
    if unjudged is not None and unjudged != "drop" and not (np.isreal(unjudged) and 0 <= float(unjudged) < np.inf):
        raise DataError(f"unjudged = {unjudged!r} is not valid for negative grades; pass a grade >= 0 or 'drop'.")
    negative = relevance < 0
    if unjudged is None or not negative.any():
        return relevance, None
    if unjudged != "drop":
        return np.where(negative, float(unjudged), relevance), None
    if negative.all():
        raise DataError("All grades are negative, so unjudged='drop' leaves no document; add grades >= 0 of them.")
    return relevance, ~negative
