"""Run and qrels files of TREC, plain or gzip (`.gz`), read, joined for `evaluate`, and written.

    run     query Q0 document rank score tag        one ranked document per line
            query document rank                     as MS MARCO has it
    qrels   query 0 document grade                  one judged document per line
            query document grade                    as BEIR has it

Blanks or tabs separate columns. All lines have the columns of the first. A line of names may precede it (BEIR), and
lines that begin with # are comments. Reading sorts by scores, as trec_eval does, and ignores the rank column; a run
without scores gets minus its ranks. `write_run` fills the score column with

    "rank"   n, n - 1, ..., 1 for the n documents of a query. Sorting by it recovers the ranking, also under constraints
             and in single precision (trec_eval), where integers up to 2^24 are distinct
    "model"  the scores of the model. trec_eval orders documents of equal single-precision scores by id
"""

import gzip
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, as_path, check_type
from formulations.display import CompactReprMixin
from rankopt.data.queries import Queries
from rankopt.data.svmlight.parser import NUMBER
from rankopt.data.text import clipped, text_lines
from rankopt.data.typing import Values
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import Grouped, JudgedQueries, QueryIndexed, descending_text, vector
from rankopt.measures.tied_ranking import Pool, query_of_row
from rankopt.options import number

RUN = ("query Q0 document rank score tag", "query document rank")  # the columns of a line, TREC's first
QRELS = ("query 0 document grade", "query document grade")
NAMES = {"rank": rb"rank|pos", "score": rb"score|sim", "grade": rb"score|rel|label|grade|judg"}  # in a line of names
HEADERS = {b"query-id", b"query_id", b"queryid", b"qid", b"query", b"topic", b"topic_id", b"topic-id"}
INFINITE = re.compile(rb"[+-]?(?i:inf|infinity)")
INTEGER = re.compile(rb"[+-]?[0-9]++")

Key = tuple[str, str]  # query and document


@dataclass(frozen=True, eq=False)
class Run(CompactReprMixin):
    """Scores (N,) of documents, grouped by query; queries and documents in the order of the file."""

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    scores: Floats
    offsets: Ints


@dataclass(frozen=True, eq=False)
class Qrels(CompactReprMixin):
    """Grades (N,) of documents, grouped by query; queries and documents in the order of the file. judged: (N,) which
    documents have a grade; the others are unjudged documents of the pool, with grade 0."""

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    relevance: Floats
    offsets: Ints
    judged: Bools


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run of six columns, or of the three columns of MS MARCO, whose last is a rank: scores are minus the ranks.

    Raises DataError naming file and line for invalid lines.
    """
    ranks: set[tuple[str, int]] = set()
    fields = _fields(path, RUN, (INFINITE, NUMBER))
    run = Run(
        *_group_by_query((where, key, _score(where, key, word, ranks, columns)) for where, key, word, columns in fields)
    )
    unranked = {query for query, _ in ranks} - {query for query, rank in ranks if rank <= 1}
    if unranked:
        raise DataError(
            f"{fspath(path)}: query {min(unranked)!r} has no document of rank 1, so the third of three columns may be "
            f"a score; write '{RUN[0]}', or the ranks from 1."
        )
    return run


def read_qrels(path: str | PathLike[str], *, negative: float | Literal["unjudged"] | None = None) -> Qrels:
    """Read qrels of four columns, or of the three columns of BEIR. Negative grades mark junk in some collections,
    unjudged documents of the pool in others.

    negative: the grade that replaces them, "unjudged" for no grade (as in trec_eval), None to raise DataError.
    """
    if (
        negative is not None
        and not (isinstance(negative, str) and negative == "unjudged")
        and not (0 <= number(negative) < np.inf)
    ):
        raise OptionError(f"negative cannot be {negative!r}; write 'unjudged' or the grade >= 0 that it counts.")
    if as_path(path, DataError).lower().endswith((".parquet", ".feather")):
        raise DataError(f"{path} is not a file of qrels but a table; write its columns as text: query 0 document grade")
    fields = _fields(path, QRELS, (INTEGER,))
    names, documents, grades, offsets = _group_by_query(
        (where, key, _grade(where, key, word, negative)) for where, key, word, _ in fields
    )
    judged = ~np.isnan(grades)
    return Qrels(names, documents, np.where(judged, grades, 0.0), offsets, judged)


def _fields(
    path: str | PathLike[str], layouts: tuple[str, str], values: tuple[re.Pattern[bytes], ...]
) -> Iterator[tuple[str, Key, bytes, int]]:
    """File and line, query and document, the value that the patterns describe and the number of columns of the file."""
    counts = [len(layout.split()) for layout in layouts]
    known, columns, empty = " or ".join(f"'{layout}'" for layout in layouts), 0, True
    for line_number, line in text_lines(path):
        found = line.split()
        where = f"{fspath(path)}, line {line_number}"
        at = {3: 2, 4: 3, 6: 4}.get(len(found), 0)
        value = found[at] if len(found) in counts else b""
        is_data = any(pattern.fullmatch(value) for pattern in values)
        if found and found[0].startswith(b"#") and found[0] != b"#" and is_data:
            raise DataError(
                f"{where}: {clipped(found[0])!r} is a query or begins a comment; write # and a blank, or rename it."
            )
        if not found or found[0].startswith(b"#"):
            continue
        is_header = not columns and not is_data and found[0].lower() in HEADERS
        columns = columns or len(found)
        if len(found) != columns or columns not in counts:
            expected = f"'{layouts[counts.index(columns)]}', as the first" if columns in counts else known
            raise DataError(f"{where}: {len(found)} columns, but a line is {expected}; correct the line.")
        if columns == 4 and len(line.strip().split(b"\t")) == 3 and found[1] not in (b"0", b"Q0"):
            raise DataError(f"{where}: a column between tabs has a blank; replace it, because blanks separate columns.")
        if is_header:
            wanted = layouts[counts.index(columns)].split()[at]
            if not re.search(NAMES[wanted], value.lower()):
                raise DataError(
                    f"{where}: column {at + 1} has the name {clipped(value)!r}, but is the {wanted}; a line is {known}."
                )
            continue
        empty = False
        yield where, (found[0].decode(), found[1 if columns == 3 else 2].decode()), value, columns
    if empty:
        raise DataError(f"{fspath(path)} is empty; a line is {known}.")


def _score(where: str, key: Key, word: bytes, ranks: set[tuple[str, int]], columns: int) -> float:
    """The score of a line; of three columns minus the rank, which no other document of the query may have."""
    if columns == 3:
        rank = int(word) if INTEGER.fullmatch(word) and len(word) < 16 else -1
        if rank < 0 or (key[0], rank) in ranks:
            why = "occurs twice in its query" if rank >= 0 else "is not a rank"
            raise DataError(
                f"{where}: {clipped(word)!r} {why}; the third of three columns is the rank of the document, 1 for the "
                f"best. With scores, write '{RUN[0]}'."
            )
        ranks.add((key[0], rank))
        return float(-rank)
    if NUMBER.fullmatch(word) or INFINITE.fullmatch(word):
        return float(word)
    raise DataError(f"{where}: {clipped(word)!r} is not a number; correct the line.")


def _grade(where: str, key: Key, word: bytes, negative: float | Literal["unjudged"] | None) -> float:
    """The grade of a line; NaN if unjudged."""
    grade = float(word) if INTEGER.fullmatch(word) else np.nan
    if not np.isfinite(grade):
        raise DataError(f"{where}: {clipped(word)!r} is not an integer; correct the line.")
    if grade >= 0:
        return grade
    if negative is None:
        raise DataError(
            f"{where}: document {key[1]!r} has the grade {grade:g}; pass the grade that negative ones count as, "
            "such as negative=0, or negative='unjudged' (as in trec_eval)."
        )
    return np.nan if negative == "unjudged" else float(negative)


def _group_by_query(rows: Iterator[tuple[str, Key, float]]) -> tuple[tuple[str, ...], tuple[str, ...], Floats, Ints]:
    """Queries, documents, values and offsets, in order of first appearance."""
    queries: dict[str, dict[str, float]] = {}
    for where, (query, document), value in rows:
        documents = queries.setdefault(query, {})
        if document in documents:
            raise DataError(
                f"{where}: document {clipped(document.encode())!r} occurs twice in query {clipped(query.encode())!r}; "
                "remove one."
            )
        documents[document] = value
    numbers: Sequence[float] = [number for documents in queries.values() for number in documents.values()]
    offsets = np.concatenate([[0], np.cumsum([len(documents) for documents in queries.values()])]).astype(np.int64)
    names = tuple(name for documents in queries.values() for name in documents)
    return tuple(queries), names, np.array(numbers, dtype=np.float64), offsets


ScoreColumn = Literal["rank", "model"]

Orders = Mapping[Hashable, Sequence[Hashable]] | Sequence[Hashable] | NDArray[Any]
"""Documents best first, as returned by `rank`: by query, or a sequence for a single query."""


def write_run(
    path: str | PathLike[str],
    queries: QueryIndexed,
    given: Values,
    /,
    *,
    tag: str = "rankopt",
    k: int | None = None,
    scores: ScoreColumn = "rank",
    orders: Orders | None = None,
) -> None:
    """Write the ranking by decreasing `given` scores (N,), the first k documents of each query (None: all).

    queries: a `Queries`, or anything with offsets, query_ids and document_ids. Equal scores are ordered by document id,
    descending, as in trec_eval. orders: rankings to write instead, as returned by
    `ranker.rank(queries, constraints=...)`. scores: the content of the score column, "rank" or "model".

    Raises DataError for missing, repeated or blank ids, NaN scores, orders of other documents, and for scores="model"
    if orders are not sorted by the scores, because readers would reorder them.
    """
    _write(path, run_text(queries, given, tag=tag, k=k, scores=scores, orders=orders))


def run_text(
    queries: QueryIndexed,
    given: Values,
    /,
    *,
    tag: str = "rankopt",
    k: int | None = None,
    scores: ScoreColumn = "rank",
    orders: Orders | None = None,
) -> str:
    """The text that `write_run` writes."""
    if not isinstance(scores, str) or scores not in get_args(ScoreColumn):
        raise OptionError(f"scores cannot be {scores!r}; write 'rank' or 'model', and the scores before it.")
    grouped, order = (queries.grouped(), queries.rows) if isinstance(queries, Queries) else (queries, slice(None))
    names, documents, offsets = _ids(grouped)
    values = vector("scores", given)
    if len(values) != len(documents) or np.any(np.isnan(values)):
        raise DataError(f"A run of {len(documents)} documents needs as many scores, none NaN; there are {len(values)}.")
    values = values[order]
    word, lines = _word("tag", tag), []
    for name, rows in zip(names, _rows(queries, documents, offsets, values, orders), strict=True):
        shown = rows[:k]
        column: list[Any] = values[shown].tolist() if scores == "model" else list(range(len(shown), 0, -1))
        if any(later > earlier for earlier, later in pairwise(column)):
            raise DataError(
                f"The ranking of query {name!r} is not that of its scores, which readers of a run sort by; "
                "write scores='rank'."
            )
        lines += [
            f"{name} Q0 {documents[row]} {rank} {score!r} {word}\n"
            for rank, (row, score) in enumerate(zip(shown, column, strict=True), 1)
        ]
    return "".join(lines)


def _rows(queries: Any, documents: list[str], offsets: Ints, values: Floats, orders: Orders | None) -> list[list[int]]:
    """The rows of each query in output order, best first."""
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    if orders is None:
        order = np.lexsort((descending_text(documents), -values, query_of_row(offsets)))
        return [order[start:stop].tolist() for start, stop in bounds]
    by_query = orders if isinstance(orders, Mapping) else {queries.query_ids[0]: orders}
    if set(by_query) != set(queries.query_ids):
        raise DataError(f"orders has {len(by_query)} queries, not these {len(bounds)}; pass what `rank` returns.")
    found = []
    for query, (start, stop) in zip(queries.query_ids, bounds, strict=True):
        row = {documents[index]: index for index in range(start, stop)}
        wanted = [str(name) for name in by_query[query]]
        if len(set(wanted)) < len(wanted) or not set(wanted) <= set(row):
            raise DataError(
                f"orders of query {query!r} repeat a document or contain another query's; pass what `rank` returns."
            )
        found.append([row[name] for name in wanted])
    return found


def write_qrels(path: str | PathLike[str], queries: Grouped) -> None:
    """Write the grades of a `Queries`. Raises DataError for grades that are not integers."""
    if isinstance(queries, Queries):
        queries = queries.grouped()
    names, documents, offsets = _ids(queries)
    if queries.relevance is None:
        raise DataError("Qrels cannot be written because these queries have no relevance; add it.")
    grades = vector("relevance", queries.relevance)
    if np.any(grades != np.floor(grades)):
        wrong = grades[grades != np.floor(grades)][0]
        raise DataError(f"Qrels cannot hold the grade {wrong:g} because its grades are integers; round the grades.")
    rows = zip(query_of_row(offsets), documents, grades, strict=True)
    _write(path, "".join(f"{names[query]} 0 {document} {grade:.0f}\n" for query, document, grade in rows))


def _ids(queries: Any) -> tuple[list[str], list[str], Ints]:
    """Query and document ids as text, and the offsets."""
    if not hasattr(queries, "document_ids"):
        raise DataError(f"queries must be Queries, Qrels or a Run; got a {type(queries).__name__}.")
    if queries.document_ids is None:
        raise DataError("TREC files name documents, but these have no ids; set document_ids.")
    names = [_word("query id", name) for name in queries.query_ids]
    documents = [_word("document id", name) for name in queries.document_ids]
    offsets = np.asarray(queries.offsets, dtype=np.int64)
    query = query_of_row(offsets)
    if len(set(names)) < len(names) or len(set(zip(query.tolist(), documents, strict=True))) < len(documents):
        raise DataError("TREC files cannot hold an id twice, as some query or document is in text; rename it.")
    return names, documents, offsets


def _word(what: str, name: Hashable) -> str:
    text = "" if name is None else str(name)
    if len(text.split()) != 1 or text.split()[0] != text or (what == "query id" and text.startswith("#")):
        raise DataError(
            f"The {what} {name!r} cannot be written to a TREC file, where blanks separate columns and # begins a "
            "comment; rename it."
        )
    return text


def _write(path: str | PathLike[str], text: str) -> None:
    content = text.encode()
    file = as_path(path, DataError)
    Path(file).write_bytes(gzip.compress(content, mtime=0) if file.endswith(".gz") else content)


Missing = Literal["error", "skip", "zero"]


def join(qrels: Qrels, run: Run, *, missing: Missing = "error") -> tuple[JudgedQueries, Floats]:
    """The judged documents and their scores by query: `evaluate(*join(qrels, run), measures)`.

    A retrieved document without a judgment has grade 0. A judged document that was not retrieved has no position and
    score -inf; it counts among the relevant documents, as in trec_eval. Queries without judgments are skipped. Judged
    queries without a run raise DataError, are skipped with missing="skip" (as in trec_eval), or count as empty runs
    with missing="zero" (trec_eval -c).
    """
    check_type("qrels", qrels, Qrels, error=DataError, cure="Read them by read_qrels(path).")
    check_type("run", run, Run, error=DataError, cure="Read it by read_run(path).")
    if not isinstance(missing, str) or missing not in get_args(Missing):
        raise OptionError(f"missing cannot be {missing!r}; write 'error', 'skip' or 'zero'.")
    grades, scores = by_query(qrels, qrels.relevance), by_query(run, run.scores)
    absent = [query for query in grades if query not in scores]
    if absent and missing == "error":
        raise DataError(
            f"The run lacks {len(absent)} judged queries, such as {absent[0]!r}; complete it, or missing='skip'."
        )
    queries = [query for query in grades if query in scores or missing == "zero"]
    if not queries:
        raise DataError("The run has no query of the qrels; compare the query ids of both files.")
    scores |= {query: {} for query in absent}
    documents = [list(scores[query] | grades[query]) for query in queries]
    rows = [(query, name) for query, names in zip(queries, documents, strict=True) for name in names]
    offsets = np.concatenate([[0], np.cumsum([len(names) for names in documents])]).astype(np.int64)
    relevance = np.array([grades[query].get(name, 0.0) for query, name in rows], dtype=np.float64)
    found = np.array([scores[query].get(name, -np.inf) for query, name in rows], dtype=np.float64)
    judged = by_query(qrels, qrels.judged)
    pool = Pool(
        np.array([judged[query].get(name, False) for query, name in rows], dtype=np.bool_),
        np.array([name in grades[query] for query, name in rows], dtype=np.bool_),
        np.array([name in scores[query] for query, name in rows], dtype=np.bool_),
    )
    return JudgedQueries(relevance, offsets, tuple(queries), tuple(name for _, name in rows), pool), found


def by_query(file: Qrels | Run, values: NDArray[Any]) -> dict[str, dict[str, Any]]:
    """query -> document -> value."""
    bounds = zip(file.query_ids, file.offsets[:-1], file.offsets[1:], strict=True)
    return {
        query: dict(zip(file.document_ids[start:stop], values[start:stop].tolist(), strict=True))
        for query, start, stop in bounds
    }
