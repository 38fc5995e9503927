"""Run and qrels files of TREC, read plain or gzip (`.gz`).

    run     query Q0 document rank score tag        one ranked document a line
    qrels   query 0 document grade                  one judged document a line

Reading goes by scores, as trec_eval does, and ignores the rank column. `trec_writing` writes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from formulations.notebook_view import view
from rankopt.data.summary import graded
from rankopt.data.svmlight.grammar import NUMBER
from rankopt.data.text import clipped, text_lines
from rankopt.errors import DataError, OptionError
from rankopt.measures.segments import Floats, Ints

RUN, QRELS = "query Q0 document rank score tag", "query 0 document grade"
"""The columns of a line."""
INFINITE = re.compile(rb"[+-]?(?i:inf|infinity)")
WHOLE = re.compile(rb"[+-]?[0-9]++")

Key = tuple[str, str]
"""Query and document."""


@dataclass(frozen=True, eq=False)
class Run(CompactReprMixin):
    """Scores (N,) of documents, grouped by query; queries and documents in the order of the file."""

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    scores: Floats
    offsets: Ints

    def _repr_html_(self) -> str:
        facts = graded(self.offsets, None, ())
        return view("Run", {name: facts[name] for name in ("queries", "documents")})


@dataclass(frozen=True, eq=False)
class Qrels(CompactReprMixin):
    """Grades (N,) of documents, grouped by query; queries and documents in the order of the file.

    judged: (N,) which of them have a grade; the others are in the pool, unjudged, and stand with the grade 0.
    """

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    relevance: Floats
    offsets: Ints
    judged: NDArray[np.bool_]

    def _repr_html_(self) -> str:
        facts = graded(self.offsets, self.relevance, ())
        return view("Qrels", facts | {"judged": f"{np.count_nonzero(self.judged)} of {self.judged.size}"})


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run. DataError naming file and line for what is not one."""
    return Run(*_grouped((where, key, _score(where, word)) for where, key, word in _fields(path, RUN, value=4)))


def read_qrels(path: str | PathLike[str], *, negative: float | Literal["unjudged"] | None = None) -> Qrels:
    """Read qrels. Some collections mark junk by negative grades, others documents of the pool that nobody judged:
    `negative` is the grade that these count, "unjudged" that they have none (as in trec_eval), None refuses them."""
    if negative not in (None, "unjudged") and not 0 <= float(negative) < np.inf:
        raise OptionError(f"negative cannot be {negative!r}; write 'unjudged' or the grade >= 0 that it counts.")
    fields = _fields(path, QRELS, value=3)
    names, documents, grades, offsets = _grouped(
        (where, key, _grade(where, key, word, negative)) for where, key, word in fields
    )
    judged = ~np.isnan(grades)
    return Qrels(names, documents, np.where(judged, grades, 0.0), offsets, judged)


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
            f"{where}: document {key[1]!r} has the grade {grade:g}; say what negative grades count, as in negative=0, "
            "or negative='unjudged', as in trec_eval."
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
