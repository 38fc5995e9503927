"""LETOR / SVMlight files: queries in, bit for bit what was written.

    # 1: BM25 of the title
    2 qid:q17 1:0.5 2:1e-3 # docid = GX008-86-4444840

Plain or gzip (of one or several members), UTF-8, lines ending in LF or CR LF. `grammar` states the format.
"""

from os import PathLike
from typing import Any

import numpy as np

from rankopt.data.given import Unjudged
from rankopt.data.queries import Queries
from rankopt.data.svmlight.grammar import query_name
from rankopt.data.svmlight.parsed import Parsed, joined
from rankopt.data.svmlight.reading import SvmlightParser
from rankopt.data.svmlight.table import check_sparse, features_of
from rankopt.errors import DataError

__all__ = ["queries_of", "read_svmlight"]


def read_svmlight(
    path: str | PathLike[str],
    *,
    missing: float | None = None,
    unjudged: Unjudged = None,
    dtype: Any = np.float64,
    sparse: bool | str = "auto",
    n_features: int | None = None,
) -> Queries:
    """Read a file of graded documents, strictly.

    missing: the value of features written `nan` or `NULL`; None refuses them.
    unjudged: what a negative grade means: a grade >= 0, or "drop" to leave the document out; None refuses it.
    dtype: float64 or float32. sparse: True for CSR, False for an array, "auto" for CSR where under 10% is written.
    n_features: the number d of features; by default the number of names in the header, else the greatest index.

    Query ids are integers where the file writes integers, else strings; document ids are strings. Raises DataError
    naming file and line; a missing file is Python's own FileNotFoundError. Memory follows what the file holds, not what
    it unpacks to or counts up to: an array that is mostly what the file does not say is refused.
    """
    check_sparse(sparse)
    reading = SvmlightParser(path, missing, unjudged, dtype, n_features)
    parsed = joined(list(reading))
    greatest, _ = parsed.greatest()
    names = reading.header.names(n_features or greatest, n_features)
    d = n_features or (len(names) if names else greatest)
    if unjudged == "drop" and parsed.grades.max() < 0:
        raise DataError(f"{reading.file}: all grades are negative and unjudged='drop' leaves no document; judge some.")
    return queries_of(parsed, reading, d, names, unjudged, dtype, sparse)


def queries_of(
    parsed: Parsed,
    reading: SvmlightParser,
    d: int,
    names: list[str] | None,
    unjudged: Unjudged,
    dtype: Any,
    sparse: bool | str,
) -> Queries:
    """The queries of these lines, of d features; the options are those of `read_svmlight`."""
    greatest, line = parsed.greatest()
    if d == 0:
        raise DataError(f"{reading.file}: no line has a feature; write 'grade qid:QUERY 1:value ...'.")
    ids = np.empty(parsed.starts.size, dtype=object)
    ids[:] = [query_name(token) for token in parsed.qids]
    where = None if reading.n_features else f"{reading.file}, line {line}: feature {greatest}"
    return Queries.from_arrays(
        features_of(parsed, d, np.dtype(dtype), sparse, where),
        parsed.grades,
        qid=np.repeat(ids, np.diff(np.append(parsed.starts, parsed.grades.size))),
        documents=None if not any(parsed.documents) else parsed.documents,
        feature_names=names,
        unjudged=unjudged,
    )
