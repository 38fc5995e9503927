"""Queries from tables: parquet, CSV and Feather files, and frames of pandas, polars and pyarrow.

    qid, relevance, docid, x1, x2, site          one row per document, in any order

Query, grade and document columns are found by name. Other numeric columns are features and text columns attributes;
columns of other types (dates, mixed) must be named explicitly. Columns that number the rows, and the index that pandas
wrote, are left out with a warning, because the order of rows is often that of the grades.

`read_attributes` adds attributes of documents from a CSV file with the columns qid and docid.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from io import StringIO
from numbers import Real
from os import PathLike, fspath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import as_path, check_type, each
from rankopt.data.queries import Queries
from rankopt.data.text import check_text, is_text, text_blocks
from rankopt.data.typing import Frame, Unjudged
from rankopt.data.validation import (
    KEEP_MISSING,
    QUERY_COLUMNS,
    SESSION_COLUMNS,
    as_array,
    column_names,
    is_missing,
    named_as,
    query_columns,
)
from rankopt.errors import ColumnWarning, DataError, OptionError
from rankopt.options import NAN, Interval, check

USUAL = {
    "relevance": ("relevance", "label", "grade", "rel"),
    "document": ("docid", "docno", "doc_id", "document", "document_id"),
}
"""Usual column names, as `plain_name` compares them."""

ENDINGS = {
    ".parquet": ("pyarrow.parquet", "read_table"),
    ".feather": ("pyarrow.feather", "read_table"),
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), ("pyarrow.csv", "read_csv")),
}
"""File endings and their pyarrow readers."""


def is_table(path: str | PathLike[str]) -> bool:
    """Whether the file has such an ending."""
    return fspath(path).lower().endswith(tuple(ENDINGS))


def read_table(
    source: str | PathLike[str] | Frame,
    *,
    qid: str | None = None,
    relevance: str | Literal["auto"] | None = "auto",
    document: str | None = None,
    features: Sequence[str] | None = None,
    attributes: Iterable[str] | None = None,
    unjudged: Unjudged = None,
    missing: float | None = None,
) -> Queries:
    """The queries of a file (parquet, CSV, Feather) or of a data frame.

    Columns of CSV and TSV files are separated by commas, semicolons (numbers may then have decimal commas), tabs or |.
    qid, relevance, document: columns, by default those with usual names (qid, query_id, session_id, ...; relevance,
    label, ...; docid, docno, ...). relevance=None: the table has no grades. features: the columns in their order, by
    default all other numeric columns, including object columns of numbers, but none that numbers the rows (ids, the
    index of pandas): a ColumnWarning names these, and in graded queries columns with one value only. attributes: by
    default all other text columns; an empty text is no label. unjudged: see `Queries`. missing: the value of features
    without one: a number, nan to keep them missing, or None, which raises DataError.

    Raises DataError for a missing or ambiguous column, another missing value, or an unnamed column that is neither
    numeric nor text, and OptionError if pyarrow is missing. With features=, columns that are not named may be of any
    type and lack values.
    """
    where = as_path(source, DataError, "source") if isinstance(source, str | PathLike) else "table"
    frame = table_at(where) if isinstance(source, str | PathLike) else source
    return queries_of_frame(frame, where, qid, relevance, document, features, attributes, unjudged, missing=missing)


def queries_of_frame(
    frame: Any, where: str, qid: str | None, relevance: str | None, document: str | None,
    features: Sequence[str] | None = None, attributes: Iterable[str] | None = None, unjudged: Unjudged = None,
    labels: Iterable[str] = (), missing: float | None = None,
) -> Queries:  # fmt: skip
    """`read_table` of a frame that messages call `where`. labels: columns of any type that are attributes too, and by
    default no features."""
    if not hasattr(frame, "columns") or not hasattr(frame, "shape"):
        raise DataError(
            f"a {type(frame).__name__} is not a table; pass a file, or a frame of pandas, polars or pyarrow"
        )
    check("missing", missing, (Interval(-np.inf, np.inf, "neither"), NAN, None))
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where} has two columns {twice!r}; rename one")
    roles = {role: find_column(role, name, names, where) for role, name in (("qid", qid), ("document", document))}
    wanted = None if isinstance(relevance, str) and relevance == "auto" else relevance
    roles["relevance"] = None if relevance is None else find_column("relevance", wanted, names, where)
    of_query = roles["qid"]
    if of_query is None:
        usual = ", ".join((*QUERY_COLUMNS, *SESSION_COLUMNS))
        raise DataError(f"{where} has no column of queries ({usual}) among {_shown(names)}; name it: qid='...'")
    features = None if features is None else [*each("features", features, DataError)]
    words = None if attributes is None else [*each("attributes", attributes, DataError)]
    if unnamed := [one for one in (*(features or ()), *(words or ())) if not isinstance(one, Hashable)]:
        raise DataError(f"features and attributes are names of columns; got {unnamed[0]!r:.80}")
    labels = [name for name in labels if name in names and name not in roles.values()]
    wanted_columns = [*(features or ()), *(words or ()), *labels, *roles.values()]
    used = names if features is None else [name for name in names if name in wanted_columns]
    values = _columns(frame, names, where, used, [*roles.values()], missing)
    names = [*values]
    stated = {word for word in (*(words or ()), *labels) if isinstance(word, str)}
    left = [name for name in names if name not in roles.values() and name not in stated]
    if relevance == "auto" and roles["relevance"] is None:
        raise DataError(_no_grades(where, {name: values[name] for name in left}))
    if features is None:
        numbering, different = _numbering(frame, {name: values[name] for name in left})
        left = [name for name in left if name not in numbering]
        numbers = [name for name in left if values[name].dtype.kind in "biuf" and values[name].size > 1]
        to_train = roles["relevance"] is not None and (values[of_query] != values[of_query][:1]).any()
        constant = [name for name in numbers if to_train and (values[name] == values[name][0]).all()]
        like_queries = named_as((*QUERY_COLUMNS, *SESSION_COLUMNS), numbers)
        called = {name: values[name] for name in numbers if GRADED.search(name)}
        odd_ones = {"queries": like_queries, "graded": _like_grades(called)}
        numbering = [name for name in numbering if not name.startswith("__index_level_")]  # pandas' own: no news
        _warn_of_columns(where, numbering=numbering, different=different, constant=constant, **odd_ones)
    holds = {name: _holds(values[name]) for name in left}
    numeric = [name for name in left if holds[name] == "numbers"] if features is None else features
    others = [name for name in left if holds[name] != "numbers" and name not in numeric]
    odd = next((name for name in others if words is None and holds[name] != "text"), None)
    if features is not None:  # what is neither used nor an attribute may be of any type
        odd, others = None, [name for name in others if holds[name] == "text"]
    words = [*(others if words is None else words), *labels]
    if odd is not None:
        raise DataError(
            f"column {odd!r} of {where} contains {holds[odd]}, which is neither a feature nor a label; encode it as "
            "numbers, leave it out, or name the columns that are attributes: attributes=[...]"
        )
    unknown = [name for name in (*numeric, *words) if not isinstance(name, str) or name not in values]
    if unknown:
        raise DataError(f"{where} has no column {unknown[0]!r}; it has {_shown(names)}")
    if not numeric:
        raise DataError(f"{where} has no numeric column other than grades and ids; name the features: features=[...]")
    no_feature = next((name for name in numeric if _holds(values[name]) != "numbers"), None)
    if no_feature is not None:
        raise DataError(
            f"column {no_feature!r} of {where} contains {_holds(values[no_feature])} and is not a feature; leave it "
            "out, or encode it as numbers first, or fit a BoostedRanker in Python on a frame of pandas: "
            f"frame.astype({{{no_feature!r}: 'category'}})"
        )
    grades, ids = (values.get(roles[role] or "") for role in ("relevance", "document"))
    queries = Queries.from_arrays(
        np.column_stack([values[name].astype(np.float64) for name in numeric]),
        grades,
        qid=values[of_query],
        documents=None if ids is None else ids.tolist(),
        attributes={name: _labels(values[name]) for name in words},
        feature_names=numeric,
        unjudged=unjudged,
    )
    if missing is None:
        queries.check_no_missing(f"Impute it, or leave the document out, or {KEEP_MISSING}.")
    return queries


def _labels(values: NDArray[Any]) -> NDArray[Any]:
    """The labels of a column: an empty text is none."""
    if values.dtype != object or not any(isinstance(one, str) and not one for one in values):
        return values
    return np.array([None if isinstance(one, str) and not one else one for one in values], dtype=object)


def _columns(
    frame: Any, names: list[str], where: str, used: Sequence[str], roles: Sequence[str | None], missing: float | None
) -> dict[str, NDArray[Any]]:
    """The columns by name. A missing value is an error that names all columns with such, unless `missing` replaces it
    in numbers; columns that are not `used` are left out instead, with a warning if they are text, which could be an
    attribute."""
    values: dict[str, NDArray[Any]] = {}
    faults: dict[str, str] = {}
    for name in names:
        try:
            values[name] = column_of(frame, name, where, None if name in roles else missing)
        except DataError as error:
            faults[name] = str(error)
    _warn_of_columns(where, missing=[name for name in faults if name not in used and _is_text(frame, name)])
    faults = {name: text for name, text in faults.items() if name in used}
    if faults:
        others = f"; {len(faults)} columns have missing values: {_shown([*faults])}" if len(faults) > 1 else ""
        first = next(iter(faults))
        keep = "" if first in roles or _is_text(frame, first) else f", or {KEEP_MISSING}"
        raise DataError(f"{faults[first]}{keep}, or drop columns: frame.drop(columns={[*faults]}){others}")
    return values


GRADES = re.compile("relevan|label|grade|judg|click|rating|score|target|stars|gain|^rel|^y$", re.IGNORECASE)
"""Names of columns that are likely to hold grades."""

GRADED = re.compile("(^|_)(relevance|label|grade|judge?ment)s?$", re.IGNORECASE)  # likely to hold nothing else
FEW_GRADES, FEW_ROWS = 32, 20  # distinct values of a column of grades; rows of a table that are too few to say


def _no_grades(where: str, values: dict[str, NDArray[Any]]) -> str:
    """The message for a table without a column of grades: the candidates, the likeliest first."""
    candidates = sorted(_like_grades(values), key=lambda name: GRADES.search(name) is None)
    usual, last = ", ".join(USUAL["relevance"]), "or relevance=None if the table has no grades"
    if not candidates:
        return f"{where} has no column of grades ({usual}); pass relevance='its name', {last}"
    called = [name for name in candidates if GRADES.search(name)] or candidates
    cure = f"relevance={called[0]!r}" if len(called) == 1 else "relevance='its name'"
    pass_ = "pass" if len(called) == 1 else "choose one of them:"
    return f"{where} has no column of grades ({usual}), but {_shown(candidates)} may hold them; {pass_} {cure}, {last}"


def _like_grades(values: dict[str, NDArray[Any]]) -> list[str]:
    """The columns of a few different integers from 0."""
    return [
        name
        for name, column in values.items()
        if column.dtype.kind in "biuf" and (column >= 0).all() and (column == np.floor(column)).all()
        and 1 < np.unique(column).size <= FEW_GRADES
    ]  # fmt: skip


ID = re.compile(r"(^|[_\W])(id|key|index|row|nr|no)$|Id$|ID$|^Unnamed|^$")
"""Names of columns that identify rows."""


def _numbering(frame: Any, values: dict[str, NDArray[Any]]) -> tuple[list[str], list[str]]:
    """The columns that number the rows: the index that pandas wrote, and different integers that are consecutive or
    called an id; and other columns of integers that are all different."""
    schema = getattr(getattr(frame, "schema", None), "pandas_metadata", None) or {}
    index = [name for name in schema.get("index_columns", ()) if isinstance(name, str)]
    numbering: list[str] = []
    different: list[str] = []
    for name, column in values.items():
        if name in index or name.startswith("__index_level_"):
            numbering.append(name)
        elif column.size > FEW_ROWS and _is_integer(column) and np.unique(column).size == column.size:
            consecutive = float(column.max()) - float(column.min()) == column.size - 1
            (numbering if consecutive or ID.search(name) else different).append(name)
    return numbering, different


def _is_integer(column: NDArray[Any]) -> bool:
    return column.dtype.kind in "iu" or (column.dtype.kind == "f" and bool((column == np.floor(column)).all()))


def _warn_of_columns(where: str, **columns: Sequence[str]) -> None:
    texts = {
        "numbering": "number the rows and are not used as features; pass features=[...] to use them",
        "different": "have another integer in each row, as ids have, and are features; if ids, pass features=[...]",
        "constant": "have one value only: they are used and change no order; optional cure: frame.drop(columns=...)",
        "missing": "lack values and are no attributes; fill them in if constraints use them",
        "queries": "are features although they are called like ids of queries; leave them out, or pass features=[...]",
        "graded": "are features although they are called like grades and hold a few integers; if grades, drop them: "
        "frame.drop(columns=...)",
        "grades": "are features although they are called like grades or ids; leave them out of X",
        "rows": "are features although they number the rows; leave them out of X",
    }
    for kind, names in columns.items():
        if names:
            shown = _shown([name or "'' (without a name)" for name in names])
            warnings.warn(f"columns of {where} {texts[kind]}: {shown}", ColumnWarning, stacklevel=4)


def warn_of_features(X: Any) -> None:
    """Warn of columns of a frame of features that are called like grades or documents, or that number the rows."""
    names = column_names(X)
    if names is None or not hasattr(X, "__getitem__"):
        return
    called = [str(name) for name in named_as((*USUAL["relevance"], *USUAL["document"]), names)]
    table = {str(name): as_array(X.column(name) if hasattr(X, "column_names") else X[name]) for name in names}
    numbers = {name: one for name, one in table.items() if isinstance(one, np.ndarray) and one.dtype.kind in "iu"}
    numbering, _ = _numbering(X, {name: one for name, one in numbers.items() if name not in called})
    _warn_of_columns("X", grades=called, rows=numbering)


def table_at(path: str) -> Any:
    """Read the file as a pyarrow table. OptionError if pyarrow is missing."""
    ending = next((one for one in sorted(ENDINGS, key=len, reverse=True) if path.lower().endswith(one)), None)
    if ending is None:
        raise DataError(
            f"{path} has an unknown file type; read_table reads {', '.join(ENDINGS)}, read_svmlight LETOR files"
        )
    module, reader = ENDINGS[ending]
    try:
        read = getattr(import_module(module), reader)
    except ImportError as error:
        raise OptionError(f"{path} cannot be read because {error}; pip install pyarrow") from error
    try:
        return read(path) if reader == "read_table" else _read_text(path, read)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # base classes of pyarrow's errors
        raise DataError(f"{path} is not a readable {ending[1:]} file: {error}") from error


SEPARATORS = ",;\t|"
DECIMAL_COMMA = re.compile("[-+]?[0-9]+,[0-9]+")


def separator_of(path: str) -> str:
    """What separates the columns of a text file: the separator that its header has most of."""
    with open(path, "rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"  # as all readers of text tell, whatever the name
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            header = re.sub(rb'"[^"]*"', b"", file.readline(1 << 20)).decode(errors="replace")
    except (OSError, EOFError, zlib.error):  # the reader names what is damaged
        return ","
    return max(SEPARATORS, key=header.count)


def _read_text(path: str, read: Any) -> Any:
    """A CSV file as a table; where semicolons separate and numbers have decimal commas, these are read."""
    arrow = import_module("pyarrow.csv")
    parse = arrow.ParseOptions(delimiter=separator_of(path))
    table = read(path, parse_options=parse)
    if parse.delimiter != "," and "double" not in map(str, table.schema.types):
        first = [one for row in table.slice(0, 1).to_pylist() for one in row.values()]
        if any(isinstance(one, str) and DECIMAL_COMMA.fullmatch(one) for one in first):
            table = read(path, parse_options=parse, convert_options=arrow.ConvertOptions(decimal_point=","))
    names = [name.strip() for name in table.column_names]
    if len(names) == 1:
        raise DataError(f"it has only one column, {names[0]!r:.80}; separate columns by commas, semicolons, tabs or |")
    return table.rename_columns(names)


def find_column(role: str, wanted: str | None, names: list[str], where: str) -> str | None:
    """The column of a role: the wanted one, else the one with a usual name, else None."""
    if wanted is not None:
        if not isinstance(wanted, str) or wanted not in names:
            raise DataError(f"{where} has no column {wanted!r}; it has {_shown(names)}")
        return wanted
    found = query_columns(names) if role == "qid" else named_as(USUAL[role], names)
    if len(found) > 1:
        raise DataError(f"{where} has the columns {_shown(found)}; choose one: {role}='{found[0]}'")
    return found[0] if found else None


def _is_text(frame: Any, name: str) -> bool:
    column = frame.column(name) if hasattr(frame, "column_names") else frame[name]
    kind = str(getattr(column, "type", None) or column.dtype).lower()
    return "str" in kind or kind == "object"


def column_of(frame: Any, name: str, location: str, missing: float | None = None) -> NDArray[Any]:
    """A column as an array of numbers or of objects; a missing value is an error that names its row, unless `missing`
    replaces it in numbers."""
    column = frame.column(name) if hasattr(frame, "column_names") else frame[name]
    if missing is not None and not _is_text(frame, name):
        found = as_array(column)
        if found.dtype == object:  # pandas' integers with NA
            found = np.array([np.nan if is_missing(value) else value for value in found.tolist()])
        if found.dtype.kind == "f":
            return np.where(np.isnan(found), missing, found)
    if hasattr(column, "null_count") and not callable(column.null_count) and column.null_count:
        raise DataError(_no_value(name, location, np.flatnonzero(np.asarray(column.is_null())).tolist()))
    values = np.asarray(column.to_numpy())
    if values.dtype == object:
        empty = [row for row, value in enumerate(values) if is_missing(value)]
        if empty:
            raise DataError(_no_value(name, location, empty))
    return values


def _no_value(name: str, location: str, rows: Sequence[int]) -> str:
    others = f" and in {len(rows) - 1} others" if len(rows) > 1 else ""
    return (
        f"column {name!r} of {location} has no value in row {rows[0]}{others}; fill them, as in frame.fillna(0) or by "
        "SimpleImputer, or leave these rows out"
    )


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


QID, DOCUMENT = "qid", "docid"  # the columns that identify the document of a line
INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,17})")  # '007' is a string
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
WIDEST = 100  # maximum ratio of the size of a fixed-width string array to the total length of its strings; else objects

Key = tuple[str, str]


def read_attributes(
    path: str | PathLike[str], queries: Queries, *, columns: list[str] | None = None, qid: str = QID,
    document: str = DOCUMENT,
) -> Queries:  # fmt: skip
    """Add attributes of documents from a CSV file (UTF-8, with a header) to queries.

    The columns `qid` and `docid` identify the document, as text; qid, document: their names in this file, if they have
    others. columns: the other columns to read, by default all. A column of integers becomes int64, of finite numbers
    float64, else strings; an empty field is no label. Lines of other documents are ignored.
    Raises DataError naming file and line for a repeated key, a missing or unknown column, a line of another length, and
    for a document that the file lacks.
    """
    file = as_path(path, DataError)
    check_type("queries", queries, Queries, error=DataError)
    if queries.document_ids is None:
        raise DataError(
            f"{file} cannot be joined because these queries have no document ids; write '#docid = NAME' after each "
            "line of their file, or add a column docid to their table."
        )
    names, lines = _table(file, columns, {QID: qid, DOCUMENT: document})
    rows = _rows_by_key(queries)
    found: list[list[str] | None] = [None] * queries.n_documents
    seen: dict[Key, int] = {}
    for number, key, values in lines:
        if seen.setdefault(key, number) != number:
            raise DataError(
                f"{file}, line {number}: query {key[0]!r}, document {key[1]!r} repeats line {seen[key]}; "
                "remove one of the two."
            )
        if key in rows:
            found[rows[key]] = values
    complete = [values for values in found if values is not None]
    if len(complete) < len(found):
        query, document = list(rows)[found.index(None)]
        raise DataError(
            f"{file} has no line for query {query!r}, document {document!r}; every document needs its attributes "
            f"({len(found) - len(complete)} lack them): add a line."
        )
    added = {name: _typed([values[c] for values in complete]) for c, name in enumerate(names)}
    return queries.replace(attributes={**queries.attributes, **added})


def _table(
    file: str, columns: list[str] | None, keys: dict[str, str]
) -> tuple[list[str], Iterator[tuple[int, Key, list[str]]]]:
    """The names of the attributes, and line number, key and values of each line. keys: names of the key columns, used
    where the file has them."""
    reader = csv.reader(_rows(file), strict=True, delimiter=separator_of(file))
    header = [name.strip() for name in _next(file, reader)]
    counts = Counter(header)
    key = tuple(own if own in counts else usual for usual, own in keys.items())
    for name in (*key, *(columns or ())):
        if counts[name] != 1:
            known = ", ".join(map(repr, header)) or "none"
            role = {QID: " Name yours: qid='...'.", DOCUMENT: " Name yours: document='...'."}.get(name, "")
            raise DataError(f"{file}, line 1: the column {name!r} is needed once; the columns are {known}.{role}")
    names = [name for name in header if name not in key] if columns is None else list(columns)
    if len(set(names)) < len(names) or not all(names):
        raise DataError(f"{file}, line 1: a column has no name or a repeated one; give each column its own name.")
    return names, _lines(file, reader, header, names, key)


def _lines(
    file: str, reader: Any, header: list[str], names: list[str], key: Sequence[str]
) -> Iterator[tuple[int, Key, list[str]]]:
    index_of = {name: index for index, name in enumerate(header)}
    qid, document = (index_of[name] for name in key)
    indices = [index_of[name] for name in names]
    while fields := _next(file, reader):
        if len(fields) != len(header):
            raise DataError(
                f"{file}, line {reader.line_num}: {len(fields)} fields but the header has {len(header)}; correct "
                "the line."
            )
        yield reader.line_num, (fields[qid].strip(), fields[document].strip()), [fields[index] for index in indices]


def _rows(file: str) -> Iterator[str]:
    """The lines of the file with their line ends, as `csv` expects them."""
    for first, text in text_blocks(file):
        if not is_text(text.replace(b"\r", b"")):
            for number, line in enumerate(text.split(b"\n"), start=first):
                check_text(line.replace(b"\r", b" "), f"{file}, line {number}")
        yield from StringIO(text.decode(), newline="")


def _next(file: str, reader: Any) -> list[str]:
    """The next non-blank line; empty at the end."""
    try:
        return next((fields for fields in reader if fields), [])
    except csv.Error as error:
        raise DataError(f"{file}, line {reader.line_num}: invalid CSV: {error}; correct the line.") from None


def _rows_by_key(queries: Queries) -> dict[Key, int]:
    documents: tuple[Hashable, ...] = queries.document_ids or ()
    queries_of_rows = queries.query_of(np.arange(queries.n_documents)).tolist()
    rows: dict[Key, int] = {}
    for row, (q, document) in enumerate(zip(queries_of_rows, documents, strict=True)):
        query = queries.query_ids[q]
        if document is None:
            raise DataError(f"Query {query!r} has a document without id, so no key identifies it; give it an id.")
        if rows.setdefault((str(query), str(document)), row) != row:
            raise DataError(
                f"Document {document!r} occurs twice in query {query!r}, so a key does not identify one row; "
                "pass arrays to replace(attributes=) instead."
            )
    return rows


def _typed(words: list[str]) -> NDArray[Any]:
    """Integers, finite numbers or strings: the first type that all words have. An empty string field is None."""
    if all(map(INTEGER.fullmatch, words)):
        return np.array([int(word) for word in words], dtype=np.int64)
    if all(map(NUMBER.fullmatch, words)) and np.isfinite(values := np.array([float(word) for word in words])).all():
        return values
    if not all(words):
        return np.array([word or None for word in words], dtype=object)
    # A string array is as wide as its longest entry; one long entry among many short ones would waste memory.
    wide = len(words) * max(map(len, words)) > WIDEST * sum(map(len, words))
    return np.array(words, dtype=object if wide else np.str_)
