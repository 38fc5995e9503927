"""The LETOR / SVMlight format, one line at a time: the reference, and the one that finds what is wrong and where.

    grade qid:QUERY INDEX:VALUE INDEX:VALUE ... # docid = DOCUMENT ...

Indices count from 1 and rise strictly; an index left out is the value 0. Numbers are decimal. The lines of a query
stand together. Blank lines and lines of comment only are skipped.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DOCUMENT = re.compile(rb"#[ \t]*docid[ \t]*=[ \t]*([^ \t]+)")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
MISSING = (b"nan", b"null")
"""Words for a missing value, in any case; LETOR writes NULL."""
LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True)
class Parsed:
    """N lines: grades (N,), row r holds entries bounds[r]:bounds[r + 1] of columns (from 0) and values (nnz,).

    `starts`: the first row of each of the m queries; `qids`: their names as bytes; `documents`: N names or None each.
    """

    grades: NDArray[np.float64]
    bounds: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    starts: NDArray[np.int64]
    qids: list[bytes]
    documents: list[bytes | None]


def query_name(token: bytes) -> Hashable:
    """A query id: an integer where it is written as Python writes integers, else a string."""
    text = token.decode()
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,17}", text) else text


def parse_lines(text: bytes, file: str, missing: float | None, unjudged: Any, first_line: int = 1) -> Parsed:
    """Read every line strictly; raises DataError naming file and line for the first that breaks the format.

    missing: the value of `nan` and `NULL`, None to refuse them. unjudged: None refuses negative grades.
    first_line: the number in the file of the first line of the text.
    """
    grades: list[float] = []
    bounds, columns, values, starts = [0], [], [], []
    seen: dict[bytes, int] = {}
    documents: list[bytes | None] = []
    current = None
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        where = f"{file}, line {number}"
        tokens, comment = _tokens(line.removesuffix(b"\r"), where)
        if not tokens:
            continue
        grades.append(_grade(tokens[0], unjudged, where))
        qid = _qid(tokens, where)
        if qid != current:
            if qid in seen:
                raise DataError(
                    f"{where}: query {qid.decode()!r} comes back, it began in line {seen[qid]} and other queries stand "
                    "between. The lines of a query stand together: sort the file by query, or use Queries.from_arrays."
                )
            seen[qid] = number
            starts.append(len(documents))
            current = qid
        last = 0
        for token in tokens[2:]:
            index, value = _entry(token, last, missing, where)
            columns.append(index - 1)
            values.append(value)
            last = index
        bounds.append(len(values))
        named = DOCUMENT.match(comment)
        documents.append(named[1] if named else None)
    if not grades:
        raise DataError(f"{file} is empty: it has no line of data.")
    return Parsed(
        np.array(grades),
        np.array(bounds, dtype=np.int64),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float64),
        np.array(starts, dtype=np.int64),
        list(seen),
        documents,
    )


def _tokens(line: bytes, where: str) -> tuple[list[bytes], bytes]:
    """The words of a line before its comment, and the comment."""
    wrong = CONTROL.search(line)
    place = wrong.start() if wrong else None
    try:
        line.decode()
    except UnicodeDecodeError as error:
        place = error.start
    if place is not None:
        raise DataError(
            f"{where}: byte 0x{line[place]:02x} in column {place + 1} is not text; save the file as plain UTF-8."
        )
    words, sign, comment = line.partition(b"#")
    return words.split(), sign + comment


def _grade(token: bytes, unjudged: Any, where: str) -> float:
    word = token.decode()
    if not NUMBER.fullmatch(token) or not isfinite(float(token)):
        raise DataError(f"{where}: the grade is {word!r}. Lines begin with a finite number: give the document a grade.")
    if float(token) < 0 and unjudged is None:
        raise DataError(
            f"{where}: the grade is {word}. Grades are >= 0: read with unjudged=0 if it means not relevant, or with "
            "unjudged='drop' to leave such documents out."
        )
    return float(token)


def _qid(tokens: list[bytes], where: str) -> bytes:
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:") or tokens[1] == b"qid:":
        raise DataError(
            f"{where}: no 'qid:' follows the grade. Rankings need the query of each document: write 'grade qid:QUERY "
            "1:value ...', or give the sizes of the queries to Queries.from_arrays(group=)."
        )
    return tokens[1][4:]


def _entry(token: bytes, last: int, missing: float | None, where: str) -> tuple[int, float]:
    """The index, above `last`, and the value of one entry."""
    head, colon, tail = token.partition(b":")
    if not colon or not head.isdigit():
        raise DataError(f"{where}: {token.decode()!r} is no entry; entries are 'index:value', a whole number first.")
    index, word = int(head), tail.decode()
    if index == 0:
        raise DataError(f"{where}: feature index 0. Indices count from 1: add 1 to the indices of the whole file.")
    if index > LARGEST_INDEX:
        raise DataError(f"{where}: feature index {index} is beyond {LARGEST_INDEX}; number the features from 1.")
    if index <= last:
        what = "comes twice" if index == last else f"comes after feature {last}"
        raise DataError(f"{where}: feature {index} {what}. Indices rise strictly in a line: sort them, each once.")
    if NUMBER.fullmatch(tail) and isfinite(value := float(tail)):
        return index, value
    if tail.lower() in MISSING:
        if missing is not None:
            return index, missing
        cure = "impute it, or read with missing=0.0"
    else:
        cure = "repair the value"
    raise DataError(f"{where}: feature {index} is {word!r}. Rankings need finite features: {cure}.")
