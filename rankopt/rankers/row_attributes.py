"""Attributes of the rows of X, as a caller passes them: one value a row, by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

SEVERAL = (tuple, list, set, frozenset)


def row_attributes(given: Any, n: int) -> dict[str, NDArray[Any]]:
    """Name → (n,) array, from a data frame, a structured array, or a mapping of columns; none of them gives {}.

    A value may be a tuple of labels (the genres of a film). Frames and structured arrays are cut by rows in
    cross-validation, a mapping is not. Raises DataError for other lengths and for anything else.
    """
    if given is None:
        return {}
    if hasattr(given, "columns"):
        columns = {str(name): given[name] for name in given.columns}
    elif isinstance(given, np.ndarray) and given.dtype.names:
        columns = {name: given[name] for name in given.dtype.names}
    elif isinstance(given, Mapping):
        columns = {str(name): values for name, values in given.items()}
    else:
        raise DataError(
            f"attributes cannot be a {type(given).__name__} because its columns have no names; pass a data frame, a "
            "structured array, or a mapping from name to one value a row."
        )
    return {name: _column(values, name, n) for name, values in columns.items()}


def _column(values: Any, name: str, n: int) -> NDArray[Any]:
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, list | tuple) and any(isinstance(value, SEVERAL) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = [tuple(value) if isinstance(value, list) else value for value in values]
    else:
        array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"attribute {name!r} has shape {array.shape} but a document has one value; pass one a row.")
    if array.size != n:
        raise DataError(
            f"attribute {name!r} has {array.size} values but there are {n} rows; pass one value a row. "
            "Cross-validation cuts a data frame or a structured array of attributes by rows, but no mapping."
        )
    return array
