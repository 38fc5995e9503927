"""Attributes of documents from a CSV file, keyed by query and document.

qid,docid,site,year
q17,GX008-86-4444840,a.org,2004

Plain or gzip, UTF-8.
"""

import csv
import re
from collections import Counter
from collections.abc import Hashable, Iterator
from io import StringIO
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.text import check_text, is_text, text_blocks
from rankopt.errors import DataError

QID, DOCUMENT = "qid", "docid"
"""The columns that identify the document of a line."""

INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,17})")  # '007' is a string
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

WIDEST = 100
"""Maximum ratio of the size of a fixed-width string array to the total length of its strings; else objects."""

Key = tuple[str, str]


def read_attributes(path: str | PathLike[str], queries: Queries, *, columns: list[str] | None = None) -> Queries:
    """Add attributes of documents from a CSV file (UTF-8, with a header) to queries.

    The columns `qid` and `docid` identify the document, as text. columns: the other columns to read, by default all. A
    column of integers becomes int64, of finite numbers float64, else strings. Lines of other documents are ignored.
    Raises DataError naming file and line for a repeated key, a missing or unknown column, a line of another length, and
    for a document that the file lacks.
    """
    file = fspath(path)
    if queries.document_ids is None:
        raise DataError(
            f"{file} cannot be joined because these queries have no document ids; write '#docid = NAME' after each "
            "line of their file, or add a column docid to their table."
        )
    names, lines = _table(file, columns)
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


def _table(file: str, columns: list[str] | None) -> tuple[list[str], Iterator[tuple[int, Key, list[str]]]]:
    """The names of the attributes, and line number, key and values of each line."""
    reader = csv.reader(_rows(file), strict=True)
    header = [name.strip() for name in _next(file, reader)]
    counts = Counter(header)
    for name in (QID, DOCUMENT, *(columns or ())):
        if counts[name] != 1:
            known = ", ".join(map(repr, header)) or "none"
            raise DataError(f"{file}, line 1: the column {name!r} is needed once; the columns are {known}.")
    names = [name for name in header if name not in (QID, DOCUMENT)] if columns is None else list(columns)
    if len(set(names)) < len(names) or not all(names):
        raise DataError(f"{file}, line 1: a column has no name or a repeated one; give each column its own name.")
    return names, _lines(file, reader, header, names)


def _lines(file: str, reader: Any, header: list[str], names: list[str]) -> Iterator[tuple[int, Key, list[str]]]:
    index_of = {name: index for index, name in enumerate(header)}
    qid, document = index_of[QID], index_of[DOCUMENT]
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
    queries_of_rows = np.repeat(np.arange(len(queries)), np.diff(queries.offsets)).tolist()
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
