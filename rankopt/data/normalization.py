"""Normalization of features within queries, also as a step of a scikit-learn Pipeline.

For each query and each feature, with x the values over the n documents of the query:

    sum      x / Σ|x|                           shares; zeros stay zeros
    zscore   (x - mean(x)) / std(x)             mean 0, standard deviation 1 (of the n values, not n - 1)
    minmax   (x - min(x)) / (max(x) - min(x))   from 0 to 1; LETOR's "query level" normalization
    rank     (#{i: x_i < x} - #{i: x_i > x}) / n   the share of documents below less that above: between -1 and 1,
                                                mean 0, deviation √((1 - 1/n²) / 3) without ties; equal values share
                                                one rank, the mean of theirs. No rising change of the feature alters it

A feature that is constant in a query becomes 0 there under every method; so does a query of one document. Sums run over
sorted values, so the result does not depend on the order of the documents. NaN is a missing value: x and n are those of
the documents that have one, and NaN stays NaN.
"""

# mypy: allow-subclassing-any
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from formulations.arrays import Floats, Ints, check_type, is_sparse
from rankopt.data.canonical_order import coarse_fingerprints, rows_of
from rankopt.data.queries import Queries
from rankopt.data.validation import Features, as_csr, codes_of_ids, grouped
from rankopt.errors import DataError, OptionError
from rankopt.fitting import atomic

METHODS = ("sum", "zscore", "minmax", "rank")


def normalize(queries: Queries, method: str = "zscore") -> Queries:
    """Normalize features within queries. Raises as `normalized_rows` does."""
    check_type("queries", queries, Queries, error=DataError)
    own = queries.grouped()
    features = normalized_rows(own.features, own.offsets, method)
    return queries.replace(features=features if queries.is_grouped else features[np.argsort(queries.rows)])


def normalized_rows(features: Features, offsets: Ints, method: str) -> Features:
    """Features (N, d), grouped by query as in `offsets` (m + 1,), normalized within each query; a new table. float32
    stays float32, computed in float64. CSR allows "sum" only. Raises as `shift_and_scale` does."""
    check_method(features, method)
    if is_sparse(features):
        _, totals, cells = _totals(features, offsets)
        shares = (features.data / totals[cells]).astype(features.dtype, copy=False)
        made = type(features)((shares, features.indices.copy(), features.indptr.copy()), shape=features.shape)
        made.eliminate_zeros()
        return made
    if method == "rank":
        return ranked_rows(features, offsets)
    shift, scale = shift_and_scale(features, offsets, method)
    queries = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return ((features - shift[queries]) / scale[queries]).astype(features.dtype, copy=False)


LONG, MANY = 6, 10  # documents of a query, and such queries, from which scales are compared
APART = 0.35  # MSLR's raw features have 0.48 to 0.52, other sets at most 0.25


def chosen_method(queries: Queries) -> str | None:
    """What normalize="auto" is: "zscore" where scales differ from query to query, else None.

    The scale of a feature in a query is its standard deviation there. Scales differ if their logarithms have over the
    queries, in the median over the features, a standard deviation above `APART`. Its square is the covariance of the
    logarithms in two halves of the documents, in which the noise of few documents cancels. Queries of fewer than `LONG`
    documents do not count; fewer than `MANY` queries, and sparse features, are left as they are.
    """
    own = queries.grouped()
    long = np.flatnonzero(np.diff(own.offsets) >= LONG)
    if is_sparse(own.features) or long.size < MANY:
        return None
    every = np.ones(own.n_documents, dtype=bool)
    keys = coarse_fingerprints(own, every)  # halves depend on no order of rows
    order = np.lexsort((keys, own.query_of(np.arange(own.n_documents))))
    size = np.diff(own.offsets)[long]
    counts = np.column_stack([size - size // 2, size // 2]).ravel()[:, None]
    table = own.features[order[rows_of(own.offsets, long)]].astype(np.float64, copy=False)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logs = np.log(_variances(table, counts)).reshape(long.size, 2, -1) / 2
        known = np.asarray(np.isfinite(logs).all(axis=1))
        used = known.sum(axis=0) >= MANY
        first, second = np.moveaxis(
            logs[:, :, used] - np.mean(logs[:, :, used], axis=0, where=known[:, None, used]), 1, 0
        )
        shared = np.mean(first * second, axis=0, where=known[:, used])
    return "zscore" if used.any() and np.median(shared) > APART**2 else None


def _variances(table: Floats, counts: Ints) -> Floats:
    """Variances (m, d) of consecutive groups of rows (N, d), whose sizes `counts` (m, 1) are; 0 where all are equal."""
    starts = np.append(0, np.cumsum(counts))
    members = csr_array((np.ones(len(table)), np.arange(len(table)), starts), shape=(len(counts), len(table)))
    apart = np.repeat(table[starts[:-1]], counts.ravel(), axis=0)
    np.subtract(table, apart, out=apart)  # exactly 0 where all are equal
    mean = members @ apart / counts
    return np.asarray(np.maximum(members @ np.square(apart, out=apart) / counts - mean**2, 0.0))


def check_method(features: Features, method: str) -> None:
    """Raise OptionError for an unknown method, DataError for CSR with a method that would fill it."""
    if not isinstance(method, str) or method not in METHODS:
        raise OptionError(f"method cannot be {method!r}; it is one of {', '.join(map(repr, METHODS))}.")
    if is_sparse(features) and method != "sum":
        raise DataError(
            f"Sparse features cannot be normalized by {method!r} because zeros would become other values and fill the "
            "table; use method='sum', or make the features dense first (sparse=False, or .toarray())."
        )


def ranked_rows(features: Features, offsets: Ints) -> Features:
    """The method "rank": (N, d) of the dtype of the features, one division of integers each. O(N d log n)."""
    made = np.empty(features.shape, dtype=features.dtype)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        table, n = features[start:stop], stop - start
        order = np.argsort(table, axis=0)  # NaN last
        ordered = np.take_along_axis(table, order, axis=0)
        position, missing = np.arange(n)[:, None], np.isnan(ordered)
        present = np.maximum(n - missing.sum(axis=0), 1)
        new = np.concatenate([np.ones_like(ordered[:1], dtype=bool), ordered[1:] != ordered[:-1]])
        below = np.maximum.accumulate(np.where(new, position, 0), axis=0)
        last = np.concatenate([new[1:], new[:1]])  # of the documents of one value: the next value is another
        above = present - 1 - np.minimum.accumulate(np.where(last, position, n)[::-1], axis=0)[::-1]
        share = np.where(missing, np.nan, (below - above) / present)
        np.put_along_axis(made[start:stop], order, share.astype(made.dtype), axis=0)
    return made


def shift_and_scale(features: Features, offsets: Ints, method: str) -> tuple[Floats, Floats]:
    """Shift and scale (m, d) of each query and feature: the normalized value is (x - shift) / scale.

    The scale of a constant feature is infinite, which makes it 0; the shift of one without values is NaN. features:
    (N, d), grouped as in `offsets` (m + 1,).
    Raises OptionError for an unknown method, DataError for numbers too large to be added up, and for CSR with a method
    that would fill it.
    """
    check_method(features, method)
    if is_sparse(features):
        keys, totals, _ = _totals(features, offsets)
        scale = np.full((offsets.size - 1, features.shape[1]), np.inf)
        scale.ravel()[keys] = totals
        return np.zeros_like(scale), scale
    starts, table = offsets[:-1], features.astype(np.float64)
    if method != "minmax":
        for start, stop in zip(starts.tolist(), offsets[1:].tolist(), strict=True):
            table[start:stop].sort(axis=0)
    low, high = np.fmin.reduceat(table, starts), np.fmax.reduceat(table, starts)
    missing = np.isnan(table)
    counts = np.diff(offsets)[:, None] - np.add.reduceat(missing, starts, dtype=np.int64)
    empty = counts == 0
    with np.errstate(over="ignore", invalid="ignore"):
        if method == "sum":
            shift, scale = np.zeros_like(low), np.add.reduceat(np.where(missing, 0.0, np.abs(table)), starts)
        elif method == "minmax":
            shift, scale = low, high - low
        else:
            shift = np.add.reduceat(np.where(missing, 0.0, table), starts) / np.maximum(counts, 1)
            scale = _deviation(table, shift, offsets, counts)
    finite = (np.isfinite(shift) & np.isfinite(scale)) | empty
    if not finite.all():
        q, j = np.argwhere(~finite)[0]
        raise DataError(f"Feature column {j} has numbers too large to be added up in query {q}; rescale it first.")
    return np.where(empty, np.nan, shift), np.where((low == high) | empty, np.inf, scale)


def _deviation(table: Floats, mean: Floats, offsets: Ints, counts: Ints) -> Floats:
    """Standard deviations (m, d), by way of the largest deviation so that no square over- or underflows."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    deviations = np.nan_to_num(np.abs(table - np.repeat(mean, sizes, axis=0)), copy=False, nan=0.0, posinf=np.inf)
    largest = np.maximum.reduceat(deviations, starts)
    deviations /= np.repeat(np.where(largest > 0, largest, 1.0), sizes, axis=0)
    return np.asarray(largest * np.sqrt(np.add.reduceat(deviations**2, starts) / np.maximum(counts, 1)))


def _totals(features: Features, offsets: Ints) -> tuple[Ints, Floats, Ints]:
    """For CSR: the cells query · d + feature in use, Σ|x| of each (infinite if constant), the cell of each entry."""
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    queries = np.searchsorted(offsets, rows, side="right") - 1
    keys, cells = np.unique(queries * features.shape[1] + features.indices, return_inverse=True)
    values = features.data.astype(np.float64)
    order = np.lexsort((values, cells))
    starts = np.searchsorted(cells[order], np.arange(keys.size))
    if not keys.size:
        return keys, np.zeros(0), cells
    low, high = np.fmin.reduceat(values[order], starts), np.fmax.reduceat(values[order], starts)
    full = np.bincount(cells) == np.diff(offsets)[keys // features.shape[1]]
    zero = (low == 0) & (high == 0)
    totals = np.bincount(cells[order], weights=np.nan_to_num(np.abs(values[order]), posinf=np.inf))
    return keys, np.where(((low == high) & full) | zero | np.isnan(low), np.inf, totals), cells


@atomic
class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Normalize each feature within each query; `rankopt.data.normalization` defines the methods.

    method: "sum", "zscore", "minmax" or "rank"; sparse X allows "sum" only.

    With `qid` (N hashables, rows in any order) nothing is learned: every query is normalized by its own documents, in
    `fit` and in `transform`. Without `qid` all rows are one query: new rows are further documents of it and are
    normalized by the statistics of `fit`. A fit on several queries therefore needs `qid` in `transform`.

    `qid` is requested from metadata routing; a Pipeline needs `sklearn.set_config(enable_metadata_routing=True)`.
    `Pipeline(..., transform_input=["eval_X"])` calls `transform` on the evaluation data with `eval_qid`, which then
    takes precedence over `qid`.

    Fitted: `n_queries_`, `n_features_in_`; for one query (else None) `shift_` and `scale_` (d,), or, for "rank",
    `sorted_` (n, d) with sorted columns.
    """

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__transform: ClassVar = {"qid": True, "eval_qid": True}

    n_queries_: int
    sorted_: Any
    shift_: Any
    scale_: Any

    def __init__(self, method: str = "zscore") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:
        """Check X (N, d) and qid (N,); learn the statistics of a single query. Raises DataError for invalid data."""
        table = self._read(X, reset=True)
        ids = () if qid is None else codes_of_ids(qid, table.shape[0])[1]
        self.n_queries_ = max(len(ids), 1)
        self.shift_ = self.scale_ = self.sorted_ = None
        if self.n_queries_ == 1 and self.method == "rank":
            self.sorted_ = np.sort(table, axis=0)
        elif self.n_queries_ == 1:
            shift, scale = shift_and_scale(table, np.array([0, table.shape[0]]), self.method)
            self.shift_, self.scale_ = shift[0], scale[0]
        return self

    def transform(self, X: Any, *, qid: Any = None, eval_qid: Any = None) -> Any:
        """X (N, d) normalized within queries, in the order of its rows; float32 stays float32."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        qid = qid if eval_qid is None else eval_qid
        if qid is not None:
            codes, _ = codes_of_ids(qid, table.shape[0])
            order, offsets, _ = grouped(codes)
            back = np.argsort(order, kind="stable")
            return normalized_rows(table[order], offsets, self.method)[back]
        if self.n_queries_ > 1:
            raise DataError(
                f"QueryNormalizer cannot transform because it was fitted on {self.n_queries_} queries and `qid` is "
                "missing; pass qid=. Inside a Pipeline or a search it is lost unless routing is on: "
                "`sklearn.set_config(enable_metadata_routing=True)`."
            )
        return self._by_fit(table)

    def fit_transform(self, X: Any, y: Any = None, *, qid: Any = None, eval_qid: Any = None) -> Any:
        """`fit`, then `transform` of the same rows, whose queries `qid` names; `eval_qid` is of other rows."""
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def _by_fit(self, table: Any) -> Any:
        if hasattr(table, "tocsr"):
            made = table.copy()
            made.data = (table.data / self.scale_[table.indices]).astype(table.dtype, copy=False)
            made.eliminate_zeros()
            return made
        if self.sorted_ is not None:
            made = np.empty_like(table)
            for j, column in enumerate(self.sorted_.T):  # (below - above) / n among the rows of `fit`
                known = column[~np.isnan(column)]
                below, n = np.searchsorted(known, table[:, j]), known.size
                made[:, j] = (below + np.searchsorted(known, table[:, j], side="right") - n) / max(n, 1)
            made[np.isnan(table)] = np.nan
            return made
        return np.asarray((table - self.shift_) / self.scale_, dtype=table.dtype)

    def _read(self, X: Any, *, reset: bool) -> NDArray[Any]:
        X, types = as_csr(X) if is_sparse(X) else X, [np.float64, np.float32]
        try:
            table: NDArray[Any] = validate_data(
                self, X, reset=reset, dtype=types, order="C", accept_sparse="csr", ensure_all_finite="allow-nan"
            )
        except OverflowError as error:  # a Python integer beyond the range of floats
            raise DataError(f"features cannot be read as numbers: {error}; rescale them.") from None
        check_method(table, self.method)
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method == "sum"
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
