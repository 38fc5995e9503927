"""What a caller may pass to a ranker, read into one `Queries`."""

import warnings
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from rankopt.data.queries import Queries
from rankopt.data.values import as_csr, is_sparse, lent
from rankopt.errors import DataError, ForgottenQueries
from rankopt.rankers.row_attributes import row_attributes
from rankopt.rankers.within_query import normalised

QID_COLUMN = "qid"
"""The column of a data frame that names the query of each row; it is never a feature."""

FEW = 300
"""Rows that one query may have before a fit without query ids warns."""


class Fitted(Protocol):
    """A ranker, as far as its data go."""

    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]


def without_qid_column(X: Any) -> tuple[Any, list[Hashable] | None]:
    """Split a data frame into its features and its column of query ids; anything else has no such column."""
    columns = getattr(X, "columns", None)
    if columns is None or QID_COLUMN not in list(columns):
        return X, None
    return X[[column for column in columns if column != QID_COLUMN]], list(X[QID_COLUMN])


def read_features(ranker: Fitted, X: Any, *, reset: bool) -> Any:
    """The (N, d) features of an array, sparse matrix, data frame or `Queries`, in the order of its rows.

    With `reset` the ranker notes number and names of the features; without, it checks them.
    """
    if isinstance(X, Queries):
        if reset:
            _note(ranker, X)
        else:
            _compare(ranker, X)
        X.check_features()
        return X.features
    features, _ = without_qid_column(X)
    if is_sparse(features):
        features = as_csr(features)
    try:
        return validate_data(ranker, features, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
    except OverflowError as error:  # a whole number of Python's beyond all floats
        raise DataError(f"features cannot be read as numbers: {error}; rescale them.") from None


def read_queries(
    ranker: Fitted,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    attributes: Any = None,
    reset: bool,
    labels: bool = True,
) -> Queries:
    """One `Queries` from features, grades and exactly one way of saying which rows belong together.

    X: (N, d) array, CSR, data frame (perhaps with a column `qid`), or a `Queries`, which brings the rest along.
    y: (N,) grades, needed when `labels`. qid: (N,) hashables, in any order. group: sizes of consecutive queries.
    No way at all means that all rows are one query. attributes: see `row_attributes`. Features come normalised by the
    ranker's `normalize`. Raises DataError on two ways at once.
    """
    given = {"y": y, "qid": qid, "group": group, "attributes": attributes}
    if isinstance(X, Queries):
        twice = [name for name, value in given.items() if value is not None]
        if twice:
            raise DataError(
                f"{' and '.join(twice)} cannot be given beside a Queries because it has its own; "
                f"leave out {' and '.join(twice)}, or pass its features instead of the Queries."
            )
        read_features(ranker, X, reset=reset)
        if labels and X.relevance is None:
            raise DataError(
                f"{type(ranker).__name__} requires y to be passed, but the target y is None: these Queries have no "
                "relevance; read them with their grades, or add them by `queries.with_(relevance=...)`."
            )
        return normalised(ranker, X)
    if labels and y is None:
        raise DataError(
            f"{type(ranker).__name__} requires y to be passed, but the target y is None; pass the grades of the rows."
        )
    _, column = without_qid_column(X)
    ways = {"qid=": qid, "group=": group, f"the column {QID_COLUMN!r} of X": column}
    used = [name for name, value in ways.items() if value is not None]
    if len(used) > 1:
        raise DataError(f"Queries cannot be given by {' and '.join(used)} at once; keep one of them.")
    features = read_features(ranker, X, reset=reset)
    relevance = None
    if y is not None:
        try:
            relevance = column_or_1d(y, dtype=np.float64, warn=True)
        except OverflowError as error:
            raise DataError(f"relevance cannot be read as numbers: {error}; use smaller grades.") from None
        check_consistent_length(features, relevance)
    ids = column if qid is None else qid
    sizes = [features.shape[0]] if ids is None and group is None else group
    names = getattr(ranker, "feature_names_in_", None)
    columns = row_attributes(attributes, features.shape[0])
    queries = Queries.from_arrays(
        lent(features), relevance, qid=ids, group=sizes, attributes=columns, feature_names=names
    )
    return normalised(ranker, queries)


def read_rows(ranker: Any, X: Any, *, qid: Any, group: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Features (N, d) to be scored, and what puts their scores into the caller's order of rows.

    The query of a row matters to a ranker with `normalize` alone: `qid` or `group` names it, as in `read_queries`.
    """
    if ranker.normalize is None:
        return read_features(ranker, X, reset=False), X.to_caller if isinstance(X, Queries) else np.asarray
    check_queries_named(ranker, X, qid, group)
    queries = read_queries(ranker, X, None, qid=qid, group=group, reset=False, labels=False)
    return queries.features, queries.to_caller


def warn_of_one_query(X: Any, rows: int, qid: Any, group: Any, stacklevel: int = 3) -> None:
    """Warn the caller of a `fit` on more rows than `FEW` where nothing says which of them belong together."""
    if isinstance(X, Queries) or qid is not None or group is not None or without_qid_column(X)[1] is not None:
        return
    if rows > FEW:
        warnings.warn(
            f"all {rows} rows are taken for one query because nothing says which belong together; pass qid= (an id a "
            f"row) or group= (sizes of consecutive queries), or group=[{rows}] if they are one",
            ForgottenQueries,
            stacklevel=stacklevel,
        )


def check_queries_named(ranker: Fitted, X: Any, qid: Any, group: Any) -> None:
    """Raise DataError where a ranker was fitted on several queries and nothing says which rows belong together."""
    _, column = without_qid_column(X)
    if ranker.n_queries_ > 1 and not isinstance(X, Queries) and qid is None and group is None and column is None:
        raise DataError(
            f"{type(ranker).__name__} cannot score because it was fitted on {ranker.n_queries_} queries and `qid` is "
            "missing; pass qid=. Inside a Pipeline or a search it is lost unless routing is on: "
            "`sklearn.set_config(enable_metadata_routing=True)`."
        )


def documents_of(queries: Queries) -> NDArray[Any]:
    """(N,) what a caller knows the documents by: their ids where the data has them, else their rows."""
    if queries.document_ids is None:
        return queries.row_order
    documents = np.empty(queries.n_documents, dtype=object)
    documents[:] = queries.document_ids
    return documents


def read_evaluation(ranker: Fitted, eval_set: Any, **ways: Any) -> Queries | None:
    """The data that a ranker chooses on: `(X, y)` or `Queries`, with `ways` (qid, group, attributes) as in fit; or a
    list of one such, with lists of one."""
    if eval_set is None:
        if any(value is not None for value in ways.values()):
            names = ", ".join(f"eval_{name}" for name in ways)
            raise DataError(f"{names} belong to eval_set, which is missing; pass eval_set=(X, y).")
        return None
    if isinstance(eval_set, list):
        eval_set, ways = _only(eval_set, ways)
    if isinstance(eval_set, Queries):
        return read_queries(ranker, eval_set, None, **ways, reset=False)
    if not (isinstance(eval_set, tuple) and len(eval_set) == 2):
        raise DataError(
            f"eval_set cannot be a {type(eval_set).__name__} because one data set is chosen on; "
            "pass eval_set=(X, y), [(X, y)] or a Queries."
        )
    _, column = without_qid_column(eval_set[0])
    if ranker.n_queries_ > 1 and ways["qid"] is None and ways["group"] is None and column is None:
        raise DataError("eval_set has no query ids, but the training data has several queries; pass eval_qid=.")
    return read_queries(ranker, *eval_set, **ways, reset=False)


def in_one(eval_set: Any, X: Any, y: Any) -> Any:
    """`eval_set`, or `(eval_X, eval_y)` in its place; DataError where both are given, or one of the two alone."""
    if X is None and y is None:
        return eval_set
    if eval_set is not None:
        raise DataError("eval_set and eval_X say the same thing; pass one of them.")
    if X is None or (y is None and not isinstance(X, Queries)):
        lacking, given = ("eval_X", "eval_y") if X is None else ("eval_y", "eval_X")
        raise DataError(f"{lacking} is missing beside {given}; pass both.")
    return X if y is None else (X, y)


def _only(eval_set: list[Any], ways: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The one data set of a list and its ways, lists too, as LightGBM and XGBoost take them."""
    if len(eval_set) != 1:
        raise DataError(
            f"eval_set cannot be a list of {len(eval_set)} because one data set is chosen on; "
            "pass that one, eval_set=[(X, y)], and `score` the others."
        )
    for name, value in ways.items():
        alone = isinstance(value, list | tuple) and len(value) == 1 and hasattr(value[0], "__len__")
        if value is not None and not alone:
            raise DataError(
                f"eval_{name} is no list of one entry because eval_set is a list; pass eval_{name}=[{name}], "
                "or eval_set=(X, y)."
            )
    return eval_set[0], {name: None if value is None else value[0] for name, value in ways.items()}


def read_row(ranker: Fitted, document: Any, name: str) -> NDArray[np.float64]:
    """The features (d,) of one document: a vector, a row of a data frame (with or without `qid`), a 1 × d matrix."""
    if hasattr(document, "to_frame"):  # a pandas Series: its index names the features
        document = document.to_frame().T
    elif not hasattr(document, "shape") or len(document.shape) == 1:
        # A bare vector is in the order of fit; as queries it needs no names and gets no warning about them.
        alone = Queries.from_arrays(np.reshape(np.asarray(document), (1, -1)), group=[1])
        return np.asarray(read_features(ranker, alone, reset=False)[0], dtype=np.float64)
    if document.shape[0] != 1:
        raise DataError(f"{name} has {document.shape[0]} rows but explain compares two documents; pass one row each.")
    features = read_features(ranker, document, reset=False)
    row = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(row[0], dtype=np.float64)


def _note(ranker: Fitted, queries: Queries) -> None:
    ranker.n_features_in_ = queries.n_features
    if queries.feature_names is not None:
        ranker.feature_names_in_ = np.array(queries.feature_names, dtype=object)
    elif hasattr(ranker, "feature_names_in_"):
        del ranker.feature_names_in_


def _compare(ranker: Fitted, queries: Queries) -> None:
    if queries.n_features != ranker.n_features_in_:
        raise DataError(
            f"X has {queries.n_features} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input; pass the features of fit."
        )
    fitted = getattr(ranker, "feature_names_in_", None)
    if fitted is None or queries.feature_names is None:
        return
    for j, (old, new) in enumerate(zip(fitted, queries.feature_names, strict=True)):
        if old != new:
            raise DataError(f"Feature {j} is {new!r} but was {old!r} in fit; pass the features in the order of fit.")
