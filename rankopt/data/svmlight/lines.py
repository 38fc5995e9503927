"""The LETOR / SVMlight format read line by line, by the patterns of `grammar`: the reference, for files of any kind."""

from array import array
from math import isfinite
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.svmlight.faults import fault
from rankopt.data.svmlight.grammar import COMMENT, DOCUMENT, LINE, MISSING, Rules, are_entries
from rankopt.data.svmlight.parsed import Parsed
from rankopt.data.text import check_text, is_text

__all__ = ["parse_lines"]


def parse_lines(text: bytes, first_line: int, rules: Rules, seen: dict[bytes, int]) -> Parsed:
    """Read every line; raises DataError naming file and line for the first that breaks the format.

    first_line: the number in the file of the first line of the text. seen: the queries before, the last of which may go
    on, with the line that each began in; those of this text are added.
    """
    grades, values = array("d"), array("d")
    columns, bounds, lines, starts = array("i"), array("q", [0]), array("q"), array("q")
    qids: list[bytes] = []
    documents: list[str | None] = []
    current = next(reversed(seen), None)
    row = _Row(rules)
    clean = is_text(text)
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        line = line.removesuffix(b"\r")
        if not clean:
            check_text(line, f"{rules.file}, line {number}")
        found = LINE.fullmatch(line)
        if found is None:
            if COMMENT.fullmatch(line):
                continue
            raise fault(line, number, rules, seen)
        grade, qid, entries, comment = found.groups()
        grades.append(float(grade))
        new = qid != current
        if not row.read(entries) or not _is_grade(grades[-1], rules) or (new and qid in seen):
            raise fault(line, number, rules, seen)
        if new:
            starts.append(len(lines))
            qids.append(qid)
            seen[qid] = number
            current = qid
        columns.extend(row.columns)
        values.extend(row.values)
        bounds.append(len(values))
        lines.append(number)
        named = DOCUMENT.match(comment) if comment else None
        documents.append(named[1].decode() if named else None)
    return Parsed(
        _array(grades, np.float64),
        _array(bounds, np.int64),
        _array(columns, np.int32),
        _array(values, np.float64),
        _array(lines, np.int64),
        _array(starts, np.int64),
        qids,
        documents,
        len(text),
    )


class _Row:
    """Columns and values of a line. Most lines name the features of the line before, which are kept."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.indices: list[bytes] = []
        self.columns = array("i")
        self.values: list[float] = []

    def read(self, entries: bytes) -> bool:
        """Whether these are entries."""
        if not are_entries(entries):
            return False
        if b"n" in entries or b"N" in entries:
            if self.rules.missing is None:
                return False
            entries = MISSING.sub(repr(float(self.rules.missing)).encode(), entries)
        words = entries.replace(b":", b" ").split()
        self.values = [*map(float, words[1::2])]
        indices = words[::2]
        if indices != self.indices:
            columns = [int(index) - 1 for index in indices]
            if columns and not (_rise([-1, *columns]) and columns[-1] < self.rules.width):
                return False
            self.indices, self.columns = indices, array("i", columns)
        limit = self.rules.limit
        return not self.values or (-limit < min(self.values) and max(self.values) < limit)


def _rise(columns: list[int]) -> bool:
    return all(map(lt, columns, columns[1:]))


def _is_grade(value: float, rules: Rules) -> bool:
    return isfinite(value) and (value >= 0 or rules.negative)


def _array(values: "array[Any]", kind: type[np.generic]) -> NDArray[Any]:
    return np.array(values, dtype=kind) if values else np.zeros(0, dtype=kind)
