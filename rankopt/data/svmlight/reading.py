"""A LETOR / SVMlight file under way: its lines, block after block, by one grammar, whoever asks.

Memory is that of a block and of the names of queries; time is linear. What a line does wrong is found in the order of
the file, so that a file read whole and in blocks has the same first fault.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, takewhile
from os import PathLike, fspath
from typing import Any

import numpy as np

from rankopt.data.given import Unjudged
from rankopt.data.svmlight.grammar import LARGEST_INDEX, Rules
from rankopt.data.svmlight.header import Header
from rankopt.data.svmlight.lines import parse_lines
from rankopt.data.svmlight.parsed import Parsed
from rankopt.data.text import BLOCK, is_text, text_blocks
from rankopt.errors import DataError, OptionError

__all__ = ["COMPILED_FROM", "SvmlightParser", "is_worth_compiling"]

COMPILED_FROM = 1 << 23
"""Bytes of text, unpacked, from which a file is read by compiled code.

Measured: 8 MB take half a second line by line; to compile takes three seconds once, to load what is compiled a tenth.
"""

AHEAD = COMPILED_FROM
"""Bytes of text that are unpacked before the first line is believed: small files that are damaged are called so."""


def is_worth_compiling(size: int) -> bool:
    """Whether a file of `size` bytes of text is read by compiled code. Both ways read the same bits and faults."""
    return size >= COMPILED_FROM


class SvmlightParser:
    """The parsed lines of a file, about `size` bytes of text at a time; `header` is filled while they are read.

    missing, unjudged, dtype, n_features: as for `read_svmlight`.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        missing: float | None,
        unjudged: Unjudged,
        dtype: Any,
        n_features: int | None,
        size: int = BLOCK,
    ) -> None:
        self.file, self.size, self.n_features = fspath(path), size, n_features
        self.header = Header(self.file)
        width = LARGEST_INDEX if n_features is None else n_features
        if not (isinstance(width, int | np.integer) and 1 <= width <= LARGEST_INDEX):
            raise OptionError(f"n_features cannot be {n_features!r}; it is a whole number from 1 to {LARGEST_INDEX}.")
        self.rules = Rules(self.file, missing, unjudged is not None, _limit(dtype), width, "n_features")
        if missing is not None and not (np.isreal(missing) and abs(missing) < self.rules.limit):
            raise OptionError(f"missing = {missing} is not finite, and rankings need finite features; pass a number.")

    def __iter__(self) -> Iterator[Parsed]:
        blocks, first, size = text_blocks(self.file, self.size), [], 0
        while size < AHEAD and (block := next(blocks, None)):
            first.append(block)
            size += len(block[1])
        compiled = is_worth_compiling(size)
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
        """The rules, with what the header says of the number of features."""
        self.header.take(text if is_text(text) else _sound(text), number)
        if not self.header.done:
            return rules
        names = self.header.names(self.n_features or LARGEST_INDEX, self.n_features)
        return replace(rules, width=len(names), said="the header") if names and not self.n_features else rules


def _sound(text: bytes) -> bytes:
    """The lines before the first that is not text."""
    lines = list(takewhile(is_text, text.split(b"\n")))
    return b"\n".join(lines)


def _limit(dtype: Any) -> float:
    """What the magnitude of a number stays below that does not become infinite in this type."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise OptionError(f"dtype cannot be {dtype!r}; it is float64 or float32.")
    return np.inf if kind == np.float64 else (2 - 2.0**-24) * 2.0**127
