"""Logs of clicks, as counts: how often a document was shown at a position, and how often clicked there.

Of the sessions of a query, n_jp showed document j at position p and c_jp of them have a click on it. These counts are
all that the estimators need: the lists may come from several rankers, and the order of the records has no effect.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Self

import numpy as np

from formulations.arrays import Floats, Ints, as_path, check_type, each, is_sparse
from formulations.display import CompactReprMixin
from rankopt.clicks.propensities import PositionBias, of_scaled_features
from rankopt.data.queries import Queries
from rankopt.data.tables import column_of, find_column, table_at
from rankopt.data.typing import Ids, Rows, Values
from rankopt.data.validation import as_features, codes_of_ids, column, column_names
from rankopt.errors import DataError, OptionError
from rankopt.options import Interval, as_numbers, check

EstimatorName = Literal["ips", "clipped", "snips", "dr"]
ESTIMATORS = ("ips", "clipped", "snips", "dr")
CLIP = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog(CompactReprMixin):
    """Impressions and clicks of the documents of m queries, as r counts.

    * `queries`: the documents that were shown or could have been, with their features; relevance only if simulated
    * `rows`, `positions` (r,): row of the document in `queries`, and position 1, 2, ...; each pair once
    * `shown`, `clicked` (r,): number of sessions with the document there, and number of clicks on it there
    * `sessions` (m,): number of sessions of each query
    * `placements` (N, K) or None: the probability with which the logging policy shows a row at position 1, ..., K. With
      None the shares n_jp / sessions of the log stand for it.

    `ClickLog.from_frame`, `from_arrays` and `read` count records of single impressions.
    """

    queries: Queries
    rows: Ints
    positions: Ints
    shown: Ints
    clicked: Ints
    sessions: Ints
    placements: Floats | None = None

    def __post_init__(self) -> None:
        check_type("queries", self.queries, Queries, error=DataError)
        for name in ("rows", "positions", "shown", "clicked", "sessions"):
            object.__setattr__(self, name, _counts(name, getattr(self, name)))
        rows, n = self.rows, self.queries.n_documents
        if not rows.shape == self.positions.shape == self.shown.shape == self.clicked.shape or not rows.size:
            raise DataError("a log needs rows, positions, shown and clicked of one length, which is not 0.")
        if rows.max() >= n or self.positions.min() < 1:
            raise DataError(f"rows must be less than {n}, and positions at least 1.")
        if np.unique(rows * (self.positions.max() + 1) + self.positions).size < rows.size:
            raise DataError("rows and positions have a pair twice; add up its counts.")
        if (self.clicked > self.shown).any():
            at = int(np.flatnonzero(self.clicked > self.shown)[0])
            raise DataError(f"record {at} has {self.clicked[at]} clicks in {self.shown[at]} sessions.")
        if self.sessions.shape != (len(self.queries),):
            raise DataError(f"sessions must have one number for each of {len(self.queries)} queries.")
        most = np.zeros(len(self.queries), dtype=np.int64)
        np.maximum.at(most, self.queries.query_of(np.arange(n)), np.bincount(rows, self.shown, n).astype(np.int64))
        if (most > self.sessions).any():
            q = int(np.flatnonzero(most > self.sessions)[0])
            raise DataError(
                f"query {self.queries.query_ids[q]!r} has {self.sessions[q]} sessions but shows a document {most[q]} "
                "times; a session shows a document once."
            )
        if self.placements is not None:
            P = as_numbers("placements", self.placements)
            if P.ndim != 2 or len(P) != n or not (P >= 0).all() or (P.sum(axis=1) > 1 + 1e-9).any():
                raise DataError(f"placements must be probabilities ({n}, positions), at most 1 in each row.")
            P.setflags(write=False)
            object.__setattr__(self, "placements", P)

    @classmethod
    def from_arrays(
        cls,
        features: Rows | Queries,
        *,
        query: Ids,
        document: Ids,
        position: Values,
        click: Values,
        session: Ids | None = None,
    ) -> Self:
        """Count impressions, one a row, in any order.

        features (N, d): of the document of each row, the same in all rows of a document; or a `Queries` with document
        ids, which then has the documents that were not shown too. position: 1 is the top. click: 0 or 1. session: which
        rows are one list; without it the number of sessions of a query is the largest number of impressions at a
        position or of a document. Raises DataError for another position or click, and where a session has a document
        or a position twice.
        """
        n = as_numbers("position", position).size
        if not n:
            raise DataError("a log needs impressions, one a row; got none.")
        queries, ids = codes_of_ids(query, n)
        documents, names_of = codes_of_ids(document, n)
        at, clicks = (
            column(values, n, name, np.float64) for name, values in (("position", position), ("click", click))
        )
        if not ((at >= 1) & (at == np.floor(at))).all() or at.max() > 2**31:
            row = int(np.flatnonzero(~((at >= 1) & (at == np.floor(at)) & (at <= 2**31)))[0])
            raise DataError(f"position is {at[row]:g} in row {row}; positions are 1, 2, ..., and 1 is the top.")
        if not np.isin(clicks, (0, 1)).all():
            row = int(np.flatnonzero(~np.isin(clicks, (0, 1)))[0])
            raise DataError(f"click is {clicks[row]:g} in row {row}; it is 1 if the document was clicked, else 0.")
        if isinstance(features, Queries):
            known, codes = features, _rows_in(features, [ids[q] for q in queries], [names_of[j] for j in documents])
            number = {name: q for q, name in enumerate(known.query_ids)}
            queries = np.array([number[name] for name in ids])[queries]
        else:
            known, codes = _documents(features, queries, documents, ids, names_of)
        places = at.astype(np.int64)
        if session is not None:
            lists, _ = codes_of_ids(session, n)
            lists = np.unique(queries * (lists.max() + 1) + lists, return_inverse=True)[1]
            for what, values in (("position", places), ("document", codes)):
                keys = lists * (values.max() + 1) + values
                found, counts = np.unique(keys, return_counts=True)
                if counts.max() > 1:
                    row = int(np.flatnonzero(keys == found[counts > 1][0])[1])
                    raise DataError(f"row {row} has a {what} that its session has already; give each list one session.")
            sessions = np.bincount(queries[np.unique(lists, return_index=True)[1]], minlength=len(known))
        else:
            keys, counts = np.unique(queries * (places.max() + 1) + places, return_counts=True)
            sessions = np.zeros(len(known), dtype=np.int64)
            np.maximum.at(sessions, keys // (places.max() + 1), counts)
            np.maximum.at(sessions, queries, np.bincount(codes)[codes])
        keys, record = np.unique(codes * (places.max() + 1) + places, return_inverse=True)
        return cls(
            known, *np.divmod(keys, places.max() + 1), np.bincount(record),
            np.bincount(record, clicks).astype(np.int64), sessions,
        )  # fmt: skip

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        query: str | None = None,
        document: str | None = None,
        position: str = "position",
        click: str = "click",
        session: str | None = None,
        features: list[str] | None = None,
    ) -> Self:
        """Count the impressions of a data frame (pandas, polars, pyarrow), one a row.

        query, document: columns, by default those with usual names, as in `rankopt.data.read_table`; session: by
        default "session" where there is one. features: by default all other columns.
        """
        names = column_names(frame)
        if names is None:
            raise DataError(
                f"a {type(frame).__name__} is no data frame; pass one, or ClickLog.from_arrays its columns."
            )
        names = [str(name) for name in names]
        session = "session" if session is None and "session" in names else session
        given = () if features is None else each("features", features, DataError)
        unknown = [
            name for name in (*given, session) if name is not None and not (isinstance(name, str) and name in names)
        ]
        if unknown:
            raise DataError(f"the log has no column {unknown[0]!r:.80}; it has {', '.join(names)}")
        roles = {
            "query": find_column("qid", query, [one for one in names if one != session], "the log"),
            "document": find_column("document", document, names, "the log"),
            "position": find_column("document", position, names, "the log"),
            "click": find_column("document", click, names, "the log"),
            "session": session,
        }
        missing = next((role for role in ("query", "document") if roles[role] is None), None)
        if missing is not None:
            raise DataError(
                f"the log has no column of {missing} ids among {', '.join(names)}; name it: {missing}='...'"
            )
        chosen = [name for name in names if name not in roles.values()] if features is None else given
        if not chosen:
            raise DataError("the log has no features; name their columns: features=[...]")
        found = {name: column_of(frame, name, "the log") for name in (*chosen, *filter(None, roles.values()))}
        text = next((name for name in chosen if found[name].dtype.kind not in "biuf"), None)
        if text is not None:
            raise DataError(f"column {text!r} of the log has no numbers; name the features: features=[...]")
        parts: dict[str, Any] = {role: None if name is None else found[name] for role, name in roles.items()}
        table = np.column_stack([np.asarray(found[name], dtype=np.float64) for name in chosen])
        made = cls.from_arrays(table, **parts)
        return replace(made, queries=made.queries.replace(feature_names=tuple(chosen)))

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Any) -> Self:
        """`from_frame` of a parquet, CSV or Feather file (extra `tables`)."""
        return cls.from_frame(table_at(as_path(path, DataError, "path")), **columns)

    def __len__(self) -> int:
        """The number of sessions."""
        return int(self.sessions.sum())

    def __str__(self) -> str:
        return (
            f"ClickLog({len(self)} sessions of {len(self.queries)} queries, {self.shown.sum()} impressions, "
            f"{self.clicked.sum()} clicks, positions 1 to {self.positions.max()})"
        )

    def select(self, indices: Any) -> ClickLog:
        """The log of the queries at these indices: distinct integers, a mask (m,) or a slice."""
        queries = self.queries.select(indices)
        number = {name: q for q, name in enumerate(self.queries.query_ids)}
        chosen = np.array([number[name] for name in queries.query_ids])
        new = np.full(self.queries.n_documents, -1)
        new[self._rows_of(chosen)] = np.arange(queries.n_documents)
        kept = new[self.rows] >= 0
        return ClickLog(
            queries, new[self.rows[kept]], self.positions[kept], self.shown[kept], self.clicked[kept],
            self.sessions[chosen], None if self.placements is None else self.placements[self._rows_of(chosen)],
        )  # fmt: skip

    def _rows_of(self, chosen: Ints) -> Ints:
        own = self.queries
        return np.concatenate([own.rows[own.offsets[q] : own.offsets[q + 1]] for q in chosen.tolist()])

    @cached_property
    def sessions_of_row(self) -> Ints:
        """(N,) the sessions of the query of each row."""
        return np.asarray(self.sessions[self.queries.query_of(np.arange(self.queries.n_documents))])

    def by_row(self, values: Any) -> Floats:
        """(N,) sums of values (r,) of the records of each row, divided by the sessions of its query."""
        return np.bincount(self.rows, values, self.queries.n_documents) / np.maximum(self.sessions_of_row, 1)

    def exposure(self, propensities: PositionBias, policy: bool = True) -> Floats:
        """(N,) ρ_j = Σ_p P_jp e_p, the probability that a session examines the document of each row: with `policy`
        under `placements`, if they are known, else under the shares of the log."""
        check_type("propensities", propensities, PositionBias, error=OptionError, cure="Pass a PositionBias.")
        if not policy or self.placements is None:
            return self.by_row(self.shown * propensities.at(self.positions))
        return np.asarray(self.placements @ propensities.at(np.arange(1, self.placements.shape[1] + 1)))

    def gains(
        self,
        propensities: PositionBias,
        estimator: EstimatorName = "ips",
        *,
        clip: float = CLIP,
        model: Any = None,
        folds: int = 5,
    ) -> Queries:
        """The queries with an estimate b̂ of the relevance of each document, in place of grades.

        With c_j the clicks on document j per session, less those that trust explains, ρ_j its `exposure` in the policy
        and ρ̂_j in the log:

            "ips"       b̂_j = c_j / ρ_j, unbiased where ρ_j > 0
            "clipped"   c_j / max(ρ_j, τ), with τ the quantile `clip` of the ρ > 0
            "snips"     "clipped", divided by the mean of ρ̂_j / max(ρ_j, τ) over the documents of the query with ρ_j > 0
            "dr"        m_j + (c_j - ρ̂_j m_j) / ρ_j, m the relevance that a model predicts which has not seen the query

        Where ρ_j = 0 the log says nothing about the document: b̂ is 0, and m_j for "dr". model: a scikit-learn regressor
        that takes sample_weight, by default a ridge of scaled features, with means and indicators in place of NaN; its
        predictions are cut to [0, 1]. folds: the largest number of parts of the queries, each predicted by a model of
        the others.

        Source: Joachims, Swaminathan and Schnabel 2017; Oosterhuis and de Rijke 2020 (policy-aware); Oosterhuis 2023
        (doubly robust); Agarwal et al. 2019 (trust).
        """
        weight = self.weights(propensities, estimator, clip)
        seen, clicks = self.exposure(propensities, policy=False), self._clicks(propensities)
        if estimator == "dr":
            m = self.predicted(propensities, model, folds)
            return self.queries.with_gains(m + (clicks - seen * m) * weight)
        b = clicks * weight
        if estimator == "snips":
            query, count = self.queries.query_of(np.arange(b.size)), len(self.queries)
            total = np.bincount(query, seen * weight, count)
            b = b / np.divide(total, np.bincount(query, weight > 0), out=np.ones(count), where=total > 0)[query]
        return self.queries.with_gains(b)

    def weights(self, propensities: PositionBias, estimator: EstimatorName = "ips", clip: float = CLIP) -> Floats:
        """(N,) factors of clicks in `gains`: 1 / ρ_j, of "clipped" and "snips" 1 / max(ρ_j, τ); 0 where ρ_j is 0."""
        check("estimator", estimator, ESTIMATORS)
        check("clip", clip, (Interval(0, 1),))
        rho = self.exposure(propensities)
        known = rho > 0
        if not known.any():
            raise DataError("no document of the log has a position with a propensity above 0.")
        least = float(np.quantile(rho[known], clip)) if estimator in ("clipped", "snips") else 0.0
        return np.divide(1.0, np.maximum(rho, least), out=np.zeros_like(rho), where=known)

    def _clicks(self, propensities: PositionBias) -> Floats:
        """(N,) clicks per session, less those that trust explains."""
        return self.by_row(self.clicked - self.shown * propensities.trust[self.positions - 1])

    def predicted(self, propensities: PositionBias, model: Any = None, folds: int = 5) -> Floats:
        """(N,) the relevance in [0, 1] of each document by models of the queries of other parts, from its features."""
        from sklearn.base import clone
        from sklearn.linear_model import Ridge

        m, seen = len(self.queries), self.exposure(propensities, policy=False)
        check("folds", folds, (Interval(2, integer=True),))
        if m < 2:
            raise DataError('"dr" predicts a query by a model of others, and this log has one query; use "ips".')
        target = np.divide(self._clicks(propensities), seen, out=np.zeros_like(seen), where=seen > 0)
        weight = seen * self.sessions_of_row
        part = np.empty(m, dtype=np.int64)
        part[sorted(range(m), key=lambda q: str(self.queries.query_ids[q]))] = np.arange(m) % min(folds, m)
        of_row = part[self.queries.query_of(np.arange(seen.size))]
        found = np.zeros(seen.size)
        for fold in range(folds):
            train, test = np.flatnonzero((of_row != fold) & (weight > 0)), np.flatnonzero(of_row == fold)
            if not (train.size and test.size):
                continue
            features = self.queries.features
            if model is None:
                learned: Any = of_scaled_features(Ridge(), features)
                learned.fit(features[train], target[train], ridge__sample_weight=weight[train])
            else:
                learned = clone(model).fit(features[train], target[train], sample_weight=weight[train])
            found[test] = learned.predict(features[test])
        return np.clip(found, 0.0, 1.0)


def _counts(name: str, values: Any) -> Ints:
    given = as_numbers(name, values)
    if given.ndim != 1 or not ((given >= 0) & (given < 2**62) & (given == np.floor(given))).all():
        raise DataError(f"{name} must be whole numbers >= 0, one each.")
    made: Ints = given.astype(np.int64)
    made.setflags(write=False)
    return made


def _documents(
    features: Any, queries: Ints, documents: Ints, ids: tuple[Hashable, ...], names_of: tuple[Hashable, ...]
) -> tuple[Queries, Ints]:
    """The documents of rows, of which several may be one document, and which one each row is."""
    names = column_names(features)
    table = as_features(features)
    if table.shape[0] != queries.size:
        raise DataError(f"features has {table.shape[0]} rows but there are {queries.size} impressions.")
    _, first, codes = np.unique(queries * (documents.max() + 1) + documents, return_index=True, return_inverse=True)
    codes, first = np.argsort(np.argsort(first))[codes], np.sort(first)  # by first appearance
    same = first[codes]
    if is_sparse(table):
        values, missing = table.copy(), table.copy()  # NaN differs from itself
        values.data, missing.data = np.nan_to_num(table.data), np.isnan(table.data)
        different = np.unique(np.concatenate([(one != one[same]).nonzero()[0] for one in (values, missing)]))
    else:
        different = np.flatnonzero(~((table == table[same]) | (np.isnan(table) & np.isnan(table[same]))).all(axis=1))
    if different.size:
        row = int(different[0])
        raise DataError(
            f"row {row} has other features than row {same[row]}, which is the same document "
            f"{names_of[documents[row]]!r} of query {ids[queries[row]]!r}; pass one row of features a document."
        )
    return Queries.from_arrays(
        table[first], qid=[ids[one] for one in queries[first]], documents=[names_of[one] for one in documents[first]],
        feature_names=None if names is None else [str(name) for name in names],
    ), codes  # fmt: skip


def _rows_in(queries: Queries, query: list[Hashable], document: list[Hashable]) -> Ints:
    """The rows of documents that are named by query and document id."""
    if queries.document_ids is None:
        raise DataError("the Queries of a log need document ids; pass documents= to Queries.from_arrays.")
    row = {pair: row for row, pair in enumerate(zip(queries.qid.tolist(), queries.document_ids, strict=True))}
    try:
        return np.array([row[pair] for pair in zip(query, document, strict=True)], dtype=np.int64)
    except KeyError as error:
        raise DataError(f"the Queries have no document {error.args[0][1]!r} of query {error.args[0][0]!r}.") from None
