"""Grouping of rows by query, from query ids in any order or from group sizes."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from formulations.arrays import Ints
from rankopt.data.validation import as_array
from rankopt.errors import DataError


def codes_of_ids(qid: Any, n: int) -> tuple[Ints, tuple[Hashable, ...]]:
    """Number the queries 0, 1, ... by first appearance: codes (n,) and the id of each code.

    qid: n hashables. Ids of numpy arrays are returned as Python numbers and strings. Raises DataError for a wrong
    number of ids, and for an id that is not hashable, None or NaN.
    """
    values = as_array(qid)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype != object):
        if values.ndim != 1:
            raise DataError(f"qid has shape {values.shape} but needs one id per row; pass a vector of {n} ids.")
        starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if values.size else np.arange(0)
        heads = values[starts].tolist() if values.dtype.kind not in "mM" else list(values[starts])
        length = values.size
    else:
        heads = list(_items(values))
        starts, length = np.arange(len(heads)), len(heads)
    if length != n:
        raise DataError(f"qid has {length} entries but there are {n} rows; give each row the id of its query.")
    known: dict[Hashable, int] = {}
    codes = np.empty(len(heads), dtype=np.int64)
    for i, head in enumerate(heads):
        try:
            codes[i] = known.setdefault(head, len(known))
        except TypeError:
            raise DataError(
                f"The qid of row {starts[i]} is a {type(head).__name__}, which is not hashable; use numbers or strings."
            ) from None
    for name, code in known.items():
        if _is_missing(name):
            row = starts[np.flatnonzero(codes == code)[0]]
            raise DataError(
                f"The qid of row {row} is {name}; every document needs a query, fill it in or drop the row."
            )
    return np.repeat(codes, np.diff(np.append(starts, n))), tuple(known)


def _is_missing(name: Hashable) -> bool:
    if name is None:
        return True
    try:
        return bool(name != name)
    except TypeError:  # pandas.NA has no truth value
        return True


def _items(values: Any) -> Iterable[Hashable]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise DataError(f"qid cannot be {values!r} because it needs one id per row; pass a sequence of ids.")
    items: Iterable[Hashable] = values
    return items


def codes_of_sizes(group: Any, n: int) -> tuple[Ints, tuple[Hashable, ...]]:
    """Codes (n,) and ids 0, 1, ... of consecutive queries of these sizes. Raises DataError for invalid sizes."""
    sizes = np.asarray(as_array(group))
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iuf" or (sizes != np.floor(sizes)).any():
        raise DataError("group must be a vector of integers, the sizes of the queries.")
    sizes = sizes.astype(np.int64)
    if (sizes < 1).any():
        q = int(np.flatnonzero(sizes < 1)[0])
        raise DataError(
            f"group[{q}] is {sizes[q]} but every query needs at least one document; leave out empty queries."
        )
    if int(sizes.sum()) != n:
        raise DataError(
            f"group sums to {int(sizes.sum())} but there are {n} rows; pass the size of each query in order."
        )
    return np.repeat(np.arange(sizes.size), sizes), tuple(range(sizes.size))


def grouped(codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Row order (n,), offsets (m + 1,) and the code of each query (m,), for codes that may have gaps.

    Queries are in order of first appearance, rows of a query in input order.
    """
    order = np.arange(codes.size, dtype=np.int64)
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)
        codes = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    return order, np.append(starts, codes.size).astype(np.int64), codes[starts]
