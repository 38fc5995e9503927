"""Normalisation within queries as a step of a scikit-learn Pipeline."""
# mypy: allow-subclassing-any
# (scikit-learn carries no types: its base classes are `Any` to a type checker)

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rankopt.data.grouping import codes_of_ids, grouped
from rankopt.data.normalisation import check_method, normalised_rows, shift_and_scale
from rankopt.data.validation import as_csr, is_sparse
from rankopt.errors import DataError
from rankopt.fitting import AtomicFitMixin


class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, AtomicFitMixin, BaseEstimator):
    """Normalise each feature within each query; `rankopt.data.normalisation` defines the methods.

    method: "sum", "zscore", "minmax" or "rank"; sparse X allows "sum" only.

    With `qid` (N hashables, rows in any order) nothing is learned: every query is normalised by its own documents, in
    `fit` data and new data alike. Without `qid` all rows are one query, that of `fit`: new rows are more documents of
    it and are normalised by what `fit` saw. A fit on several queries therefore needs `qid` in `transform` too.

    `qid` is requested from metadata routing by the class; `sklearn.set_config(enable_metadata_routing=True)` is all
    that a Pipeline needs. `Pipeline(..., transform_input=["eval_X"])` calls `transform` with the queries of the data
    that are chosen on: there `eval_qid` names the rows of X, and `qid`, that of the training rows, is not looked at.

    Fitted: `n_queries_`, `n_features_in_`; of the one query, None after several: `shift_` and `scale_` (d,), or, by
    "rank", `sorted_` (n, d), each column sorted by itself.
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
        """Check X (N, d) and qid (N,); note the number of queries. Raises DataError for data that cannot be used."""
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
        """X (N, d) normalised within queries, in the order of its rows; float32 stays float32."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        qid = qid if eval_qid is None else eval_qid
        if qid is not None:
            codes, _ = codes_of_ids(qid, table.shape[0])
            order, offsets, _ = grouped(codes)
            back = np.argsort(order, kind="stable")
            return normalised_rows(table[order], offsets, self.method)[back]
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
            return self._among(table)
        return np.asarray((table - self.shift_) / self.scale_, dtype=table.dtype)

    def _among(self, table: NDArray[Any]) -> NDArray[Any]:
        """Ranks of new rows among those of `fit`: (below - above) / n, column by column."""
        n, made = len(self.sorted_), np.empty_like(table)
        for j, known in enumerate(self.sorted_.T):
            below = np.searchsorted(known, table[:, j])
            made[:, j] = (below + np.searchsorted(known, table[:, j], side="right") - n) / n
        return made

    def _read(self, X: Any, *, reset: bool) -> NDArray[Any]:
        table: NDArray[Any] = validate_data(
            self,
            as_csr(X) if is_sparse(X) else X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
        )
        check_method(table, self.method)
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method == "sum"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
