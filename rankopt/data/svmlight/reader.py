"""Reader and writer of LETOR / SVMlight files; the round trip is bit-identical.

    # 1: BM25 of the title
    2 qid:q17 1:0.5 2:1e-3 # docid = GX008-86-4444840

Plain or gzip (of one or several members), UTF-8, lines ending in LF or CR LF. `parser` states the grammar. Files are
read block by block: a file larger than memory yields blocks of complete queries, with the same first error.

Feature names are comments before the data: `# 1: BM25 of the title` (one line per feature, as written here; also
`#1 name`, `# feature 1 = name`) or `# feature names: bm25 pagerank`. Numbered comments that do not name every feature
are ignored.

Measured on the sample of MSLR (6.3 MB, 5,555 × 136): .05 s by compiled code, .44 s line by line, .42 s by
`sklearn.datasets.load_svmlight_file`, which accepts nan, split queries and missing query ids.
"""

import gzip
import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import chain, takewhile
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formulations.arrays import Floats, as_path, check_type, is_sparse, to_integer
from rankopt.data.queries import Queries
from rankopt.data.svmlight.parser import LARGEST_INDEX, Parsed, Rules, joined, parse_lines, query_name
from rankopt.data.tables import is_table
from rankopt.data.text import BLOCK, clipped, is_text, text_blocks
from rankopt.data.typing import Unjudged
from rankopt.data.validation import Features, sealed
from rankopt.errors import DataError, OptionError
from rankopt.options import NAN, Interval, check

DATA = re.compile(rb"\n[ \t]*+[^# \t\r\n]")
NAMES = re.compile(
    rb"\n[ \t]*+#[ \t]*+(?:"
    rb"(features?[ _]names?[ \t]*+[:=])|"
    rb"(?:feature[ \t]++)?([0-9]{1,10})(?:[ \t]*+[:=](?=[ \t]*+[^ \t\r\n])|[ \t]++(?=[^\r\n]))"
    rb")([^\n]*+)",
    re.IGNORECASE,
)
"""Both begin with the preceding line end, which is faster to find than a line start."""


class Header:
    """Feature names in the comments before the data; call `take` with each block of text until `done`."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.done = False
        self.listed: list[str] | None = None
        self.numbered: dict[int, tuple[str, int]] = {}

    def take(self, text: bytes, first_line: int) -> None:
        """Read the block up to the first line of data."""
        if not text.strip():
            return
        text = b"\n" + text
        data = DATA.search(text)
        end = data.start() if data else len(text)
        number, counted = first_line - 1, 0
        for found in NAMES.finditer(text, 0, end):
            number += text.count(b"\n", counted, found.start() + 1)
            counted = found.start() + 1
            listed, digits, rest = found.groups()
            words = rest.decode(errors="replace").strip()
            if listed and words:
                self.listed = _distinct(((name, number) for name in words.split()), f"{self.file}, line ")
                break
            if digits and words:
                self.numbered[int(digits)] = words, number
        self.done = data is not None or self.listed is not None

    def names(self, greatest: int, n_features: int | None) -> list[str] | None:
        """The names of features 1, ..., d, or None if the header does not name all. d is `n_features` if set, else the
        greatest index of the data. Raises DataError for a repeated name and if the number of names differs from
        n_features."""
        names = self.listed
        if names is None:
            count = len(self.numbered)
            if count < max(greatest, 1) or min(self.numbered) != 1 or max(self.numbered) != count:
                return None
            names = _distinct((self.numbered[index] for index in range(1, count + 1)), f"{self.file}, line ")
        if n_features is not None and len(names) != n_features:
            raise DataError(
                f"{self.file}: the header names {len(names)} features but n_features is {n_features}; omit n_features."
            )
        return names


def header_lines(names: tuple[str, ...]) -> Iterator[str]:
    """The lines that `Header` reads. Raises DataError for a name that cannot be written."""
    for index, name in enumerate(_distinct(((name, "") for name in names), "The header"), start=1):
        if name != name.strip() or not name or not name.isprintable():
            raise DataError(f"Feature name {name!r} cannot be written; use printable characters, no blanks around it.")
        yield f"# {index}: {name}\n"


def _distinct(names: Any, where: str) -> list[str]:
    known: dict[str, None] = {}
    for name, number in names:
        if name in known:
            raise DataError(f"{where}{number} names two features {clipped(name.encode())!r}; give each its own name.")
        known[name] = None
    return list(known)


COMPILED_FROM = 1 << 23
"""Bytes of uncompressed text from which compiled code reads a file.

Measured: 8 MB take half a second line by line; compiling takes three seconds once, loading compiled code a tenth.
"""

AHEAD = COMPILED_FROM  # bytes of text decompressed before parsing, so that damage to a small file is reported first


class SvmlightParser:
    """The parsed lines of a file, about `size` bytes of text at a time; `header` is filled while they are read.
    missing, unjudged, dtype, n_features: as for `read_svmlight`."""

    def __init__(
        self,
        path: str | PathLike[str],
        missing: float | None,
        unjudged: Unjudged,
        dtype: Any,
        n_features: int | None,
        size: int = BLOCK,
    ) -> None:
        self.file, self.size = as_path(path, DataError), size
        self.header = Header(self.file)
        width = LARGEST_INDEX if n_features is None else n_features
        if not 1 <= (to_integer(width) or 0) <= LARGEST_INDEX:
            raise OptionError(f"n_features cannot be {n_features!r}; it must be an integer from 1 to {LARGEST_INDEX}.")
        self.n_features = None if n_features is None else int(n_features)
        self.rules = Rules(self.file, missing, unjudged is not None, _limit(dtype), int(width), "n_features")
        check("missing", missing, (Interval(-self.rules.limit, self.rules.limit, "neither"), NAN, None))

    def __iter__(self) -> Iterator[Parsed]:
        blocks, first, size = text_blocks(self.file, self.size), [], 0
        while size < AHEAD and (block := next(blocks, None)):
            first.append(block)
            size += len(block[1])
        compiled = size >= COMPILED_FROM
        rules, seen, empty = self.rules, dict[bytes, int](), True
        for number, text in chain(first, blocks):
            if not self.header.done:
                rules = self._headed(rules, text, number)
            parsed = None
            if compiled:
                from rankopt.data.svmlight.fast import parse_bytes

                parsed = parse_bytes(text, number, rules, seen)
            parsed = parsed or parse_lines(text, number, rules, seen)
            if parsed.grades.size:
                empty = False
                yield parsed
        if empty:
            raise DataError(f"{self.file} is empty: it has no line of data.")

    def _headed(self, rules: Rules, text: bytes, number: int) -> Rules:
        """The rules with the number of features from the header."""
        if not is_text(text):  # the lines before the first that is not text
            lines = list(takewhile(is_text, text.split(b"\n")))
            text = b"\n".join(lines)
        self.header.take(text, number)
        if not self.header.done:
            return rules
        names = self.header.names(self.n_features or LARGEST_INDEX, self.n_features)
        return replace(rules, width=len(names), source="the header") if names and not self.n_features else rules


def _limit(dtype: Any) -> float:
    """The bound on the magnitude of numbers that are finite in this type."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise OptionError(f"dtype cannot be {dtype!r}; it is float64 or float32.")
    return np.inf if kind == np.float64 else (2 - 2.0**-24) * 2.0**127


SPARSE_BELOW = 0.1  # with sparse="auto" features are CSR if a smaller share of them is in the file
SMALL, LARGER = 1 << 28, 1000
"""Dense arrays up to SMALL bytes are always allocated; larger ones up to LARGER times the size of the text."""


def features_of(parsed: Parsed, d: int, dtype: np.dtype[Any], sparse: bool | str, where: str | None) -> Features:
    """The table (N, d) of all entries, read-only. where: the line with the greatest index, for the error about an
    oversized array; None if the caller set d."""
    n = parsed.grades.size
    values = parsed.values.astype(dtype, copy=False)
    for array in (values, parsed.columns, parsed.bounds):
        sealed(array)
    if sparse is True or (sparse == "auto" and values.size < SPARSE_BELOW * n * d):
        from scipy.sparse import csr_array

        return csr_array((values, parsed.columns, parsed.bounds), shape=(n, d))
    if values.size == n * d:  # indices increase, so each line has all features
        return values.reshape(n, d)
    size = n * d * dtype.itemsize
    if where is not None and size > max(SMALL, LARGER * parsed.size):
        raise DataError(
            f"{where} requires an array of {n} documents × {d} features, {size / 2**30:.1f} GiB from {parsed.size} "
            f"bytes of text; read with sparse=True, or pass n_features={d} if it is intended."
        )
    table = np.zeros((n, d), dtype=dtype)
    table[np.repeat(np.arange(n), np.diff(parsed.bounds)), parsed.columns] = values
    return sealed(table)


def read_svmlight(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: Unjudged = None,
    dtype: Any = np.float64,
    sparse: bool | str = "auto",
    n_features: int | None = None,
) -> Queries:
    """Read a file of graded documents, strictly.

    missing: the value of features written `nan` or `NULL`: a number, nan to keep them, or None, which raises DataError.
    unjudged: the meaning of negative grades: a grade >= 0, or "drop" to drop the document; None raises DataError.
    dtype: float64 or float32. sparse: True for CSR, False for an array, "auto" for CSR if under 10% is written.
    n_features: the number d of features; by default the number of names in the header, else the greatest index.

    Query ids are integers if written as integers, else strings; document ids are strings. Raises DataError naming file
    and line, also for a dense array out of proportion to the file; FileNotFoundError for a missing file.
    """
    if not isinstance(sparse, bool | str) or sparse not in (True, False, "auto"):
        raise OptionError(f"sparse cannot be {sparse!r}; it is True, False or 'auto'.")
    if isinstance(path, str | PathLike) and is_table(path):
        raise DataError(f"{fspath(path)} is a table, not a LETOR / SVMlight file; read it by rankopt.data.read_table.")
    reading = SvmlightParser(path, missing, unjudged, dtype, n_features)
    parsed = joined(list(reading))
    greatest, _ = parsed.greatest()
    names = reading.header.names(reading.n_features or greatest, reading.n_features)
    d = reading.n_features or (len(names) if names else greatest)
    if isinstance(unjudged, str) and unjudged == "drop" and parsed.grades.max() < 0:
        raise DataError(
            f"{reading.file}: all grades are negative and unjudged='drop' leaves no document; add grades >= 0."
        )
    return queries_of(parsed, reading, d, names, unjudged, dtype, sparse)


def queries_of(
    parsed: Parsed, reading: SvmlightParser, d: int, names: list[str] | None, unjudged: Unjudged, dtype: Any, sparse:
    bool | str,
) -> Queries:  # fmt: skip
    """The queries of these lines, of d features; the options are those of `read_svmlight`."""
    greatest, line = parsed.greatest()
    if d == 0:
        raise DataError(f"{reading.file}: no line has a feature; write 'grade qid:QUERY 1:value ...'.")
    ids = np.empty(parsed.starts.size, dtype=object)
    ids[:] = [query_name(token) for token in parsed.qids]
    where = None if reading.n_features else f"{reading.file}, line {line}: feature {greatest}"
    return Queries.from_arrays(
        features_of(parsed, d, np.dtype(dtype), sparse, where),
        parsed.grades,
        qid=np.repeat(ids, np.diff(np.append(parsed.starts, parsed.grades.size))),
        documents=None if not any(parsed.documents) else parsed.documents,
        feature_names=names,
        unjudged=unjudged,
    )


QUERIES_BLOCK = 1 << 26  # bytes of text per block of queries


def read_svmlight_blocks(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: Unjudged = None,
    dtype: Any = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    block: int = QUERIES_BLOCK,
) -> Iterator[Queries]:
    """Iterate over blocks of queries of a file, of about `block` bytes of text each; see `read_svmlight`.

    n_features: by default that of the header, else of the first block; a greater index later raises DataError. A query
    is never split between blocks, and one that reappears raises DataError.
    """
    if (to_integer(block) or 0) < 1:
        raise OptionError(f"block cannot be {block!r}; it is a number of bytes from 1.")
    if not isinstance(sparse, bool | np.bool_):
        raise OptionError(f"sparse cannot be {sparse!r} because all blocks are of one kind; it is True or False.")
    reading = SvmlightParser(path, missing, unjudged, dtype, n_features, min(int(block), BLOCK))
    return _blocks(reading, unjudged, dtype, sparse, int(block))


def _blocks(reading: SvmlightParser, unjudged: Unjudged, dtype: Any, sparse: bool, block: int) -> Iterator[Queries]:
    d, names, empty = 0, None, True
    for parsed in _complete_queries(reading, block):
        greatest, line = parsed.greatest()
        if d == 0:
            names = reading.header.names(reading.n_features or greatest, reading.n_features)
            d = reading.n_features or (len(names) if names else greatest)
        if greatest > d:
            raise DataError(
                f"{reading.file}, line {line}: feature {greatest} but the first block has {d}; pass "
                f"n_features={greatest} or more."
            )
        if unjudged != "drop" or parsed.grades.max() >= 0:
            yield queries_of(parsed, reading, d, names, unjudged, dtype, sparse)
            empty = False
    if empty:
        raise DataError(
            f"{reading.file}: all grades are negative and unjudged='drop' leaves no document; add grades >= 0."
        )


def _complete_queries(reading: SvmlightParser, block: int) -> Iterator[Parsed]:
    """Parsed lines of complete queries, in time linear in the number of lines."""
    held: list[Parsed] = []
    size = 0
    for parsed in reading:
        if size + parsed.size >= block and parsed.qids and (held or parsed.starts[-1]):
            before, parsed = parsed.cut()
            if before.grades.size:
                held.append(before)
            yield joined(held)
            held, size = [], 0
        held.append(parsed)
        size += parsed.size
    yield joined(held)


WORD = re.compile(r"[^\s\x00-\x1f\x7f]+")


def write_svmlight(queries: Queries, path: str | PathLike[str]) -> None:
    """Write grades, query ids, features, document ids and feature names, query by query; gzip where the path ends with
    `.gz`.

    Numbers are the shortest that read back to the same bits (float32 features with dtype=np.float32). Arrays
    are written with zeros, CSR as stored. Integer query ids are read back as integers, all other ids as strings. The
    format has no attributes. Raises DataError for missing grades and for ids and names that cannot be written.
    """
    file = as_path(path, DataError)
    check_type("queries", queries, Queries, error=DataError)
    if queries.relevance is None:
        raise DataError(f"{file} cannot be written: these queries have no grades; add them by replace(relevance=).")
    queries.check_features()
    text = "".join(_lines(queries.grouped(), queries.relevance[queries.rows])).encode()
    Path(file).write_bytes(gzip.compress(text, mtime=0) if file.endswith(".gz") else text)


def _lines(queries: Queries, relevance: Floats) -> Iterator[str]:
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
    # A stored zero in the first row preserves the number of features.
    is_padded = row == 0 and queries.feature_names is None and table.indices.max(initial=-1) + 1 < queries.n_features
    return entries + (f" {queries.n_features}:0" if is_padded else "")


def _items(values: Any) -> list[Any]:
    return values.tolist() if values.dtype == np.float64 else list(values)


def number(value: Any) -> str:
    """The shortest decimal that reads back to the same double, or the same float32 by way of a double."""
    text = str(value)
    if isinstance(value, np.float32) and np.float32(float(text)) != value:
        text = repr(float(value))  # the shortest float32 does not survive double rounding
    return text.removesuffix(".0")


def _word(name: Hashable, kind: str, without: str, forbidden: str) -> str:
    known = isinstance(name, (str, int, np.integer)) and not isinstance(name, bool)
    text = str(name)
    if not known or not WORD.fullmatch(text) or (forbidden and forbidden in text):
        raise DataError(f"{kind} {name!r} cannot be written; use an integer, or a string without {without}.")
    return text
