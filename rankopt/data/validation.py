"""Validation of features, grades and query ids: one type, finite, judged, grouped, read-only.

scipy does not check the indices of a sparse matrix in construction, conversion, sorting or slicing, and an index out of
range reads or writes other memory. All indices are therefore checked first, in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, check_no_mask, each, integers, is_sparse
from formulations.errors import InvalidProblemError
from rankopt.data.typing import Unjudged
from rankopt.errors import DataError
from rankopt.options import number

COMPRESSED = {"csr": ("row", "column", 0), "csc": ("column", "row", 1), "bsr": ("row of blocks", "column of blocks", 0)}
"""Format -> (major name, minor name, major axis)."""

LARGEST = 2**31 - 1  # maximum number of feature columns
CURE = "build the matrix anew (`scipy.sparse.csr_array(...)`), or correct its indices."


def check_entries(table: Any) -> None:
    """Raise DataError unless all indices of a scipy sparse matrix or array lie within its shape. One pass, no copy.
    Formats other than CSR, CSC, BSR and COO have no unchecked indices."""
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
            f"{bounds.size}, which must rise from 0 to at most {values}); {CURE}"
        )
    _check_counts(values, indices.size, f"{minor}s")
    wrong = _check_indices(indices, columns, f"{minor}s", raises=False)
    if wrong is not None:
        row = int(np.searchsorted(bounds, wrong, side="right")) - 1
        raise DataError(
            f"Sparse features name {minor} {indices[wrong]} in {major} {row}, but there are {columns} {minor}s, "
            f"counted from 0; {CURE}"
        )


def _check_indices(indices: NDArray[Any], size: int, what: str, raises: bool = True) -> int | None:
    """The position of the first invalid index; None if all are within 0 ... size - 1."""
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


INDICATOR = "missingindicator_"  # precedes the name of a feature in that of its indicator, as in scikit-learn
KEEP_MISSING = "read with missing=np.nan and fit with missing='indicator' (or a BoostedRanker)"

Features = Any  # (N, d) float64 or float32: a C-contiguous array, or a scipy CSR matrix or array

Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array if it and its bases are read-only, else a read-only copy."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return sealed(array.copy())
        owner = owner.base
    return array


def sealed(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Make the array and its bases read-only; for arrays that are not shared."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return array


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal nor unequal to itself; an array (a list of labels) is not one
        return type(value).__name__ == "NAType"


def as_array(values: Any) -> Any:
    """The column of a data frame as a NumPy array; anything else unchanged."""
    if not hasattr(values, "to_numpy"):
        return values
    try:
        return values.to_numpy()
    except ValueError:  # pyarrow copies strings only if allowed
        return values.to_numpy(zero_copy_only=False)


QUERY_COLUMNS = ("qid", "query_id", "query")
SESSION_COLUMNS = ("session_id", "search_id", "srch_id", "topic", "topic_id", "group_id")
"""Usual names of the column of query ids; those of the second list only where none of the first is present. Upper case,
blanks and signs in names do not count."""


def plain_name(name: Any) -> str:
    """A column name without upper case, blanks, hyphens and underscores."""
    return str(name).strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def named_as(usual: Iterable[str], names: Iterable[Any]) -> list[Any]:
    """Those of the names that are usual ones."""
    known = {plain_name(one) for one in usual}
    return [name for name in names if plain_name(name) in known]


def query_columns(names: Sequence[Any]) -> list[Any]:
    """The names that are usual for query ids."""
    return named_as(QUERY_COLUMNS, names) or named_as(SESSION_COLUMNS, names)


def column_names(X: Any) -> list[Any] | None:
    """The names of the columns of a data frame of pandas, polars or pyarrow; None for anything else."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def without_query_column(X: Any) -> tuple[Any, str | None, list[Hashable] | None]:
    """Split a data frame into its features, and the name and values of its column of query ids; anything else has no
    such column."""
    names = column_names(X)
    twice = None if names is None else next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"X has two columns {twice!r}; rename one, or leave it out.")
    found = [] if names is None else query_columns(names)
    if names is None or not found:
        return X, None, None
    if len(found) > 1:
        raise DataError(f"X has the columns {', '.join(map(repr, found))} of query ids; leave out all but one.")
    rest = [name for name in names if name != found[0]]
    if hasattr(X, "column_names"):
        return X.select(rest), str(found[0]), X.column(found[0]).to_pylist()
    return X[rest], str(found[0]), list(X[found[0]])


def column(values: Any, n: int, name: str, dtype: type[np.float64] | None = None) -> NDArray[Any]:
    """One value per document, (n,). Raises DataError for another shape, for masked entries, and, with a dtype, for
    strings, dates and complex numbers."""
    values = as_array(values)
    check_no_mask(name, values, DataError)
    try:
        array = np.asarray(values)
        if dtype is not None:
            _check_real(array, name)
            array = np.asarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read: {error}; pass one value per row.") from None
    if array.shape != (n,):
        raise DataError(f"{name} has shape {array.shape} but there are {n} rows; pass one value per row.")
    return array


def _check_real(array: NDArray[Any], name: str) -> None:
    """Raise DataError for complex numbers, dates and durations, which NumPy would convert silently."""
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


def whole(name: str, values: Any) -> Ints:
    """A vector of integers; DataError for anything else."""
    try:
        return sealed(integers(name, values))
    except InvalidProblemError as error:
        raise DataError(str(error)) from None


def in_order_of(name: str, values: Any, ids: Sequence[Hashable], what: str = "query") -> Any:
    """One value per id of a query or user, in the order of the ids: of a mapping from id to value, or a pandas Series
    whose index has all the ids. Anything else, a Series of another index included, is in that order."""
    if hasattr(values, "to_dict") and hasattr(values, "index") and not hasattr(values, "columns"):
        labeled = values.index.is_unique and all(one in values.index for one in ids)
        values = values.to_dict() if labeled else values.to_numpy()
    if not isinstance(values, Mapping):
        return values
    missing = [one for one in ids if one not in values]
    if missing:
        raise DataError(f"{name} has no weight for {what} {missing[0]!r}; give every {what} one.")
    return [values[one] for one in ids]


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """ "; did you mean 'site'?" for a known name or label whose text is close, else nothing."""
    words = {str(one).lower(): one for one in known}
    near = get_close_matches(str(name).lower(), words, n=1)
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def check_same_index(**named: Any) -> None:
    """Raise DataError for a Series or frame of pandas that has the index of the first argument in another order:
    values count by position, so its rows would belong to others."""
    first, *others = named
    index: Any = getattr(named[first], "index", None)
    for name in others:
        own: Any = getattr(named[name], "index", None)
        if not (hasattr(index, "equals") and hasattr(own, "equals") and index.nlevels == own.nlevels):
            continue
        if len(own) == len(index) and not own.equals(index) and own.isin(index).all() and index.isin(own).all():
            cure = f"{name}.loc[{first}.index]" if index.is_unique else "both in one order"
            raise DataError(
                f"{name} has the index of {first} in another order, but rows count by position; pass {cure}, or "
                f"{name}.to_numpy() if its rows are in the order of {first}."
            )


def hashables(name: str, values: Any) -> tuple[Hashable, ...]:
    """The items of a sequence, which can be keys; DataError for others."""
    found = each(name, values, DataError)
    try:
        dict.fromkeys(found)
    except TypeError as error:
        raise DataError(f"{name} must be numbers, strings or tuples of them ({error}).") from None
    return found


def each_row(values: Any) -> NDArray[Any]:
    """Values of rows as an array, or DataError."""
    check_no_mask("the value", values, DataError)
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of several lengths
        raise DataError(f"values must be an array with an entry for each row ({error}).") from None


def picked(items: Sequence[Hashable], rows: Ints) -> tuple[Hashable, ...]:
    """The items at these positions, of a pandas Series too, whatever its index."""
    values = items if isinstance(items, list | tuple) else list(items)
    return tuple(values[row] for row in rows.tolist())


def as_features(features: Any) -> Features:
    """Features as a C-contiguous array or canonical CSR; float32 and float64 are preserved, integers become float64.
    The result may share memory with the argument. Raises DataError unless it is a table of real numbers with valid
    sparse indices."""
    if is_sparse(features):
        return _canonical(as_csr(features))
    if hasattr(features, "to_numpy"):
        features = features.to_numpy()
    check_no_mask("features", features, DataError)
    table = each_row(features)
    if table.ndim != 2:
        raise DataError(f"features have shape {table.shape} but are a table of documents × features; reshape them.")
    try:
        is_float = table.dtype in (np.float32, np.float64)
        return np.ascontiguousarray(table, dtype=table.dtype if is_float else _real(table.dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"features cannot be read as numbers: {error}; encode strings as numbers first.") from None


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
    """CSR of real numbers with sorted, distinct columns in each row."""
    if table.dtype not in (np.float32, np.float64):
        try:
            table = table.astype(_real(table.dtype))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"features cannot be read as numbers: {error}; encode strings as numbers first.") from None
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _real(dtype: Any) -> type[np.float64]:
    if dtype.kind == "c":
        raise DataError("features are complex numbers but scores are real; pass real and imaginary parts apart.")
    return np.float64


def frozen_features(features: Features) -> Features:
    """Read-only features (of `as_features`), copied if the caller could write to them."""
    if not is_sparse(features):
        return frozen(features)
    parts = (frozen(features.data), frozen(features.indices), frozen(features.indptr))
    made = type(features)(parts, shape=features.shape, copy=False)
    made.has_canonical_format = True
    return made


def lent(features: Features) -> Features:
    """Read-only views of the features, without a copy; the caller must not write to them meanwhile."""
    if is_sparse(features):
        parts = (_lent(features.data), _lent(features.indices), _lent(features.indptr))
        return type(features)(parts, shape=features.shape, copy=False)
    return _lent(features) if features.flags.c_contiguous else features


def _lent(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view without a writable base."""
    return np.asarray(array.data.toreadonly()) if array.size else array


def taken(features: Features, rows: Ints) -> Features:
    """These rows of the features, read-only."""
    table = features[rows]
    for array in (table.data, table.indices, table.indptr) if is_sparse(table) else (table,):
        sealed(array)
    return table


def judged(relevance: Floats, unjudged: Unjudged) -> tuple[Floats, Bools | None]:
    """Grades (N,) with negative ones replaced according to `unjudged`, and the mask of rows to keep (None: all).
    unjudged: None raises DataError later, a grade >= 0 replaces negative grades, "drop" drops their rows."""
    if (
        unjudged is not None
        and not (isinstance(unjudged, str) and unjudged == "drop")
        and not 0 <= number(unjudged) < np.inf
    ):
        raise DataError(f"unjudged = {unjudged!r} is not valid for negative grades; pass a grade >= 0 or 'drop'.")
    negative = relevance < 0
    if unjudged is None or not negative.any():
        return relevance, None
    if unjudged != "drop":
        return np.where(negative, float(unjudged), relevance), None
    if negative.all():
        raise DataError("All grades are negative, so unjudged='drop' leaves no document; add grades >= 0 of them.")
    return relevance, ~negative


def codes_of_ids(qid: Any, n: int, name: str = "qid") -> tuple[Ints, tuple[Hashable, ...]]:
    """Number the queries 0, 1, ... by first appearance: codes (n,) and the id of each code. qid: n hashables. Ids of
    numpy arrays are returned as Python numbers and strings. Raises DataError for a wrong number of ids, and for an id
    that is not hashable, None or NaN. name: what the errors call them."""
    check_no_mask(name, qid, DataError)
    values = as_array(qid)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype != object):
        if values.ndim != 1:
            raise DataError(f"{name} has shape {values.shape} but needs one id per row; pass a vector of {n} ids.")
        starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if values.size else np.arange(0)
        heads = values[starts].tolist() if values.dtype.kind not in "mM" else list(values[starts])
        length = values.size
    else:
        heads = list(each(name, _items(values, name), DataError))
        starts, length = np.arange(len(heads)), len(heads)
    if length != n:
        raise DataError(f"{name} has {length} entries but there are {n} rows; give each row its id.")
    known: dict[Hashable, int] = {}
    codes = np.empty(len(heads), dtype=np.int64)
    for i, head in enumerate(heads):
        try:
            codes[i] = known.setdefault(head, len(known))
        except TypeError:
            raise DataError(
                f"The {name} of row {starts[i]} is a {type(head).__name__}, which is not hashable; use text or numbers."
            ) from None
    for one, code in known.items():
        if is_missing(one):
            row = starts[np.flatnonzero(codes == code)[0]]
            raise DataError(f"The {name} of row {row} is {one}; each document needs one, fill it in or drop the row.")
    return np.repeat(codes, np.diff(np.append(starts, n))), tuple(known)


def _items(values: Any, name: str) -> Iterable[Hashable]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise DataError(f"{name} cannot be {values!r} because it needs one id per row; pass a sequence of ids.")
    items: Iterable[Hashable] = values
    return items


def codes_of_sizes(group: Any, n: int) -> tuple[Ints, tuple[Hashable, ...]]:
    """Codes (n,) and ids 0, 1, ... of consecutive queries of these sizes. Raises DataError for invalid sizes."""
    check_no_mask("group", group, DataError)
    try:
        sizes = np.asarray(as_array(group))
    except ValueError:  # lists of several lengths
        sizes = np.empty(0)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iuf" or (sizes != np.floor(sizes)).any():
        raise DataError(
            f"group must be a vector of integers, the sizes of consecutive queries; got {group!r:.80}. Pass query ids "
            "as qid=."
        )
    sizes = sizes.astype(np.int64)
    total = int(sizes.sum())
    if sizes.size == n and total != n:
        raise DataError(
            f"group has one entry per row ({n}), so it looks like query ids; pass them as qid=. group= takes the sizes "
            f"of consecutive queries, which sum to {n}; these sum to {total}."
        )
    if (sizes < 1).any():
        q = int(np.flatnonzero(sizes < 1)[0])
        raise DataError(f"group[{q}] is {sizes[q]} but each query needs at least one document; leave out empty ones.")
    if total != n:
        raise DataError(
            f"group sums to {total} but there are {n} rows; pass the size of each query in order, or the query of each "
            "row as qid=."
        )
    return np.repeat(np.arange(sizes.size), sizes), tuple(range(sizes.size))


def grouped(codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Row order (n,), offsets (m + 1,) and the code of each query (m,), for codes that may have gaps. Queries are in
    order of first appearance, rows of a query in input order."""
    order = np.arange(codes.size, dtype=np.int64)
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)
        codes = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])[: codes.size])
    return order, np.append(starts, codes.size).astype(np.int64), codes[starts]


def as_offsets(offsets: Any, n: int) -> Ints:
    """Offsets (m + 1,) as integers; DataError unless they rise from 0 to n."""
    check_no_mask("offsets", offsets, DataError)
    given = np.asarray(offsets)
    is_list = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iuf" and (given == np.floor(given)).all()
    if not is_list or given[0] != 0 or given[-1] != n or (given[1:] < given[:-1]).any():
        raise DataError(
            f"offsets {offsets!r:.80} do not cut {n} rows into queries; pass integers that increase from 0 to {n}."
        )
    return given.astype(np.int64)
