"""LETOR / SVMlight files larger than memory: read in blocks of whole queries."""

import gzip
import zlib
from collections.abc import Iterator
from os import PathLike, fspath
from typing import IO, Any, cast

import numpy as np

from rankopt.data.queries import Queries
from rankopt.data.svmlight.reader import queries_of_text
from rankopt.errors import DataError

__all__ = ["read_svmlight_blocks"]

BLOCK = 1 << 26
"""Bytes of text that are read at a time."""


def read_svmlight_blocks(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: float | str | None = None,
    dtype: Any = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    block: int = BLOCK,
) -> Iterator[Queries]:
    """The queries of a file (plain or gzip), some at a time: as `read_svmlight`, of about `block` bytes of text each.

    n_features: by default what the first block has; a greater index later in the file is an error that says so.
    """
    file = fspath(path)
    for first_line, text in _texts(file, block):
        queries = queries_of_text(
            text,
            file,
            missing=missing,
            unjudged=unjudged,
            dtype=dtype,
            sparse=sparse,
            n_features=n_features,
            first_line=first_line,
        )
        n_features = queries.n_features
        yield queries


def _texts(file: str, block: int) -> Iterator[tuple[int, bytes]]:
    """Texts of whole queries, each with the number of its first line."""
    line, held = 1, b""
    with _opened(file) as stream:
        while True:
            try:
                more = stream.read(block)
            except (EOFError, OSError, zlib.error) as error:
                raise DataError(f"{file} cannot be read: {error}; it is damaged or cut short, get it again.") from None
            if not more:
                break
            held += more
            cut = _last_query(held)
            if cut:
                yield line, held[:cut]
                line += held.count(b"\n", 0, cut)
                held = held[cut:]
    if held or line == 1:
        yield line, held


def _opened(file: str) -> IO[bytes]:
    with open(file, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(file, "rb")) if packed else open(file, "rb")


def _last_query(text: bytes) -> int:
    """Where the last query of a text begins that may go on beyond its end; 0 where that is the only one."""
    end = text.rfind(b"\n") + 1
    last, begin = None, end
    while begin:
        start = text.rfind(b"\n", 0, begin - 1) + 1
        query = _query(text[start:begin])
        if query is not None:
            if last is not None and query != last:
                return begin
            last = query
        begin = start
    return 0


def _query(line: bytes) -> bytes | None:
    """The word that names the query of a line; None for a line without data."""
    words = line.partition(b"#")[0].split(None, 2)
    return words[1] if len(words) > 1 else None
