"""Run and qrels files of TREC, written plain or gzip (`.gz`).

The score column of a run holds, by `column`,

    "rank"   n, n - 1, ..., 1 for the n documents of a query: whoever sorts by it gets the ranking back, also one under
             constraints, and trec_eval too, which compares in single precision, where whole numbers up to 2^24 differ
    "model"  the scores themselves. Readers sort by them; documents that are equal in single precision trec_eval orders
             by their ids
"""

import gzip
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankopt.data.given import Values
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.grouped import Grouped, QueryIndexed
from rankopt.evaluation.judged import descending_text, vector
from rankopt.measures.segments import Floats, Ints, query_of_row

__all__ = ["ScoreColumn", "run_text", "write_qrels", "write_run"]

ScoreColumn = Literal["rank", "model"]

Orders = Mapping[Hashable, Sequence[Hashable]] | Sequence[Hashable] | NDArray[Any]
"""The documents that are shown, best first, as `rank` gives them: by query, or those of the only one."""


def write_run(
    path: str | PathLike[str],
    queries: QueryIndexed,
    given: Values,
    /,
    *,
    tag: str = "rankopt",
    depth: int | None = None,
    scores: ScoreColumn = "rank",
    orders: Orders | None = None,
) -> None:
    """Write the ranking that the `given` scores (N,) make, the first `depth` documents of each query.

    queries: a `Queries`, or anything with offsets, query_ids and document_ids. Equal scores stand by document id,
    descending, as in trec_eval. orders: the rankings to write instead, as `ranker.rank(queries, constraints=...)` gives
    them. scores: what stands in the score column, "rank" or the "model"'s scores.

    Raises DataError for missing, repeated or blank ids, NaN scores, orders of other documents, and scores="model" where
    orders are not those of the scores: readers would sort them otherwise.
    """
    _write(path, run_text(queries, given, tag=tag, depth=depth, scores=scores, orders=orders))


def run_text(
    queries: QueryIndexed,
    given: Values,
    /,
    *,
    tag: str = "rankopt",
    depth: int | None = None,
    scores: ScoreColumn = "rank",
    orders: Orders | None = None,
) -> str:
    """What `write_run` writes."""
    if not isinstance(scores, str) or scores not in get_args(ScoreColumn):
        raise OptionError(f"scores cannot be {scores!r}; write 'rank' or 'model', and the scores before it.")
    names, documents, offsets = _ids(queries)
    values = vector("scores", given)
    if len(values) != len(documents) or np.any(np.isnan(values)):
        raise DataError(f"A run of {len(documents)} documents needs as many scores, none NaN; there are {len(values)}.")
    word, lines = _word("tag", tag), []
    for name, rows in zip(names, _rows(queries, documents, offsets, values, orders), strict=True):
        shown = rows[:depth]
        told: list[Any] = values[shown].tolist() if scores == "model" else list(range(len(shown), 0, -1))
        if any(later > earlier for earlier, later in pairwise(told)):
            raise DataError(
                f"The ranking of query {name!r} is not that of its scores, which readers of a run sort by; "
                "write scores='rank'."
            )
        lines += [
            f"{name} Q0 {documents[row]} {place} {score!r} {word}\n"
            for place, (row, score) in enumerate(zip(shown, told, strict=True), 1)
        ]
    return "".join(lines)


def _rows(queries: Any, documents: list[str], offsets: Ints, values: Floats, orders: Orders | None) -> list[list[int]]:
    """The rows of each query as they are shown, best first."""
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    if orders is None:
        order = np.lexsort((descending_text(documents), -values, query_of_row(offsets)))
        return [order[start:stop].tolist() for start, stop in bounds]
    given = orders if isinstance(orders, Mapping) else {queries.query_ids[0]: orders}
    if set(given) != set(queries.query_ids):
        raise DataError(
            f"orders has {len(given)} queries, but not these {len(bounds)}; pass what `rank` gives of them."
        )
    found = []
    for query, (start, stop) in zip(queries.query_ids, bounds, strict=True):
        row = {documents[place]: place for place in range(start, stop)}
        wanted = [str(name) for name in given[query]]
        if len(set(wanted)) < len(wanted) or not set(wanted) <= set(row):
            raise DataError(f"orders of query {query!r} hold what is no document of it, or one twice; rank it again.")
        found.append([row[name] for name in wanted])
    return found


def write_qrels(path: str | PathLike[str], queries: Grouped) -> None:
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
