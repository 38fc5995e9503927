"""Names of features, in comment lines before the data of a LETOR / SVMlight file.

Two ways are read, the first is written:

    # 1: BM25 of the title          a line a feature; also `#1 name`, `# feature 1 = name`
    # feature names: bm25 pagerank  all in one line, without blanks inside a name

Numbered comments that do not name every feature of the data are taken for what they are: comments.
"""

import re
from collections.abc import Iterator
from typing import Any

from rankopt.data.text import clipped
from rankopt.errors import DataError

__all__ = ["Header", "header_lines"]

DATA = re.compile(rb"\n[ \t]*+[^# \t\r\n]")
NAMES = re.compile(
    rb"\n[ \t]*+#[ \t]*+(?:"
    rb"(features?[ _]names?[ \t]*+[:=])|"
    rb"(?:feature[ \t]++)?([0-9]{1,10})(?:[ \t]*+[:=](?=[ \t]*+[^ \t\r\n])|[ \t]++(?=[^\r\n]))"
    rb")([^\n]*+)",
    re.IGNORECASE,
)
"""Both begin with the end of the line before, which is found faster than the beginning of a line."""


class Header:
    """What the comments before the data say; `take` is given the text block by block until it is `done`."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.done = False
        self.listed: list[str] | None = None
        self.numbered: dict[int, tuple[str, int]] = {}

    def take(self, text: bytes, first_line: int) -> None:
        """Read on, to the first line of data."""
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
        """The names of features 1, ..., d, or None where the header does not name all.

        These are all up to `n_features` where that is given, else to the greatest of the data. Raises DataError where a
        name comes twice, and where there are more, or in one line fewer, than n_features.
        """
        names = self.listed
        if names is None:
            count = len(self.numbered)
            if count < max(greatest, 1) or min(self.numbered) != 1 or max(self.numbered) != count:
                return None
            names = _distinct((self.numbered[index] for index in range(1, count + 1)), f"{self.file}, line ")
        if n_features is not None and len(names) != n_features:
            raise DataError(
                f"{self.file}: the header names {len(names)} features but n_features is {n_features}; leave n_features "
                "out."
            )
        return names


def header_lines(names: tuple[str, ...]) -> Iterator[str]:
    """The lines that `Header` reads back. Raises DataError for a name that a line cannot hold."""
    for index, name in enumerate(_distinct(((name, "") for name in names), "The header"), start=1):
        if name != name.strip() or not name or not name.isprintable():
            raise DataError(
                f"Feature name {name!r} cannot be written; use printable characters, no blanks at its ends."
            )
        yield f"# {index}: {name}\n"


def _distinct(names: Any, place: str) -> list[str]:
    known: dict[str, None] = {}
    for name, number in names:
        if name in known:
            raise DataError(f"{place}{number} names two features {clipped(name.encode())!r}; give each its own name.")
        known[name] = None
    return list(known)
