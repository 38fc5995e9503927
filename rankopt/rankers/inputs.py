"""Arguments of rankers, read into one `Queries`: features and query ids, attributes of rows, weights of queries.

Names and numbers of features, normalization and evaluation sets are compared with those of `fit`.
"""

import sys
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from formulations.arrays import Floats, check_no_mask, each, is_sparse
from rankopt.data.canonical_order import fingerprints
from rankopt.data.normalization import METHODS, QueryNormalizer, chosen_method, normalize
from rankopt.data.queries import Queries, first_not_finite
from rankopt.data.tables import FEW_ROWS, USUAL, warn_of_features
from rankopt.data.validation import (
    as_csr,
    check_same_index,
    column_names,
    in_order_of,
    is_missing,
    lent,
    named_as,
    without_query_column,
)
from rankopt.errors import ColumnWarning, DataError, OptionError, SharedQueriesWarning
from rankopt.evaluation.evaluation import warn_of_one_query
from rankopt.measures.notation import linear_in_gains
from rankopt.options import as_numbers, check
from rankopt.rankers.missing import (
    cure_of,
    means_within,
    one_hot_cure,
    queries_with_codes,
    takes_missing,
    with_codes,
    with_indicators,
    without_missing,
)

SEVERAL = (tuple, list, set, frozenset)


def row_attributes(passed: Any, n: int) -> dict[str, NDArray[Any]]:
    """Name → (n,) array, from a data frame, a structured array, or a mapping of columns; none of them gives {}.

    A value may be a tuple of labels (the genres of a film). Frames and structured arrays are cut by rows in
    cross-validation, a mapping is not. Raises DataError for other lengths and for anything else.
    """
    if passed is None:
        return {}
    if hasattr(passed, "columns") and hasattr(passed, "__getitem__"):
        columns = {str(name): passed[name] for name in passed.columns}
    elif isinstance(passed, np.ndarray) and passed.dtype.names:
        columns = {name: passed[name] for name in passed.dtype.names}
    elif isinstance(passed, Mapping):
        columns = {str(name): values for name, values in passed.items()}
    else:
        raise DataError(
            f"attributes cannot be a {type(passed).__name__} because its columns have no names; pass a data frame, a "
            "structured array, or a mapping from name to one value a row."
        )
    return {name: _column(values, name, n) for name, values in columns.items()}


def _column(values: Any, name: str, n: int) -> NDArray[Any]:
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, list | tuple) and any(isinstance(value, SEVERAL) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = [tuple(value) if isinstance(value, list) else value for value in values]
    else:
        array = np.asarray(values)
    check_no_mask(f"attribute {name!r}", values, DataError)
    if array.ndim != 1:
        raise DataError(f"attribute {name!r} has shape {array.shape} but a document has one value; pass one a row.")
    if array.size != n:
        raise DataError(
            f"attribute {name!r} has {array.size} values but there are {n} rows; pass one value a row. "
            "Cross-validation cuts a data frame or a structured array of attributes by rows, but no mapping."
        )
    return array


class Fitted(Protocol):
    """A ranker, as far as its data go."""

    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    categories_: dict[str, tuple[Any, ...]]
    missing: Any
    _allow_nan: bool


def read_features(ranker: Fitted, X: Any, *, reset: bool) -> Any:
    """The (N, d) features of an array, sparse matrix, data frame or `Queries`, in the order of its rows.

    With `reset` the ranker notes number and names of the features; without, it takes those of `fit` by name.
    """
    if isinstance(X, Queries):
        return _queries_of_fit(ranker, X, reset).features
    refuse_log(X)
    features, query_column, _ = without_query_column(X)
    if reset:
        warn_of_features(features)
    else:
        features = _without_other_columns(ranker, features)
    features = with_codes(ranker, features, reset)
    check_no_mask("X", features, DataError)
    if is_sparse(features):
        features = as_csr(features)
    keep = takes_missing(ranker, fitted=not reset)
    kinds, finite = [np.float64, np.float32], "allow-nan" if keep else True
    try:
        return validate_data(ranker, features, accept_sparse="csr", dtype=kinds, reset=reset, ensure_all_finite=finite)
    except OverflowError as error:  # a Python integer beyond the range of floats
        raise DataError(f"features cannot be read as numbers: {error}; rescale them.") from None
    except ValueError as error:
        first = str(error).splitlines()[0].rstrip(".")
        if "feature names" in first:  # scikit-learn's check wants another order of columns refused, in its words
            own = "" if query_column is None else f"{query_column!r}, "
            cure = f"Pass X[[{own}*ranker.feature_names_in_]]." if "same order" in str(error) else ""
            raise DataError(f"{error}{cure}") from None
        bad = _bad_entry(features, keep)
        if bad is None:
            raise
        entry, where = bad
        if isinstance(entry, str):
            cure = one_hot_cure(ranker, _text_columns(features), features)
        else:
            cure = cure_of(ranker) if is_missing(entry) else "Impute it, or leave the row or the column out."
        raise DataError(f"{first}: X has {entry!r} in {where}. {cure}") from None


def _bad_entry(features: Any, missing: bool) -> tuple[Any, str] | None:
    """The first entry of a table that is no finite number, and its row and column in words; None without one. missing:
    whether a missing value is as good as one."""
    if is_sparse(features):
        entry = first_not_finite(features, np.isinf if missing else lambda values: ~np.isfinite(values))
        return None if entry is None else (features[entry].item(), f"row {entry[0]}, column {entry[1]}")
    names = column_names(features)
    table = np.asarray(features, dtype=object)
    for column in range(table.shape[1] if table.ndim == 2 else 0):
        row = bad_row(table[:, column], missing)
        if row is not None:
            where = f"column {column}" if names is None else f"column {names[column]!r}"
            return table[row, column], f"row {row}, {where}"
    return None


def _text_columns(features: Any) -> list[Any]:
    """The columns of a table, by name if they have any, that hold texts."""
    names, table = column_names(features), np.asarray(features, dtype=object)
    text = [any(isinstance(value, str) for value in column) for column in table.T]
    return [j if names is None else names[j] for j in np.flatnonzero(text).tolist()]


def bad_row(values: Any, missing: bool = False) -> int | None:
    """The first of the values that is no finite number (nor missing), or None."""
    for row, value in enumerate(values):
        try:
            if not (missing and is_missing(value)) and not np.isfinite(float(value)):
                return row
        except (TypeError, ValueError):
            return row
    return None


def read_queries(ranker: Fitted, X: Any, y: Any = None, **passed: Any) -> Queries:
    """`as_queries` with the same arguments, grouped, the features normalized by the ranker's `normalize`."""
    check("missing", ranker.missing, ("error", "indicator"))  # NaN in X is the next error
    queries = as_queries(ranker, X, y, **passed)
    if passed["reset"]:
        _warn_of_grades(queries)
        _note_normalization(ranker, queries)
    return normalized(ranker, queries.grouped(), passed["reset"])


def is_log(X: Any) -> bool:
    """Whether X is a `rankopt.clicks.ClickLog`."""
    log = getattr(sys.modules.get("rankopt.clicks.log"), "ClickLog", None)
    return log is not None and isinstance(X, log)


def of_clicks(X: Any, eval_set: Any, propensities: Any, estimator: Any, query_weight: Any) -> tuple[Any, Any, Any]:
    """X, eval_set, of a log of clicks its queries with gains, and the weights of queries."""
    if isinstance(eval_set, list) and len(eval_set) == 1 and is_log(eval_set[0]):
        eval_set = eval_set[0]
    logs = [is_log(X), is_log(eval_set)]
    if any(logs) and propensities is None:
        raise OptionError("clicks need propensities=, as of rankopt.clicks.PositionBias.from_swaps(log)")
    if propensities is not None and not any(logs):
        raise OptionError("propensities are of a ClickLog, and X is none; pass the log as X, or gains= without them.")
    if logs[0] and query_weight is None:
        query_weight = X.sessions
    X, eval_set = (
        one.gains(propensities, estimator) if log else one for one, log in zip((X, eval_set), logs, strict=True)
    )
    return X, eval_set, query_weight


def refuse_log(X: Any) -> None:
    """OptionError for a log of clicks, which only `fit` takes."""
    if is_log(X):
        raise OptionError("only `fit` takes a ClickLog; pass log.queries, or log.gains(propensities) with estimates.")


def measure_for(ranker: Any, queries: Queries) -> Any:
    """What a ranker trains on these queries and judges them by: its measure, of gains one that is linear in them."""
    if not queries.has_gains:
        return ranker.measure
    usual = signature(type(ranker)).parameters["measure"].default
    return linear_in_gains("DCG@10" if ranker.measure == usual else ranker.measure)


@contextmanager
def measuring_gains(ranker: Any, queries: Queries) -> Iterator[None]:
    """While a ranker is trained on gains its measure is `measure_for` them."""
    if not queries.has_gains:
        yield
        return
    if not ranker._takes_gains():
        raise OptionError(
            f"{type(ranker).__name__} trains no function that is linear in the gains of documents, so estimates from "
            "clicks would be biased; use LargeMarginRanker, SmoothRanker, DirectRanker, BoostedRanker, "
            "PlackettLuceRanker, RegressionRanker or LossRanker('squared')"
        )
    given, ranker.measure = ranker.measure, measure_for(ranker, queries)
    try:
        yield
    finally:
        ranker.measure = given


def _warn_of_grades(queries: Queries) -> None:
    """Warn of a feature that is the grade in every row."""
    features, grades = queries.features, queries.relevance
    if is_sparse(features) or grades is None or grades.size <= FEW_ROWS or (grades == grades[0]).all():
        return
    likely = np.flatnonzero((features[:FEW_ROWS] == grades[:FEW_ROWS, None]).all(axis=0))
    same = [index for index in likely.tolist() if (features[:, index] == grades).all()]
    named = same if queries.feature_names is None else [queries.feature_names[index] for index in same]
    unknown = [str(name) for name in named if not named_as(USUAL["relevance"], [name])]  # others are warned of by name
    if unknown and features.shape[1] > 1:
        text = f"features equal y in every row: {', '.join(unknown)}; leave them out of X"
        warnings.warn(text, ColumnWarning, stacklevel=5)


def as_queries(
    ranker: Fitted,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    attributes: Any = None,
    gains: Any = None,
    reset: bool,
    labels: bool = True,
) -> Queries:
    """One `Queries` from features, grades and exactly one way of saying which rows belong together, its rows as in X.

    X: (N, d) array, CSR, data frame (perhaps with a column `qid`), or a `Queries`, which brings the rest along.
    y: (N,) grades, needed when `labels`. qid: (N,) hashables, in any order. group: sizes of consecutive queries.
    No way at all means that all rows are one query. attributes: see `row_attributes`. gains: (N,) instead of y. Raises
    DataError on two ways at once.
    """
    passed = {"y": y, "qid": qid, "group": group, "attributes": attributes}
    if gains is not None:
        if y is not None:
            raise DataError("y and gains are alternatives; pass one of them.")
        if getattr(X, "has_gains", False):
            raise DataError("gains cannot be passed with a log, or with Queries that have gains; leave them out.")
        check_same_index(X=X, gains=gains)
        return as_queries(ranker, X, **passed, reset=reset, labels=False).with_gains(gains)
    if isinstance(X, Queries):
        twice = [name for name, value in passed.items() if value is not None]
        if twice:
            raise DataError(
                f"{' and '.join(twice)} cannot be passed with a Queries, which has its own; "
                f"leave out {' and '.join(twice)}, or pass its features instead of the Queries."
            )
        queries = _queries_of_fit(ranker, X, reset)
        if labels and queries.relevance is None:
            raise DataError(
                f"{type(ranker).__name__} requires y to be passed, but the target y is None: these Queries have no "
                "relevance; read them with their grades, as in read_table(file, relevance='grade')."
            )
        return queries
    if labels and y is None:
        raise DataError(
            f"{type(ranker).__name__} requires y to be passed, but the target y is None; pass the grades of the rows."
        )
    check_same_index(X=X, y=y, qid=qid, attributes=attributes)
    _, named, column = without_query_column(X)
    ways = {"qid=": qid, "group=": group, f"the column {named!r} of X": column}
    used = [name for name, value in ways.items() if value is not None]
    if len(used) > 1:
        raise DataError(f"Queries are identified by {' and '.join(used)} at once; pass one of them.")
    features = read_features(ranker, X, reset=reset)
    relevance = None
    if y is not None:
        check_no_mask("y", y, DataError)
        try:
            relevance = column_or_1d(y, dtype=np.float64, warn=True)
        except OverflowError as error:
            raise DataError(f"relevance cannot be read as numbers: {error}; use smaller grades.") from None
        except ValueError as error:
            values = () if len(getattr(y, "shape", (0,))) > 1 else each("y", y, DataError)
            row = bad_row(values)
            if row is None:
                raise DataError(f"y cannot be read as one grade a row: {error}.") from None
            name = getattr(y, "name", None)
            where = "" if name is None else f", column {name!r}"
            cure = "pass grades as numbers, 0 for irrelevant, such as y.map({'bad': 0, 'good': 1})"
            raise DataError(f"y has {values[row]!r:.80} in row {row}{where} ({error}); {cure}.") from None
        check_consistent_length(features, relevance)
    ids = column if qid is None else qid
    sizes = [features.shape[0]] if ids is None and group is None else group
    names = getattr(ranker, "feature_names_in_", None)
    columns = row_attributes(attributes, features.shape[0])
    return Queries.from_arrays(lent(features), relevance, qid=ids, group=sizes, attributes=columns, feature_names=names)


def read_rows(ranker: Any, X: Any, *, qid: Any, group: Any) -> Any:
    """Features (N, d) to be scored, in the order of the rows.

    The query of a row matters to a ranker with `normalize` or missing="indicator": `qid` or `group` names it, as in
    `read_queries`.
    """
    if getattr(ranker, "normalize_", None) is None and not hasattr(ranker, "missing_features_"):
        return read_features(ranker, X, reset=False)
    warn_without_queries(X, X.shape[0] if hasattr(X, "shape") else len(X), qid, group, stacklevel=4)
    return normalized(ranker, as_queries(ranker, X, None, qid=qid, group=group, reset=False, labels=False)).features


def warn_without_queries(X: Any, rows: int, qid: Any, group: Any, stacklevel: int = 3) -> None:
    """Warn the caller of a `fit` on many rows if nothing names their queries."""
    if not (isinstance(X, Queries) or qid is not None or group is not None or without_query_column(X)[2] is not None):
        warn_of_one_query(rows, stacklevel)


def check_queries_named(ranker: Fitted, X: Any, qid: Any, group: Any) -> None:
    """Raise DataError if a ranker was fitted on several queries and neither qid nor group is passed."""
    refuse_log(X)
    column = without_query_column(X)[2]
    if ranker.n_queries_ > 1 and not isinstance(X, Queries) and qid is None and group is None and column is None:
        raise DataError(
            f"{type(ranker).__name__} cannot score because it was fitted on {ranker.n_queries_} queries and `qid` is "
            "missing; pass qid=, or give X a column `qid`. Inside a Pipeline or a search qid= is lost unless routing "
            "is on: `sklearn.set_config(enable_metadata_routing=True)`."
        )


def documents_of(queries: Queries) -> NDArray[Any]:
    """(N,) what a caller knows the documents by: their ids where the data has them, else their rows."""
    if queries.document_ids is None:
        return queries.input_order
    documents = np.empty(queries.n_documents, dtype=object)
    documents[:] = queries.document_ids
    return documents


def read_evaluation(ranker: Fitted, train: Queries, eval_set: Any, **ways: Any) -> Queries | None:
    """The data that a ranker chooses on: `(X, y)` or `Queries`, with `ways` (qid, group, attributes) as in fit; or a
    list of one such, with lists of one. Warns of queries that `train` has too."""
    if eval_set is None:
        if any(value is not None for value in ways.values()):
            names = ", ".join(f"eval_{name}" for name in ways)
            raise DataError(f"{names} belong to eval_set, which is missing; pass eval_set=(X, y).")
        return None
    if isinstance(eval_set, list):
        eval_set, ways = _only(eval_set, ways)
    if isinstance(eval_set, Queries):
        eval_set = (eval_set, None)
    elif not (isinstance(eval_set, tuple) and len(eval_set) == 2):
        size = f" of {len(eval_set)}" if isinstance(eval_set, tuple) else ""
        raise DataError(
            f"eval_set cannot be a {type(eval_set).__name__}{size} because one data set is chosen on; "
            "pass eval_set=(X, y), [(X, y)] or a Queries, and query ids as eval_qid=."
        )
    elif ranker.n_queries_ > 1 and all(
        way is None for way in (ways["qid"], ways["group"], without_query_column(eval_set[0])[2])
    ):
        raise DataError("eval_set has no query ids, but the training data has several queries; pass eval_qid=.")
    evaluation = read_queries(ranker, *eval_set, **ways, reset=False)
    same = _shared_queries(train, evaluation)
    if same:
        warnings.warn(
            f"{len(same)} of {len(evaluation)} queries of eval_set are training queries, by id and features, such as "
            f"{same[0]!r}: what is chosen on them overfits. Pass other queries.",
            SharedQueriesWarning,
            stacklevel=4,
        )
    return evaluation


def _shared_queries(train: Queries, evaluation: Queries) -> list[Hashable]:
    """The queries of both with one id and one set of feature rows."""
    index = {query: number for number, query in enumerate(train.query_ids)}
    found = []
    for q, query in enumerate(evaluation.query_ids):
        if query in index:
            rows = [slice(*one.offsets[at : at + 2].tolist()) for one, at in ((train, index[query]), (evaluation, q))]
            if rows[0].stop - rows[0].start == rows[1].stop - rows[1].start:
                own, other = (one.features[part] for one, part in zip((train, evaluation), rows, strict=True))
                if np.array_equal(np.sort(fingerprints(own)), np.sort(fingerprints(other))):
                    found.append(query)
    return found


def in_one(eval_set: Any, X: Any, y: Any) -> Any:
    """`eval_set`, or `(eval_X, eval_y)` instead; DataError if both are passed, or only one of the two."""
    if X is None and y is None:
        return eval_set
    if eval_set is not None:
        raise DataError("eval_set and eval_X are alternatives, and both were passed; pass one of them.")
    if X is None or (y is None and not isinstance(X, Queries)):
        lacking, passed = ("eval_X", "eval_y") if X is None else ("eval_y", "eval_X")
        raise DataError(f"{lacking} is missing, but {passed} was passed; pass both.")
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
    if isinstance(document, Queries):
        raise DataError(f"{name} is a Queries; pass one document: a vector, a row of a data frame, or a 1 × d matrix.")
    if hasattr(document, "to_frame"):  # a pandas Series: its index names the features
        document = document.to_frame().T
    elif not isinstance(getattr(document, "shape", None), tuple) or len(document.shape) < 2:
        # A bare vector is in the order of fit; as queries it needs no names and gets no warning about them.
        alone = Queries.from_arrays(as_numbers(name, document).reshape(1, -1), group=[1])
        return np.asarray(read_features(ranker, alone, reset=False)[0], dtype=np.float64)
    if document.shape[0] != 1:
        raise DataError(f"{name} has {document.shape[0]} rows but explain compares two documents; pass one row each.")
    features = read_features(ranker, document, reset=False)
    row = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(row[0], dtype=np.float64)


def document_id(document: Any) -> str:
    """The id in a row of a frame, or in a Series, that has a column of document ids; else empty."""
    table = document.to_frame().T if hasattr(document, "to_frame") else document
    found = named_as(USUAL["document"], [str(name) for name in column_names(table) or ()])
    return str(np.asarray(table[found[0]])[0]) if found else ""


def read_pair(ranker: Any, x: Any, y: Any, among: Any) -> tuple[tuple[str, ...], list[Floats]]:
    """The names of the features, and two documents (d,) in the units of the ranker."""
    names = getattr(ranker, "feature_names_in_", [f"x{j}" for j in range(ranker.n_features_in_)])
    rows = [read_row(ranker, document, name) for document, name in ((x, "x"), (y, "y"))]
    rows = normalized_among(ranker, rows, among, lambda X: read_features(ranker, X, reset=False))
    return tuple(with_indicators(ranker, names)), rows


def _queries_of_fit(ranker: Fitted, queries: Queries, reset: bool) -> Queries:
    """The queries with the features of `fit`, by name where both have names; with `reset` they are noted. DataError for
    missing ones."""
    if reset:
        ranker.n_features_in_ = queries.n_features
        if ranker._allow_nan:
            ranker.categories_ = {}
        if queries.feature_names is not None:
            ranker.feature_names_in_ = np.array(queries.feature_names, dtype=object)
        elif hasattr(ranker, "feature_names_in_"):
            del ranker.feature_names_in_
    queries.check_features()
    found = _with_features_of_fit(ranker, queries)
    if not takes_missing(ranker, fitted=not reset):
        found.check_no_missing(cure_of(ranker))
    return found


def _with_features_of_fit(ranker: Fitted, queries: Queries) -> Queries:
    queries = queries_with_codes(getattr(ranker, "categories_", {}), queries)
    fitted, names = getattr(ranker, "feature_names_in_", None), queries.feature_names
    if fitted is None or names is None:
        if queries.n_features != ranker.n_features_in_:
            raise DataError(
                f"X has {queries.n_features} features, but {type(ranker).__name__} is expecting "
                f"{ranker.n_features_in_} features as input; pass the features of fit."
            )
        return queries
    if names == tuple(fitted):
        return queries
    column = {name: j for j, name in enumerate(names)}
    twice = [name for name in fitted if names.count(name) > 1]
    if twice:
        raise DataError(f"X has several features {twice[0]!r}, in another order than in fit; rename all but one.")
    missing = [name for name in fitted if name not in column]
    if missing:
        raise DataError(f"X lacks the features {', '.join(missing[:12])} of fit; it has {', '.join(names[:12])}.")
    return queries.replace(features=queries.features[:, [column[name] for name in fitted]], feature_names=tuple(fitted))


def _without_other_columns(ranker: Fitted, X: Any) -> Any:
    """A frame without the columns that `fit` did not have, if it has one that it had; anything else as it is."""
    names, fitted = column_names(X), {*getattr(ranker, "feature_names_in_", ())}
    chosen = [name for name in names or () if name in fitted]
    if names is None or len(chosen) == len(names) or not chosen:
        return X
    return X.select(chosen) if hasattr(X, "column_names") else X[chosen]


RANGE = (1e-100, 1e100)
"""The least and the largest weight of a query that counts: weighted squares of features stay in double precision."""


def query_weights(queries: Queries, weight: Any) -> Floats:
    """The weights (m,) of the queries in order of first appearance, not normalized: 1 each when `weight` is None.

    weight: a mapping from query id to weight (it may know more queries, so that it survives cross-validation), a
    pandas Series whose index has the query ids, or an array or another Series (m,) in order of first appearance.
    Raises DataError when a query has no weight, or a weight is negative, infinite or NaN, or all are 0.
    """
    if weight is None:
        return np.ones(len(queries))
    if not isinstance(weight, np.ndarray):
        weight = in_order_of("query_weight", weight, queries.query_ids)
    check_no_mask("query_weight", weight, DataError)
    try:
        passed = np.asarray(weight)
        if passed.dtype.kind == "c":
            raise TypeError("they are complex")
        values = np.array(passed, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"query_weight cannot be read as numbers: {error}; pass one weight a query.") from None
    if values.shape != (len(queries),):
        raise DataError(
            f"query_weight has shape {values.shape} but there are {len(queries)} queries; pass one weight a query in "
            "order of first appearance, or a mapping from query id to weight (which also survives cross-validation)."
        )
    return _check_weights(queries, values, "query_weight")


def weights_of_rows(queries: Queries, sample_weight: Any) -> Floats:
    """The weights (m,) of the queries from one weight a row (N,).

    A weight applies to a full ranking: rows of one query must have one weight. Raises DataError where they differ.
    """
    if sample_weight is None:
        return np.ones(len(queries))
    rows = as_numbers("sample_weight", sample_weight)
    if rows.shape != (queries.n_documents,):
        raise DataError(
            f"sample_weight has shape {rows.shape} but there are {queries.n_documents} rows; pass one weight a row."
        )
    values = rows[queries.rows[queries.offsets[:-1]]]
    query = queries.query_of(np.arange(rows.size))
    differs = rows != values[query]
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise DataError(
            f"sample_weight differs inside query {queries.query_ids[query[row]]!r} (row {row}) but a weight "
            "applies to the full ranking; give all rows of a query one weight."
        )
    return _check_weights(queries, values, "sample_weight")


def _check_weights(queries: Queries, values: Floats, name: str) -> Floats:
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        q = int(np.flatnonzero(wrong)[0])
        raise DataError(f"{name} of query {queries.query_ids[q]!r} is {values[q]}; weights must be finite and >= 0.")
    beyond = (values > 0) & ((values < RANGE[0]) | (values > RANGE[1]))
    if beyond.any():
        q = int(np.flatnonzero(beyond)[0])
        raise DataError(
            f"{name} of query {queries.query_ids[q]!r} is {values[q]:g}, and products with such weights leave "
            f"double precision; give 0 or numbers from {RANGE[0]:g} to {RANGE[1]:g}."
        )
    if not values.any():
        raise DataError(f"{name} is 0 for every query, so nothing counts; give at least one query a positive weight.")
    return values


def check_normalize(method: Any) -> None:
    """Raise OptionError unless this is None, "auto" or a method of `rankopt.data.normalization`."""
    if method is not None and not (isinstance(method, str) and method in (*METHODS, "auto")):
        known = ", ".join(map(repr, (*METHODS, "auto")))
        raise OptionError(f"normalize cannot be {method!r:.80}; it is None or one of {known}.")


def chosen_normalization(ranker: Any, queries: Queries) -> str | None:
    """What normalize="auto" is; weights w0 that are passed are of the features as given."""
    return chosen_method(queries) if isinstance(getattr(ranker, "w0", None), str | None) else None


def _note_normalization(ranker: Any, queries: Queries) -> None:
    """Note what `normalize` is of these training queries."""
    method = getattr(ranker, "normalize", None)
    check_normalize(method)
    ranker.normalize_ = chosen_normalization(ranker, queries) if method == "auto" else method
    verbose = getattr(ranker, "verbose", 0)
    if method == "auto" and ranker.normalize_ is not None and isinstance(verbose, int) and verbose:
        print(f"normalize='auto' is {ranker.normalize_!r}", file=sys.stderr)


def normalized(ranker: Any, queries: Queries, reset: bool = False) -> Queries:
    """The queries as the ranker wants them: by the `normalize` and the `missing` of its fit, whatever was set since.
    reset: whether this is `fit`."""
    method = getattr(ranker, "normalize_", None)
    return without_missing(ranker, queries if method is None else normalize(queries, method), reset)


def normalized_among(ranker: Any, rows: list[Floats], among: Any, read: Callable[[Any], Any]) -> list[Floats]:
    """Single documents (d,) in the units of the ranker; `among`: the documents (n, d) of their query, `read` from what
    the caller has. DataError where these are needed and missing."""
    method, means = getattr(ranker, "normalize_", None), None
    made, indicator = np.stack(rows), hasattr(ranker, "missing_features_")
    if method is not None or (indicator and np.isnan(made).any()):
        if among is None:
            option = "missing='indicator'" if method is None else f"normalize={method!r}"
            raise DataError(
                f"{type(ranker).__name__} cannot compare single documents because it was fitted with {option}, which "
                "depends on all documents of a query; pass among=, the rows of their query."
            )
        own = read(among)
        if method is not None:
            normalizer = QueryNormalizer(method).fit(own)
            made, own = normalizer.transform(made), normalizer.transform(own)
        own = own.toarray() if is_sparse(own) else own
        means = means_within(own, np.array([0, len(own)]), ranker.missing_means_) if indicator else None
    if indicator:
        marks = np.isnan(made[:, ranker.missing_features_])
        made = np.hstack([made if means is None else np.where(np.isnan(made), means, made), marks])
    return list(np.asarray(made, dtype=np.float64))
