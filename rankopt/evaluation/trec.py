"""Run and qrels files of TREC, in and out, plain or gzip (`.gz`).

    run     query Q0 document rank score tag        one ranked document a line
    qrels   query 0 document grade                  one judged document a line

Reading goes by scores, as trec_eval does, and ignores the rank column. Writing numbers the documents of a query n,
n - 1, ..., 1 in the score column: trec_eval compares scores in single precision, where whole numbers up to 2^24 differ.
"""

import gzip
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankopt.data.svmlight.grammar import NUMBER
from rankopt.data.text import clipped, text_lines
from rankopt.errors import DataError
from rankopt.evaluation.judged import descending_text, vector
from rankopt.measures.segments import Floats, Ints, position_in_query, query_of_row

RUN, QRELS = "query Q0 document rank score tag", "query 0 document grade"
"""The columns of a line."""
INFINITE = re.compile(rb"[+-]?(?i:inf|infinity)")
WHOLE = re.compile(rb"[+-]?[0-9]++")

Key = tuple[str, str]
"""Query and document."""


@dataclass(frozen=True, eq=False)
class Run:
    """Scores (N,) of documents, grouped by query; queries and documents in the order of the file."""

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    scores: Floats
    offsets: Ints


@dataclass(frozen=True, eq=False)
class Qrels:
    """Grades (N,) of documents, grouped by query; queries and documents in the order of the file.

    judged: (N,) which of them have a grade; the others are in the pool, unjudged, and stand with the grade 0.
    """

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    relevance: Floats
    offsets: Ints
    judged: NDArray[np.bool_]


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run. DataError naming file and line for what is not one."""
    return Run(*_grouped((where, key, _score(where, word)) for where, key, word in _fields(path, RUN, value=4)))


def read_qrels(path: str | PathLike[str], *, negative: float | Literal["unjudged"] | None = None) -> Qrels:
    """Read qrels. Some collections mark junk by negative grades, others documents of the pool that nobody judged:
    `negative` is the grade that these count, "unjudged" that they have none (as in trec_eval), None refuses them."""
    fields = _fields(path, QRELS, value=3)
    names, documents, grades, offsets = _grouped(
        (where, key, _grade(where, key, word, negative)) for where, key, word in fields
    )
    judged = ~np.isnan(grades)
    return Qrels(names, documents, np.where(judged, grades, 0.0), offsets, judged)


def write_run(
    path: str | PathLike[str], queries: Any, scores: ArrayLike, *, tag: str = "rankopt", depth: int | None = None
) -> None:
    """Write the ranking that the scores (N,) make, the first `depth` documents of each query.

    queries: a `Queries`, or anything with offsets, query_ids and document_ids. Equal scores stand by document id,
    descending, as in trec_eval. Raises DataError for missing, repeated or blank ids and NaN scores.
    """
    names, documents, offsets = _ids(queries)
    values = vector("scores", scores)
    if len(values) != len(documents) or np.any(np.isnan(values)):
        raise DataError(f"A run of {len(documents)} documents needs as many scores, none NaN; there are {len(values)}.")
    order = np.lexsort((descending_text(documents), -values, query_of_row(offsets)))
    place = position_in_query(offsets)
    left = np.repeat(np.diff(offsets), np.diff(offsets)) - place
    query = query_of_row(offsets)
    kept = range(len(order)) if depth is None else np.flatnonzero(place < depth)
    lines = (f"{names[query[i]]} Q0 {documents[order[i]]} {place[i] + 1} {left[i]} {_word('tag', tag)}\n" for i in kept)
    _write(path, "".join(lines))


def write_qrels(path: str | PathLike[str], queries: Any) -> None:
    """Write the grades of a `Queries`. Raises DataError for grades that are not whole, which the format cannot hold."""
    names, documents, offsets = _ids(queries)
    if queries.relevance is None:
        raise DataError("Qrels cannot be written because these queries have no relevance; add it.")
    grades = vector("relevance", queries.relevance)
    if np.any(grades != np.floor(grades)):
        wrong = grades[grades != np.floor(grades)][0]
        raise DataError(f"Qrels cannot hold the grade {wrong:g} because they are whole numbers; round the grades.")
    rows = zip(query_of_row(offsets), documents, grades, strict=True)
    _write(path, "".join(f"{names[query]} 0 {document} {grade:.0f}\n" for query, document, grade in rows))


def _ids(queries: Any) -> tuple[list[str], list[str], Ints]:
    """Query and document ids as words, and the offsets."""
    if queries.document_ids is None:
        raise DataError("TREC files name documents, but these have no ids; set document_ids.")
    names = [_word("query id", name) for name in queries.query_ids]
    documents = [_word("document id", name) for name in queries.document_ids]
    offsets = np.asarray(queries.offsets, dtype=np.int64)
    query = query_of_row(offsets)
    if len(set(names)) < len(names) or len(set(zip(query.tolist(), documents, strict=True))) < len(documents):
        raise DataError(
            "TREC files cannot hold an id twice, but as text some query or document of a query is; rename it."
        )
    return names, documents, offsets


def _word(what: str, name: Hashable) -> str:
    text = "" if name is None else str(name)
    if len(text.split()) != 1 or text.split()[0] != text:
        raise DataError(f"The {what} {name!r} cannot stand in a TREC file because blanks separate columns; rename it.")
    return text


def _write(path: str | PathLike[str], text: str) -> None:
    content = text.encode()
    Path(path).write_bytes(gzip.compress(content, mtime=0) if fspath(path).endswith(".gz") else content)


def _fields(path: str | PathLike[str], columns: str, value: int) -> Iterator[tuple[str, Key, bytes]]:
    """Where it stands, query and document, and the word of column `value`, for every line that is not blank."""
    wanted, empty = len(columns.split()), True
    for number, line in text_lines(path):
        found = line.split()
        where = f"{fspath(path)}, line {number}"
        if found and len(found) != wanted:
            raise DataError(f"{where}: {len(found)} columns, but a line is '{columns}'.")
        if found:
            empty = False
            yield where, (found[0].decode(), found[2].decode()), found[value]
    if empty:
        raise DataError(f"{fspath(path)} is empty; a line is '{columns}'.")


def _score(where: str, word: bytes) -> float:
    if NUMBER.fullmatch(word) or INFINITE.fullmatch(word):
        return float(word)
    raise DataError(f"{where}: {clipped(word)!r} is not a number; mend the line.")


def _grade(where: str, key: Key, word: bytes, negative: float | Literal["unjudged"] | None) -> float:
    """The grade of a line; NaN for one that is not judged."""
    grade = float(word) if WHOLE.fullmatch(word) else np.nan
    if not np.isfinite(grade):
        raise DataError(f"{where}: {clipped(word)!r} is not a whole number; mend the line.")
    if grade >= 0:
        return grade
    if negative is None:
        raise DataError(
            f"{where}: document {key[1]!r} has the grade {grade:g}; say what negative grades count, as in negative=0."
        )
    return np.nan if negative == "unjudged" else float(negative)


def _grouped(rows: Iterator[tuple[str, Key, float]]) -> tuple[tuple[str, ...], tuple[str, ...], Floats, Ints]:
    """Queries, documents, values and offsets, in order of first appearance."""
    queries: dict[str, dict[str, float]] = {}
    for where, (query, document), value in rows:
        documents = queries.setdefault(query, {})
        if document in documents:
            raise DataError(
                f"{where}: document {clipped(document.encode())!r} stands twice in query {clipped(query.encode())!r}; "
                "remove one."
            )
        documents[document] = value
    numbers: Sequence[float] = [number for documents in queries.values() for number in documents.values()]
    offsets = np.concatenate([[0], np.cumsum([len(documents) for documents in queries.values()])]).astype(np.int64)
    names = tuple(name for documents in queries.values() for name in documents)
    return tuple(queries), names, np.array(numbers, dtype=np.float64), offsets
