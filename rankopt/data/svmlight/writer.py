"""Queries written as a LETOR / SVMlight file that `read_svmlight` gives back bit for bit."""

import gzip
import re
from collections.abc import Hashable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.svmlight.reader import header_lines
from rankopt.data.validation import is_sparse
from rankopt.errors import DataError

WORD = re.compile(r"[^\s\x00-\x1f\x7f]+")


def write_svmlight(queries: Queries, path: str | PathLike[str]) -> None:
    """Write grades, query ids, features, document ids and feature names; gzip where the path ends with `.gz`.

    Numbers are the shortest that read back to the same bits (features of float32: with dtype=np.float32). An array is
    written whole, CSR as it is stored. Ids are written as text: integers among query ids come back as integers, all
    others as strings. Attributes have no place in this format. Raises DataError for missing grades, and for ids and
    names that a line cannot hold.
    """
    file = fspath(path)
    if queries.relevance is None:
        raise DataError(
            f"{file} cannot be written because these queries have no grades; add them by with_(relevance=)."
        )
    queries.check_features()
    text = "".join(_lines(queries, queries.relevance)).encode()
    Path(file).write_bytes(gzip.compress(text, mtime=0) if file.endswith(".gz") else text)


def _lines(queries: Queries, relevance: NDArray[np.float64]) -> Iterator[str]:
    if queries.feature_names is not None:
        yield from header_lines(queries.feature_names)
    names = [_word(name, "Query id", "'#' and blanks", "#") for name in queries.query_ids]
    if len(set(names)) < len(names):
        raise DataError("Two query ids are the same in writing, as 1 and '1' are; rename one of them.")
    for name, start, stop in zip(names, queries.offsets, queries.offsets[1:], strict=False):
        for row in range(start, stop):
            document = None if queries.document_ids is None else queries.document_ids[row]
            comment = "" if document is None else f" #docid = {_word(document, 'Document id', 'blanks', '')}"
            yield f"{number(relevance[row])} qid:{name}{_entries(queries, row)}{comment}\n"


def _entries(queries: Queries, row: int) -> str:
    table = queries.features
    if not is_sparse(table):
        return "".join(f" {index}:{number(value)}" for index, value in enumerate(_items(table[row]), start=1))
    start, stop = table.indptr[row], table.indptr[row + 1]
    columns, values = table.indices[start:stop].tolist(), _items(table.data[start:stop])
    entries = "".join(f" {column + 1}:{number(value)}" for column, value in zip(columns, values, strict=True))
    # A stored zero in the first row tells the reader of features that no row has.
    untold = row == 0 and queries.feature_names is None and table.indices.max(initial=-1) + 1 < queries.n_features
    return entries + (f" {queries.n_features}:0" if untold else "")


def _items(values: Any) -> list[Any]:
    return values.tolist() if values.dtype == np.float64 else list(values)


def number(value: Any) -> str:
    """The shortest decimal that reads back to the same double, or the same float32 by way of a double."""
    text = str(value)
    if isinstance(value, np.float32) and np.float32(float(text)) != value:
        text = repr(float(value))  # the shortest float32 stands too near the middle of two to be rounded twice
    return text.removesuffix(".0")


def _word(name: Hashable, kind: str, without: str, forbidden: str) -> str:
    known = isinstance(name, (str, int, np.integer)) and not isinstance(name, bool)
    text = str(name)
    if not known or not WORD.fullmatch(text) or (forbidden and forbidden in text):
        raise DataError(f"{kind} {name!r} cannot be written; use an integer, or a string without {without}.")
    return text
