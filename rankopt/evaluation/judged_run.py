"""A run held against qrels: the documents, grades and scores that `evaluate` takes."""

from typing import Literal, get_args

import numpy as np

from rankopt.errors import DataError, OptionError
from rankopt.evaluation.judgements import JudgedQueries
from rankopt.evaluation.trec import Qrels, Run
from rankopt.measures.segments import Floats
from rankopt.measures.tied_ranking import Pool

Missing = Literal["error", "skip", "zero"]


def judge(qrels: Qrels, run: Run, *, missing: Missing = "error") -> tuple[JudgedQueries, Floats]:
    """The judged documents and their scores, query by query: `evaluate(*judge(qrels, run), measures)`.

    A retrieved document without a judgment has the grade 0. A judged document that was not retrieved has no position:
    it adds nothing, and counts among the relevant documents that there are, as in trec_eval. Its score is -inf. Queries
    without judgments are left out. Judged queries without a run are an error, left out with missing="skip" (as
    trec_eval does), or count as runs that retrieved nothing with missing="zero" (trec_eval -c).
    """
    if missing not in get_args(Missing):
        raise OptionError(f"missing cannot be {missing!r}; write 'error', 'skip' or 'zero'.")
    grades, scores = _by_query(qrels, qrels.relevance), _by_query(run, run.scores)
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
    judged = _by_query(qrels, qrels.judged.astype(np.float64))
    pool = Pool(
        np.array([judged[query].get(name, 0.0) > 0 for query, name in rows], dtype=np.bool_),
        np.array([name in grades[query] for query, name in rows], dtype=np.bool_),
        np.array([name in scores[query] for query, name in rows], dtype=np.bool_),
    )
    return JudgedQueries(relevance, offsets, tuple(queries), tuple(name for _, name in rows), pool), found


def _by_query(file: Qrels | Run, values: Floats) -> dict[str, dict[str, float]]:
    """query -> document -> value."""
    bounds = zip(file.query_ids, file.offsets[:-1], file.offsets[1:], strict=True)
    return {
        query: dict(zip(file.document_ids[start:stop], values[start:stop].tolist(), strict=True))
        for query, start, stop in bounds
    }
