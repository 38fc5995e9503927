"""A run held against qrels: the documents, grades and scores that `evaluate` takes."""

from typing import Literal

import numpy as np

from rankopt.errors import DataError
from rankopt.evaluation.judged import Judged
from rankopt.evaluation.trec import Qrels, Run
from rankopt.measures.segments import Floats


def judge(qrels: Qrels, run: Run, *, missing: Literal["error", "skip"] = "error") -> tuple[Judged, Floats]:
    """The judged documents and their scores, query by query: `evaluate(*judge(qrels, run), measures)`.

    A retrieved document without a judgment has the grade 0. A judged document that was not retrieved stands last, with
    the score -inf: up to the depth of the run every measure is what trec_eval computes. Queries without judgments are
    left out; judged queries without a run are an error, or left out too with missing="skip".
    """
    grades, scores = _by_query(qrels, qrels.relevance), _by_query(run, run.scores)
    absent = [query for query in grades if query not in scores]
    if absent and missing == "error":
        raise DataError(
            f"The run lacks {len(absent)} judged queries, such as {absent[0]!r}; complete it, or missing='skip'."
        )
    queries = [query for query in grades if query in scores]
    documents = [list(scores[query] | grades[query]) for query in queries]
    rows = [(query, name) for query, names in zip(queries, documents, strict=True) for name in names]
    offsets = np.concatenate([[0], np.cumsum([len(names) for names in documents])]).astype(np.int64)
    relevance = np.array([grades[query].get(name, 0.0) for query, name in rows], dtype=np.float64)
    found = np.array([scores[query].get(name, -np.inf) for query, name in rows], dtype=np.float64)
    return Judged(relevance, offsets, tuple(queries), tuple(name for _, name in rows)), found


def _by_query(file: Qrels | Run, values: Floats) -> dict[str, dict[str, float]]:
    """query -> document -> value."""
    bounds = zip(file.query_ids, file.offsets[:-1], file.offsets[1:], strict=True)
    return {
        query: dict(zip(file.document_ids[start:stop], values[start:stop].tolist(), strict=True))
        for query, start, stop in bounds
    }
