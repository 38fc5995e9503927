"""Missing values and categories in the features of rankers.

`missing="indicator"` of the linear rankers replaces NaN, after `normalize`, by the mean of the feature over the
documents of the query that have it (where none has, over all training documents that have it), and adds a feature that
is 1 where the value is missing, else 0, for each feature that lacks values in training. Sums run over sorted values, so
the result does not depend on the order of rows.

Trees take NaN, and columns of pandas dtype `category`: a category is its position among those of `fit`, sorted as text,
and one that `fit` did not know is NaN. So neither the order nor the number of the categories of a frame matters, and
any frame or `Queries` with names of columns may hold the values, 1 also as 1.0 or "1". An array holds positions.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, is_sparse
from rankopt.data.normalization import shift_and_scale
from rankopt.data.queries import Queries
from rankopt.data.validation import INDICATOR, Features, as_array, column_names, hashables, is_missing
from rankopt.errors import ColumnWarning, DataError, ModelError
from rankopt.options import check


def takes_missing(ranker: Any, *, fitted: bool) -> bool:
    """Whether NaN is no error: for the next fit by its parameters, for a `fitted` one by those of its fit."""
    if fitted:
        return bool(ranker._allow_nan or hasattr(ranker, "missing_features_"))
    return bool(ranker._allow_nan or (isinstance(ranker.missing, str) and ranker.missing == "indicator"))


def cure_of(ranker: Any) -> str:
    """What to do about NaN in the features of a ranker that does not take it."""
    own = "Fit with missing='indicator', or fit" if "missing" in ranker._get_param_names() else "Fit"
    return (
        f"{own} a BoostedRanker, which takes NaN. Or impute it, as in X.fillna(X.median()) or by SimpleImputer in a "
        "Pipeline that keeps the column qid, or leave the column out."
    )


def with_indicators(ranker: Any, names: Iterable[Any]) -> list[str]:
    """The names of the features, and of their indicators."""
    known = [str(name) for name in names]
    return known + [INDICATOR + known[j] for j in getattr(ranker, "missing_features_", np.arange(0)).tolist()]


def without_missing(ranker: Any, queries: Queries, reset: bool) -> Queries:
    """The queries as `missing` of the fit wants them. With `reset` the ranker notes `missing_features_`, the features
    that lack values, and `missing_means_` (d,), the means of all features."""
    own = queries.grouped()
    if reset:
        check("missing", ranker.missing, ("error", "indicator"))
        for name in ("missing_features_", "missing_means_"):
            vars(ranker).pop(name, None)
        if ranker.missing == "indicator":
            ranker.missing_features_ = np.flatnonzero(_column_wise(own.features))
            ranker.missing_means_ = training_means(own.features)
    if not hasattr(ranker, "missing_features_"):
        return queries
    filled = filled_rows(own.features, own.offsets, ranker.missing_features_, ranker.missing_means_)
    names = None if own.feature_names is None else tuple(with_indicators(ranker, own.feature_names))
    if names and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"X has a column {twice!r}, which is the name of an indicator; rename the column.")
    back = slice(None) if queries.is_grouped else np.argsort(queries.rows)
    return queries.replace(features=filled[back], feature_names=names)


def _column_wise(features: Features) -> Bools:
    """(d,) whether a feature has a missing value."""
    if not is_sparse(features):
        return np.asarray(np.isnan(features).any(axis=0))
    return np.asarray(np.bincount(features.indices[np.isnan(features.data)], minlength=features.shape[1]) > 0)


def training_means(features: Features) -> Floats:
    """(d,) the mean of the present values of each feature; 0 where none is."""
    n, d = features.shape
    if not is_sparse(features):
        return np.asarray(means_within(features, np.array([0, n]), np.zeros(d))[0])
    order = np.lexsort((features.data, features.indices))
    columns, values = features.indices[order], features.data[order].astype(np.float64)
    missing = np.isnan(values)
    counts = n - np.bincount(columns[missing], minlength=d)
    return np.asarray(np.bincount(columns, np.where(missing, 0.0, values), minlength=d) / np.maximum(counts, 1))


def means_within(features: Features, offsets: Ints, otherwise: Floats) -> Floats:
    """(m, d) the mean of the present values of each feature in each query; `otherwise` (d,) where none is."""
    means, _ = shift_and_scale(features, offsets, "zscore")
    return np.where(np.isnan(means), otherwise, means)


def filled_rows(features: Features, offsets: Ints, marked: Ints, otherwise: Floats) -> Features:
    """(N, d + len(marked)) the features, grouped as in `offsets` (m + 1,), with means for NaN, and the indicators of
    the `marked` ones."""
    columns = np.flatnonzero(_column_wise(features))
    own = features[:, columns]
    own = own.toarray() if is_sparse(own) else own
    means = np.repeat(means_within(own, offsets, otherwise[columns]), np.diff(offsets), axis=0)
    filled = np.where(np.isnan(own), means, own).astype(features.dtype)
    if is_sparse(features):
        from scipy.sparse import csr_array, hstack

        entries = np.flatnonzero(np.isnan(features.data))
        rows = np.searchsorted(features.indptr, entries, side="right") - 1
        made = features.copy()
        made.data[entries] = filled[rows, np.searchsorted(columns, features.indices[entries])]
        marks = csr_array((np.ones(entries.size), (rows, features.indices[entries])), shape=features.shape)
        return csr_array(hstack([made, marks[:, marked].astype(features.dtype)], format="csr"))
    made = np.hstack([features, np.isnan(features[:, marked]).astype(features.dtype)])
    made[:, columns] = filled
    return made


def check_missing_learned(ranker: Any) -> None:
    """Raise ModelError where a linear ranker fitted with missing="indicator" lacks what `without_missing` needs."""
    marked, means = (vars(ranker).get(name) for name in ("missing_features_", "missing_means_"))
    if marked is None and means is None:
        return
    d = ranker.n_features_in_
    if not (isinstance(marked, np.ndarray) and marked.dtype == np.int64 and marked.ndim == 1
            and (np.diff(marked) > 0).all() and ((marked >= 0) & (marked < d)).all()):  # fmt: skip
        raise ModelError("missing_features_ is missing, or is no list of features.")
    if not (isinstance(means, np.ndarray) and means.dtype == np.float64 and means.shape == (d,)
            and np.isfinite(means).all()):  # fmt: skip
        raise ModelError(f"missing_means_ is missing, or is no array of {d} finite numbers.")


def with_codes(ranker: Any, X: Any, reset: bool) -> Any:
    """A frame with positions for the categories, where the ranker takes them; with `reset` it notes `categories_`,
    {column: its categories}, of pandas. Anything else is returned as it is."""
    kinds: Any = getattr(X, "dtypes", None)
    is_pandas = hasattr(kinds, "items")
    found = [name for name, kind in kinds.items() if str(kind) == "category"] if is_pandas else []
    if found and not ranker._allow_nan:
        raise DataError(f"X has a category in column {found[0]!r}. {one_hot_cure(ranker, found, X)}")
    if reset and ranker._allow_nan:
        ranker.categories_ = {str(name): tuple(sorted(X[name].cat.categories.tolist(), key=str)) for name in found}
        for name, values in ranker.categories_.items():
            other = next((value for value in values if not isinstance(value, str | int | float)), None)
            if other is not None:
                raise DataError(
                    f"column {name!r} has the category {other!r}, which a model cannot store; pass texts or numbers: "
                    f"X.astype({{{name!r}: str}}).astype({{{name!r}: 'category'}})."
                )
    known = getattr(ranker, "categories_", {})
    other = next((name for name in found if str(name) not in known), None)
    if other is not None:
        raise DataError(f"column {other!r} has the dtype category, but in fit it had numbers; pass numbers.")
    names = column_names(X)
    if names is None:
        check_positions(known)
        return X
    made, is_arrow = X.copy(deep=False) if is_pandas else X, hasattr(X, "column_names")
    for j, name in ((j, name) for j, name in enumerate(names) if str(name) in known):
        codes = codes_of(as_array(X.column(name) if is_arrow else X[name]), known[str(name)], str(name))
        if is_pandas:
            made[name] = codes
        else:  # a column of pyarrow, a Series of polars
            made = made.set_column(j, name, [codes]) if is_arrow else made.with_columns(type(X[name])(name, codes))
    return made


def queries_with_codes(known: Mapping[str, tuple[Any, ...]], queries: Queries) -> Queries:
    """Queries with positions for the `known` categories of columns; a column of text is an attribute of its name."""
    if queries.feature_names is None:
        check_positions(known)
    names, labels = [*(queries.feature_names or ())], queries.attributes
    added = [name for name in known if names and name not in names and name in labels]
    coded = [name for name in known if name in names or name in added]
    if not coded:
        return queries
    own, names = queries.features.toarray() if is_sparse(queries.features) else queries.features, [*names, *added]
    features = np.hstack([own, np.zeros((len(own), len(added)), own.dtype)])
    for name in coded:
        column = features[:, names.index(name)]
        column[:] = codes_of(labels[name] if name in added else column, known[name], name)
    return queries.replace(features=features, feature_names=tuple(names))


def codes_of(values: NDArray[Any], known: tuple[Any, ...], name: str) -> Floats:
    """(N,) the position of each value of a column among the `known` categories, NaN for a missing or another one.
    1, 1.0 and "1" are one value where this leaves no choice between two categories."""
    exact = {one: code for code, one in enumerate(known)}
    listed = hashables(f"column {name!r}", values.tolist())
    present, numbers = [one for one in {*listed} if not is_missing(one)], {}
    if not all(one in exact for one in present):
        counts = Counter(shown_by := [*map(_number_of, known)])
        numbers = {one: code for code, one in enumerate(shown_by) if counts[one] == 1}
    codes = {one: exact.get(one, numbers.get(_number_of(one), np.nan)) for one in {*listed}}
    if present and np.isnan([codes[one] for one in present]).all():
        shown = ", ".join(map(repr, known[:3]))
        if all(isinstance(one, int | float) for one in present) and all(isinstance(one, str) for one in numbers):
            raise DataError(f"column {name!r} has numbers, but in fit it had the categories {shown}, ...; pass these.")
        text = f"column {name!r} has no category of fit: it has {present[0]!r}, in fit it had {shown}, ...; pass these."
        warnings.warn(text, ColumnWarning, stacklevel=6)
    return np.array([codes[one] for one in listed], dtype=np.float64)


def _number_of(value: Any) -> Any:
    """The number that a text shows; anything else as it is."""
    try:
        return float(value) if isinstance(value, str) and np.isfinite(float(value)) else value
    except ValueError:
        return value


def check_positions(known: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise DataError where a number of an array could be a category of fit, or the position of another one."""
    for name, values in known.items():
        numbers = [_number_of(one) for one in values]
        if numbers != [*range(len(values))] and not all(isinstance(one, str) for one in numbers):
            raise DataError(
                f"column {name!r} had the categories {', '.join(map(repr, values[:3]))}, ... in fit, so a number in an "
                "array is one, or its position; pass a frame: pandas.DataFrame(X, columns=ranker.feature_names_in_)."
            )


def one_hot_cure(ranker: Any, columns: list[Any], X: Any) -> str:
    """What to do about columns of text or categories of X."""
    frame = "X" if hasattr(X, "iloc") else "X.to_pandas()" if hasattr(X, "to_pandas") else "pandas.DataFrame(X)"
    return (
        "Leave the column out of X, or one-hot encode it: make_pipeline(make_column_transformer((OneHotEncoder("
        f"handle_unknown='ignore', sparse_output=False), {columns}), remainder='passthrough', "
        f"verbose_feature_names_out=False).set_output(transform='pandas'), {type(ranker).__name__}()), or fit a "
        f"BoostedRanker on {frame}.astype(dict.fromkeys({columns}, 'category'))."
    )
