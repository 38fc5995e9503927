"""Queries from tables: parquet, CSV and Feather files, and frames of pandas, polars and pyarrow.

    qid, relevance, docid, x1, x2, site          one row per document, in any order

Query, grade and document columns are found by name. Other numeric columns are features and text columns attributes;
columns of other types (dates, mixed) must be named explicitly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from importlib import import_module
from numbers import Real
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.typing import Frame, Unjudged
from rankopt.errors import DataError, OptionError

USUAL = {
    "qid": ("qid", "query_id", "queryid", "query"),
    "relevance": ("relevance", "label", "grade", "rel"),
    "document": ("docid", "docno", "doc_id", "document", "document_id"),
}
"""Usual column names, case-insensitive."""

ENDINGS = {
    ".parquet": ("pyarrow.parquet", "read_table"),
    ".feather": ("pyarrow.feather", "read_table"),
    ".csv": ("pyarrow.csv", "read_csv"),
    ".csv.gz": ("pyarrow.csv", "read_csv"),
}
"""File endings and their pyarrow readers."""


def is_table(path: str | PathLike[str]) -> bool:
    """Whether the file has such an ending."""
    return fspath(path).lower().endswith(tuple(ENDINGS))


def read_table(
    source: str | PathLike[str] | Frame,
    *,
    qid: str | None = None,
    relevance: str | None = None,
    document: str | None = None,
    features: Sequence[str] | None = None,
    attributes: Iterable[str] | None = None,
    unjudged: Unjudged = None,
) -> Queries:
    """The queries of a file (parquet, CSV, Feather; extra `tables`) or of a data frame.

    qid, relevance, document: columns, by default those with usual names (qid, query_id, ...; relevance, label, ...;
    docid, docno, ...); grades are optional. features: the columns in their order, by default all other numeric columns,
    including object columns of numbers. attributes: by default all other text columns. unjudged: see `Queries`.

    Raises DataError for a missing or ambiguous column, a missing value, or an unnamed column that is neither numeric
    nor text, and OptionError if pyarrow is missing.
    """
    frame, where = source, "table"
    if isinstance(source, str | PathLike):
        frame, where = table_at(fspath(source)), fspath(source)
    if not hasattr(frame, "columns") or not hasattr(frame, "shape"):
        raise DataError(
            f"a {type(frame).__name__} is not a table; pass a file, or a frame of pandas, polars or pyarrow"
        )
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where} has two columns {twice!r}; rename one")
    roles = {role: _named(role, name, names, where) for role, name in
            {"qid": qid, "relevance": relevance, "document": document}.items()}  # fmt: skip
    of_query = roles["qid"]
    if of_query is None:
        raise DataError(f"{where} has no column of queries among {_shown(names)}; name it: qid='...'")
    values = {name: column_of(frame, name, where) for name in names}
    left = [name for name in names if name not in roles.values()]
    holds = {name: _holds(values[name]) for name in left}
    numeric = [name for name in left if holds[name] == "numbers"] if features is None else [*features]
    words = [name for name in left if holds[name] != "numbers" and name not in numeric]
    words = words if attributes is None else [*attributes]
    odd = next((name for name in words if attributes is None and holds[name] != "text"), None)
    if odd is not None:
        raise DataError(
            f"column {odd!r} of {where} contains {holds[odd]}, which is neither a feature nor a label; encode it as "
            "numbers, leave it out, or name the columns that are attributes: attributes=[...]"
        )
    unknown = next((name for name in (*numeric, *words) if name not in values), None)
    if unknown is not None:
        raise DataError(f"{where} has no column {unknown!r}; it has {_shown(names)}")
    if not numeric:
        raise DataError(f"{where} has no numeric column besides grades and ids; name the features: features=[...]")
    no_feature = next((name for name in numeric if _holds(values[name]) != "numbers"), None)
    if no_feature is not None:
        raise DataError(
            f"column {no_feature!r} of {where} contains {_holds(values[no_feature])} and is not a feature; leave it "
            "out, or encode it as numbers first"
        )
    grades, ids = (values.get(roles[role] or "") for role in ("relevance", "document"))
    return Queries.from_arrays(
        np.column_stack([values[name].astype(np.float64) for name in numeric]),
        grades,
        qid=values[of_query],
        documents=None if ids is None else ids.tolist(),
        attributes={name: values[name] for name in words},
        feature_names=numeric,
        unjudged=unjudged,
    )


def table_at(path: str) -> Any:
    """Read the file as a pyarrow table. OptionError if pyarrow is missing."""
    ending = next((one for one in sorted(ENDINGS, key=len, reverse=True) if path.lower().endswith(one)), None)
    if ending is None:
        raise DataError(f"{path} has an unknown file type; read_table reads {', '.join(ENDINGS)}")
    module, reader = ENDINGS[ending]
    try:
        read = getattr(import_module(module), reader)
    except ImportError as error:
        raise OptionError(f"{path} cannot be read because {error}; pip install 'rankopt[tables]'") from error
    try:
        return read(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # base classes of pyarrow's errors
        raise DataError(f"{path} is not a readable {ending[1:]} file: {error}") from error


def _named(role: str, wanted: str | None, names: list[str], where: str) -> str | None:
    """The column of a role: the wanted one, else the one with a usual name, else None."""
    if wanted is not None:
        if wanted not in names:
            raise DataError(f"{where} has no column {wanted!r}; it has {_shown(names)}")
        return wanted
    found = [name for name in names if name.lower() in USUAL[role]]
    if len(found) > 1:
        raise DataError(f"{where} has the columns {_shown(found)}; choose one: {role}='{found[0]}'")
    return found[0] if found else None


def column_of(frame: Any, name: str, place: str) -> NDArray[Any]:
    """A column as an array of numbers or of objects; a missing value is an error that names its row."""
    column = frame.column(name) if hasattr(frame, "column_names") else frame[name]
    if hasattr(column, "null_count") and not callable(column.null_count) and column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise DataError(f"column {name!r} of {place} has no value in row {row}; fill it in or leave the row out")
    values = np.asarray(column.to_numpy())
    if values.dtype == object:
        empty = next((row for row, value in enumerate(values) if _missing(value)), None)
        if empty is not None:
            raise DataError(f"column {name!r} of {place} has no value in row {empty}; fill it in or leave the row out")
    return values


def _missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal nor unequal to itself; an array (a list of labels) is not one
        return type(value).__name__ == "NAType"


def _holds(values: NDArray[Any]) -> str:
    """The content of a column: "numbers", "text" (labels or collections of labels), or another type in words."""
    if values.dtype.kind in "biuf":
        return "numbers"
    if values.dtype.kind in "mM":
        return "dates or times"
    if values.dtype != object:
        return "text" if values.dtype.kind in "USTO" else f"values of type {values.dtype}"
    numbers = [isinstance(value, Real | Decimal | np.bool_) for value in values]
    if all(numbers):
        return "numbers"
    labels = [isinstance(value, str | bytes | list | tuple | set | frozenset | np.ndarray) for value in values]
    if all(labels):
        return "text"
    if not any(numbers) and not any(labels):
        return f"values of type {type(values[0]).__name__}"
    other = next(type(value).__name__ for value in values if type(value) is not type(values[0]))
    return f"values of types {type(values[0]).__name__} and {other}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
