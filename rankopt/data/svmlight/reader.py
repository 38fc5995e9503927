"""LETOR / SVMlight files: queries in, queries out, bit for bit.

    # 1: BM25 of the title
    2 qid:q17 1:0.5 2:1e-3 # docid = GX008-86-4444840

Plain or gzip (of one or several members), UTF-8, lines ending in LF or CR LF. `lines` states the format.
"""

import codecs
import gzip
import zlib
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from rankopt.data.queries import Queries
from rankopt.data.svmlight.header import header_names
from rankopt.data.svmlight.lines import LARGEST_INDEX, Parsed, parse_lines, query_name
from rankopt.data.values import Features, sealed
from rankopt.errors import DataError, OptionError

SPARSE_BELOW = 0.1
"""With sparse="auto": features are CSR where a smaller part of them is written in the file."""

COMPILED_FROM = 2**18
"""Bytes of text from which compiled code is worth loading."""


def read_svmlight(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: float | str | None = None,
    dtype: Any = np.float64,
    sparse: bool | str = "auto",
    n_features: int | None = None,
) -> Queries:
    """Read a file of graded documents, strictly.

    missing: the value of features written `nan` or `NULL`; None refuses them.
    unjudged: what a negative grade means: a grade >= 0, or "drop" to leave the document out; None refuses it.
    dtype: float64 or float32. sparse: True for CSR, False for an array, "auto" for CSR where under 10% is written.
    n_features: the number d of features; by default the number of names in the header, else the greatest index.

    Query ids are integers where the file writes integers, else strings; document ids are strings. Raises DataError
    naming file and line; a missing file is Python's own FileNotFoundError.
    """
    file = fspath(path)
    return queries_of_text(
        _text(file), file, missing=missing, unjudged=unjudged, dtype=dtype, sparse=sparse, n_features=n_features
    )


def queries_of_text(
    text: bytes,
    file: str,
    *,
    missing: float | None,
    unjudged: float | str | None,
    dtype: Any,
    sparse: bool | str,
    n_features: int | None,
    first_line: int = 1,
) -> Queries:
    """The queries of a text that begins with this line of the file; the options are those of `read_svmlight`."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise OptionError(f"dtype cannot be {dtype!r}; it is float64 or float32.")
    if missing is not None and not np.isfinite(missing):
        raise OptionError(f"missing = {missing} is not finite, and rankings need finite features; pass a number.")
    parsed = _parsed(text, file, missing, unjudged, first_line)
    greatest = int(parsed.columns.max(initial=-1)) + 1
    names = header_names(text, file, greatest)
    d = _width(greatest, names, n_features, file)
    ids = np.empty(parsed.starts.size, dtype=object)
    ids[:] = [query_name(token) for token in parsed.qids]
    return Queries.from_arrays(
        _features(parsed, d, np.dtype(dtype), sparse),
        parsed.grades,
        qid=np.repeat(ids, np.diff(np.append(parsed.starts, parsed.grades.size))),
        documents=None if not any(parsed.documents) else [d and d.decode() for d in parsed.documents],
        feature_names=names,
        unjudged=unjudged,
    )


def _text(file: str) -> bytes:
    """The bytes of a file, unpacked."""
    text = Path(file).read_bytes()
    if text[:2] == b"\x1f\x8b":
        try:
            text = gzip.decompress(text)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{file} cannot be unpacked: {error}; it is damaged or cut short, get it again.") from None
    return text.removeprefix(codecs.BOM_UTF8)


def _parsed(text: bytes, file: str, missing: float | None, unjudged: Any, first_line: int) -> Parsed:
    """Large texts by compiled code; small ones, and whatever it finds odd, line by line."""
    if len(text) >= COMPILED_FROM:
        from rankopt.data.svmlight.fast import parse_bytes

        parsed = parse_bytes(text, missing)
        if parsed is not None and (unjudged is not None or not (parsed.grades < 0).any()):
            return parsed
    return parse_lines(text, file, missing, unjudged, first_line)


def _width(greatest: int, names: list[str] | None, n_features: int | None, file: str) -> int:
    """The number d of features, by the caller's word, the header or the greatest index."""
    if n_features is not None and not 1 <= n_features <= LARGEST_INDEX:
        raise DataError(f"n_features = {n_features} is no number of features; give one from 1 to {LARGEST_INDEX}.")
    d = n_features if n_features is not None else len(names) if names is not None else greatest
    if names is not None and len(names) != d:
        raise DataError(f"{file}: the header names {len(names)} features but n_features is {d}; leave n_features out.")
    if greatest > d:
        said = "n_features" if n_features is not None else "the header"
        raise DataError(f"{file}: a line has feature {greatest} but {said} says there are {d}; raise or mend it.")
    if d == 0:
        raise DataError(f"{file}: no line has a feature; write 'grade qid:QUERY 1:value ...'.")
    return d


def _features(parsed: Parsed, d: int, dtype: np.dtype[Any], sparse: bool | str) -> Features:
    """The table (N, d) of all entries, read-only."""
    n = parsed.grades.size
    values = parsed.values.astype(dtype, copy=False)
    for array in (values, parsed.columns, parsed.bounds):
        sealed(array)
    if sparse not in (True, False, "auto"):
        raise OptionError(f"sparse cannot be {sparse!r}; it is True, False or 'auto'.")
    if sparse is True or (sparse == "auto" and values.size < SPARSE_BELOW * n * d):
        from scipy.sparse import csr_array

        return csr_array((values, parsed.columns, parsed.bounds), shape=(n, d))
    if values.size == n * d:  # rising indices, so each line has them all
        return values.reshape(n, d)
    table = np.zeros((n, d), dtype=dtype)
    table[np.repeat(np.arange(n), np.diff(parsed.bounds)), parsed.columns] = values
    return sealed(table)
