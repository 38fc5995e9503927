"""LETOR / SVMlight files larger than memory: read in blocks of whole queries."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from rankopt.data.given import Unjudged
from rankopt.data.queries import Queries
from rankopt.data.svmlight.parsed import Parsed, joined
from rankopt.data.svmlight.reader import queries_of
from rankopt.data.svmlight.reading import SvmlightParser
from rankopt.data.text import BLOCK as READ
from rankopt.errors import DataError, OptionError

__all__ = ["read_svmlight_blocks"]

BLOCK = 1 << 26
"""Bytes of text of a block of queries."""


def read_svmlight_blocks(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: Unjudged = None,
    dtype: Any = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    block: int = BLOCK,
) -> Iterator[Queries]:
    """The queries of a file (plain or gzip), some at a time: as `read_svmlight`, of about `block` bytes of text each.

    n_features: by default what the header or else the first block has; a greater index later in the file is an error
    that says so. A query is in one block however long it is, and one that comes back in a later block is an error.
    """
    if not (isinstance(block, int | np.integer) and block >= 1):
        raise OptionError(f"block cannot be {block!r}; it is a number of bytes from 1.")
    if sparse not in (True, False):
        raise OptionError(f"sparse cannot be {sparse!r} because all blocks are of one kind; it is True or False.")
    reading = SvmlightParser(path, missing, unjudged, dtype, n_features, min(block, READ))
    return _blocks(reading, unjudged, dtype, sparse, block)


def _blocks(reading: SvmlightParser, unjudged: Unjudged, dtype: Any, sparse: bool, block: int) -> Iterator[Queries]:
    d, names, empty = 0, None, True
    for parsed in _whole_queries(reading, block):
        greatest, line = parsed.greatest()
        if d == 0:
            names = reading.header.names(reading.n_features or greatest, reading.n_features)
            d = reading.n_features or (len(names) if names else greatest)
        if greatest > d:
            raise DataError(
                f"{reading.file}, line {line}: feature {greatest} but the first block has {d}; say "
                f"n_features={greatest} or more."
            )
        if unjudged != "drop" or parsed.grades.max() >= 0:
            yield queries_of(parsed, reading, d, names, unjudged, dtype, sparse)
            empty = False
    if empty:
        raise DataError(f"{reading.file}: all grades are negative and unjudged='drop' leaves no document; judge some.")


def _whole_queries(reading: SvmlightParser, block: int) -> Iterator[Parsed]:
    """Parsed lines of whole queries, each line looked at once however many blocks its query is long."""
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
