"""The grammar of LETOR / SVMlight files, the line parser and its errors.

    line       grade qid:QUERY INDEX:VALUE INDEX:VALUE ... # docid = DOCUMENT ...
    grade      a decimal number; negative ones need a meaning
    QUERY      one word without '#'; the lines of a query are adjacent
    INDEX      one to ten digits, from 1 to 2^31 - 1, rising strictly in a line; one left out is the value 0
    VALUE      a decimal number, or `nan` or `NULL` in any case if `missing` is set
    DOCUMENT   one word

Words are separated by blanks or tabs. Blank lines and lines of comment only are skipped. No pattern here backtracks, so
each takes time linear in the line.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, isfinite
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Shorts
from rankopt.data.text import check_text, clipped, is_text
from rankopt.data.validation import KEEP_MISSING
from rankopt.errors import DataError

_NUMBER = rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
NUMBER = re.compile(_NUMBER)
LINE = re.compile(rb"[ \t]*+(" + _NUMBER + rb")[ \t]++qid:([^\x00- \x7f#]++)([^#]*+)(#.*+)?")
"""Grade, query, entries, comment."""
_ENTRIES = re.compile(rb"(?:[ \t]++[0-9]{1,10}:(?:" + _NUMBER + rb"|(?i:nan|null))){1,64}")
"""In groups, because `re` stores a state for each repetition."""
MISSING = re.compile(rb"(?i:nan|null)")  # words for a missing value among entries; LETOR writes NULL
COMMENT = re.compile(rb"[ \t]*+(?:#.*+)?")
DOCUMENT = re.compile(rb"#[ \t]*+docid[ \t]*+=[ \t]*+([^ \t]++)")
INDEX_DIGITS = 10
LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """Reader options for one file. missing: the value of missing features, NaN to keep them, None for an error.
    negative: whether grades may be negative. limit: bound on the magnitude of values. width, source: the greatest
    index, and the source of this bound."""

    file: str
    missing: float | None = None
    negative: bool = False
    limit: float = inf
    width: int = LARGEST_INDEX
    source: str = ""


def are_entries(text: bytes) -> bool:
    """Whether the text between query and comment consists of INDEX:VALUE entries."""
    at = 0
    while found := _ENTRIES.match(text, at):
        at = found.end()
    return not text[at:].strip(b" \t")


def query_name(token: bytes) -> Hashable:
    """A query id: an integer if written in canonical form, else a string."""
    text = token.decode()
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,17}", text) else text


def fault(line: bytes, number: int, rules: Rules, seen: dict[bytes, int]) -> DataError:
    """The error for an invalid line; seen: the previous queries, the last of which may continue."""
    tokens = line.partition(b"#")[0].split()
    wrong = _of_grade(tokens[0], rules) or _of_query(tokens, seen) or _of_entries(tokens[2:], rules)
    return DataError(f"{rules.file}, line {number}: {wrong or 'no line reads so; write grade qid:QUERY 1:value ...'}")


def _of_grade(token: bytes, rules: Rules) -> str | None:
    word = clipped(token)
    if not NUMBER.fullmatch(token) or not isfinite(float(token)):
        return f"the grade is {word!r}. Lines begin with a finite number: give the document a grade."
    if float(token) < 0 and not rules.negative:
        return (
            f"the grade is {word}. Grades are >= 0: read with unjudged=0 if it means not relevant, or with "
            "unjudged='drop' to leave such documents out."
        )
    return None


def _of_query(tokens: list[bytes], seen: dict[bytes, int]) -> str | None:
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:") or tokens[1] == b"qid:":
        return (
            "no 'qid:' follows the grade. Rankings need the query of each document: write 'grade qid:QUERY 1:value "
            "...', or give the sizes of the queries to Queries.from_arrays(group=)."
        )
    qid = tokens[1][4:]
    if qid in seen and qid != next(reversed(seen)):
        return (
            f"query {clipped(qid)!r} reappears; it began in line {seen[qid]} and other queries follow it. The "
            "lines of a query must be adjacent: sort the file by query, or use Queries.from_arrays."
        )
    return None


def _of_entries(tokens: list[bytes], rules: Rules) -> str | None:
    last = 0
    for token in tokens:
        head, colon, tail = token.partition(b":")
        if not colon or not head.isdigit():
            return f"{clipped(token)!r} is no entry; entries are 'index:value' with an integer index."
        if len(head) > INDEX_DIGITS or int(head) > LARGEST_INDEX:
            return f"feature index {clipped(head)} is beyond {LARGEST_INDEX}; number the features from 1."
        index = int(head)
        wrong = _of_index(index, last, rules) or _of_value(index, tail, rules)
        if wrong:
            return wrong
        last = index
    return None


def _of_index(index: int, last: int, rules: Rules) -> str | None:
    if index == 0:
        return "feature index 0. Indices count from 1: add 1 to all indices of the file."
    if index <= last:
        what = "comes twice" if index == last else f"comes after feature {last}"
        return f"feature {index} {what}. Indices rise strictly in a line: sort them, each once."
    if index > rules.width:
        return f"feature {index} but {rules.source} gives {rules.width} features; correct one of them."
    return None


def _of_value(index: int, tail: bytes, rules: Rules) -> str | None:
    word = clipped(tail)
    if NUMBER.fullmatch(tail) and isfinite(value := float(tail)):
        if abs(value) < rules.limit:
            return None
        return f"feature {index} is {word!r}, which float32 cannot hold; read with dtype=float64, or rescale it."
    cure = "repair the value"
    if MISSING.fullmatch(tail):
        if rules.missing is not None:
            return None
        cure = f"impute it, or read with missing=0.0, or {KEEP_MISSING}"
    return f"feature {index} is {word!r}. Rankings need finite features: {cure}."


@dataclass(frozen=True)
class Parsed:
    """N lines of data: grades (N,), row r holds entries bounds[r]:bounds[r + 1] of columns (from 0) and values (nnz,).
    `lines` (N,): line numbers of rows. `starts`: the first rows of the queries that begin here, `qids` their names;
    rows before starts[0] continue the previous query. `documents`: N names or None. `size`: bytes of text."""

    grades: Floats
    bounds: Ints
    columns: Shorts
    values: Floats
    lines: Ints
    starts: Ints
    qids: list[bytes]
    documents: list[str | None]
    size: int

    def greatest(self) -> tuple[int, int]:
        """The greatest index of a feature (0 if there is none), and the line of the first that has it."""
        if not self.columns.size:
            return 0, 0
        entry = int(self.columns.argmax())
        row = int(np.searchsorted(self.bounds, entry, side="right")) - 1
        return int(self.columns[entry]) + 1, int(self.lines[row])

    def cut(self) -> tuple[Parsed, Parsed]:
        """The rows before the last query that begins here, and those of that query."""
        row, query = int(self.starts[-1]), len(self.qids) - 1
        return self._rows(0, row, 0, query), self._rows(row, self.grades.size, query, query + 1)

    def _rows(self, first: int, last: int, query: int, until: int) -> Parsed:
        begin, end = self.bounds[first], self.bounds[last]
        return Parsed(
            self.grades[first:last],
            self.bounds[first : last + 1] - begin,
            self.columns[begin:end],
            self.values[begin:end],
            self.lines[first:last],
            self.starts[query:until] - first,
            self.qids[query:until],
            self.documents[first:last],
            self.size * (last - first) // self.grades.size,
        )


def joined(parts: list[Parsed]) -> Parsed:
    """Concatenate the parts; the list is emptied to free memory."""
    if len(parts) == 1:
        return parts.pop()
    rows = np.cumsum([0, *(part.grades.size for part in parts)])
    entries = np.cumsum([0, *(part.values.size for part in parts)])
    bounds = [part.bounds[1:] + entry for part, entry in zip(parts, entries, strict=False)]
    starts = [part.starts + row for part, row in zip(parts, rows, strict=False)]
    qids = [name for part in parts for name in part.qids]
    documents = [name for part in parts for name in part.documents]
    size = sum(part.size for part in parts)
    columns, values = [part.columns for part in parts], [part.values for part in parts]
    grades, lines = [part.grades for part in parts], [part.lines for part in parts]
    parts.clear()
    return Parsed(
        _one(grades), _one([np.zeros(1, dtype=np.int64), *bounds]), _one(columns), _one(values), _one(lines),
        _one(starts), qids, documents, size,
    )  # fmt: skip


def _one(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    joined_array = np.concatenate(arrays)
    arrays.clear()
    return joined_array


def parse_lines(text: bytes, first_line: int, rules: Rules, seen: dict[bytes, int]) -> Parsed:
    """Parse all lines; raises DataError naming file and line for the first invalid one. first_line: the line number of
    the start of the text. seen: previous queries and their first lines, the last of which may continue; those of this
    text are added."""
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
        new, valid = qid != current, isfinite(grades[-1]) and (grades[-1] >= 0 or rules.negative)
        if not row.read(entries) or not valid or (new and qid in seen):
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
    """Columns and values of a line. Columns are reused from the previous line if equal."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.indices: list[bytes] = []
        self.columns = array("i")
        self.values: list[float] = []

    def read(self, entries: bytes) -> bool:
        """Parse entries; False if they are invalid."""
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
            if columns and not (all(map(lt, [-1, *columns], columns)) and columns[-1] < self.rules.width):
                return False
            self.indices, self.columns = indices, array("i", columns)
        limit = self.rules.limit
        if self.rules.missing is not None:
            return all(-limit < value < limit or value != value for value in self.values)
        return not self.values or (-limit < min(self.values) and max(self.values) < limit)


def _array(values: array[Any], kind: type[np.generic]) -> NDArray[Any]:
    return np.array(values, dtype=kind) if values else np.zeros(0, dtype=kind)
