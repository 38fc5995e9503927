"""Names of features, in comment lines before the data of a LETOR / SVMlight file.

Two ways are read, the first is written:

    # 1: BM25 of the title          a line a feature; also `#1 name`, `# feature 1 = name`
    # feature names: bm25 pagerank  all in one line, without blanks inside a name

Numbered comments that do not name every feature of the data are taken for what they are: comments.
"""

import re
from collections import Counter
from collections.abc import Iterator

from rankopt.errors import DataError

NUMBERED = re.compile(r"#\s*(?:feature\s+)?([0-9]+)\s*[:=\s]\s*(\S.*)", re.IGNORECASE)
LISTED = re.compile(r"#\s*features?[ _]names?\s*[:=]\s*(.+)", re.IGNORECASE)


def header_names(text: bytes, file: str, greatest: int) -> list[str] | None:
    """The names of features 1, ..., d, or None where the header does not name all up to the greatest.

    Raises DataError where a name comes twice.
    """
    numbered: dict[int, str] = {}
    for line in _comments(text):
        listed = LISTED.fullmatch(line)
        if listed:
            return _distinct(listed[1].split(), file)
        entry = NUMBERED.fullmatch(line)
        if entry:
            numbered[int(entry[1])] = entry[2].strip()
    if len(numbered) < max(greatest, 1) or sorted(numbered) != list(range(1, len(numbered) + 1)):
        return None
    return _distinct([numbered[index] for index in sorted(numbered)], file)


def header_lines(names: tuple[str, ...]) -> Iterator[str]:
    """The lines that `header_names` reads back. Raises DataError for a name that a line cannot hold."""
    for index, name in enumerate(_distinct(list(names), "The header"), start=1):
        if name != name.strip() or not name or not name.isprintable():
            raise DataError(
                f"Feature name {name!r} cannot be written; use printable characters, no blanks at its ends."
            )
        yield f"# {index}: {name}\n"


def _comments(text: bytes) -> Iterator[str]:
    """The comment lines before the first line of data."""
    start = 0
    while start < len(text):
        stop = text.find(b"\n", start)
        stop = len(text) if stop < 0 else stop
        line = text[start:stop].strip()
        if line and not line.startswith(b"#"):
            return
        if line:
            yield line.decode()
        start = stop + 1


def _distinct(names: list[str], file: str) -> list[str]:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{file} names two features {repeated[0]!r}; give each its own name.")
    return names
