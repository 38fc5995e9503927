"""Logs of clicks, as counts: how often a document was shown at a position, and how often clicked there.

Of the sessions of a query, n_jp showed document j at position p and c_jp of them have a click on it. These counts are
all that the estimators need: the lists may come from several rankers, and the order of the records has no effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Self

import numpy as np

from formulations.arrays import Floats, Ints, as_path, check_type, each, is_sparse
from formulations.display import CompactReprMixin
from rankopt.clicks.propensities import PositionBias, canonical_rows, of_scaled_features
from rankopt.data.canonical_order import rows_of
from rankopt.data.queries import Queries
from rankopt.data.tables import USUAL, column_of, find_column, table_at
from rankopt.data.typing import Ids, Rows, Values
from rankopt.data.validation import as_features, codes_of_ids, column, column_names, named_as
from rankopt.errors import DataError, OptionError
from rankopt.options import Interval, as_numbers, check

EstimatorName = Literal["ips", "clipped", "snips", "dr"]
ESTIMATORS = ("ips", "clipped", "snips", "dr")
CLIP = 0.1
SLACK = 1e-9  # of sums of probabilities
LAST = 1_000_000  # the last position that a log may have


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
        if rows.max() >= n or not 1 <= self.positions.min() <= self.positions.max() <= LAST:
            raise DataError(f"rows must be less than {n}, and positions 1 to {LAST}.")
        if np.unique(rows * (self.positions.max() + 1) + self.positions).size < rows.size:
            raise DataError("rows and positions have a pair twice; add up its counts.")
        if (self.clicked > self.shown).any():
            at = int(np.flatnonzero(self.clicked > self.shown)[0])
            raise DataError(f"record {at} has {self.clicked[at]} clicks in {self.shown[at]} sessions.")
        self._check_sessions()
        if self.placements is not None:
            P = np.ascontiguousarray(as_numbers("placements", self.placements))
            check_placements(P, self.queries)
            inside = self.positions <= P.shape[1]
            inside[inside] = P[rows[inside], self.positions[inside] - 1] > 0
            if (self.shown[~inside] > 0).any():
                at = int(np.flatnonzero(~inside & (self.shown > 0))[0])
                raise DataError(
                    f"row {rows[at]} has {self.shown[at]} impressions at position {self.positions[at]}, where its "
                    "placement is 0; pass the probabilities of the policy that showed it, or placements=None."
                )
            P.setflags(write=False)
            object.__setattr__(self, "placements", P)

    def _check_sessions(self) -> None:
        n, m, query = self.queries.n_documents, len(self.queries), self.queries.query_of(self.rows)
        if self.sessions.shape != (m,):
            raise DataError(f"sessions must have one number for each of {m} queries.")
        most = np.zeros(m, dtype=np.int64)
        np.maximum.at(most, query, np.bincount(self.rows, self.shown, n).astype(np.int64)[self.rows])
        if (most > self.sessions).any():
            q = int(np.flatnonzero(most > self.sessions)[0])
            raise DataError(
                f"query {self.queries.query_ids[q]!r} has {self.sessions[q]} sessions but shows a document {most[q]} "
                "times; a session shows a document once."
            )
        keys, of_record = np.unique(query * (LAST + 1) + self.positions, return_inverse=True)
        total = np.bincount(of_record, self.shown)
        beyond = np.flatnonzero(total > self.sessions[keys // (LAST + 1)])
        if beyond.size:
            q, position = divmod(int(keys[beyond[0]]), LAST + 1)
            raise DataError(
                f"query {self.queries.query_ids[q]!r} has {self.sessions[q]} sessions but {total[beyond[0]]:.0f} "
                f"impressions at position {position}; a session shows one document there."
            )

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
        attributes: Mapping[str, Any] | None = None,
    ) -> Self:
        """Count impressions, one a row, in any order.

        features (N, d): of the document of each row, the same in all rows of a document; or a `Queries` with document
        ids, which then has the documents that were not shown too. position: 1 is the top. click: 0 or 1. session: which
        rows are one list; without it the number of sessions of a query is the largest number of impressions at a
        position or of a document. attributes: name -> value of the document of each row, such as its group, for
        `log.queries`; a `Queries` has its own. Raises DataError for another position or click, where a session has a
        document or a position twice, and where a document has two values.
        """
        n = len(each("position", position, DataError))
        if not n:
            raise DataError("a log needs impressions, one a row; got none.")
        queries, ids = codes_of_ids(query, n, "query")
        documents, names_of = codes_of_ids(document, n, "document")
        at, clicks = (_numbers(name, values, n) for name, values in (("position", position), ("click", click)))
        if not ((at >= 1) & (at <= LAST) & (at == np.floor(at))).all():
            row = int(np.flatnonzero(~((at >= 1) & (at <= LAST) & (at == np.floor(at))))[0])
            raise DataError(f"position is {at[row]:g} in row {row}; positions are 1, 2, ..., {LAST}, and 1 is the top.")
        if not np.isin(clicks, (0, 1)).all():
            row = int(np.flatnonzero(~np.isin(clicks, (0, 1)))[0])
            raise DataError(f"click is {clicks[row]:g} in row {row}; it is 1 if the document was clicked, else 0.")
        check_type("attributes", attributes, Mapping, type(None), error=DataError)
        if isinstance(features, Queries):
            if attributes:
                raise DataError("attributes cannot be passed with Queries; use features.replace(attributes=...).")
            known, codes = features, _rows_in(features, [ids[q] for q in queries], [names_of[j] for j in documents])
            number = {name: q for q, name in enumerate(known.query_ids)}
            queries = np.array([number[name] for name in ids])[queries]
        else:
            known, codes = _documents(features, queries, documents, ids, names_of, attributes or {})
        places = at.astype(np.int64)
        if session is not None:
            lists, _ = codes_of_ids(session, n, "session")
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
        features: str | list[str] | None = None,
        attributes: str | list[str] | None = None,
    ) -> Self:
        """Count the impressions of a data frame (pandas, polars, pyarrow), one a row.

        query, document: columns, by default those with usual names, as in `rankopt.data.read_table`; session: by
        default "session" where there is one. attributes: columns of any type, one value a document, for attributes of
        `log.queries`. features: by default all other columns but grades (relevance, label, grade, rel).
        """
        names = column_names(frame)
        if names is None:
            raise DataError(
                f"a {type(frame).__name__} is no data frame; pass one, or ClickLog.from_arrays its columns."
            )
        names = [str(name) for name in names]
        session = "session" if session is None and "session" in names else session
        given, words = (
            (one,) if isinstance(one, str) else () if one is None else each(name, one, DataError)
            for name, one in (("features", features), ("attributes", attributes))
        )
        sessions = () if session is None else (session,)
        named = {"features": given, "attributes": words, "position": [position], "click": [click], "session": sessions}
        for role, own in named.items():
            for name in own:
                if not (isinstance(name, str) and name in names):
                    raise DataError(f"the log has no column {name!r:.80}; it has {', '.join(names)}; pass {role}=...")
        roles = {
            "query": find_column("qid", query, [one for one in names if one != session], "the log"),
            "document": find_column("document", document, names, "the log"),
            "position": position, "click": click, "session": session,
        }  # fmt: skip
        missing = next((role for role in ("query", "document") if roles[role] is None), None)
        if missing is not None:
            raise DataError(f"the log has no column of {missing} ids among {', '.join(names)}; pass {missing}='...'")
        taken = {*roles.values(), *words, *named_as(USUAL["relevance"], names)}
        chosen = [name for name in names if name not in taken] if features is None else given
        if not chosen:
            raise DataError("the log has no features; name their columns: features=[...]")
        found = {name: column_of(frame, name, "the log") for name in (*chosen, *words, *filter(None, roles.values()))}
        text = next((name for name in chosen if found[name].dtype.kind not in "biuf"), None)
        if text is not None:
            raise DataError(
                f"column {text!r} of the log has no numbers; name the features, features=[...], or if it describes "
                f"documents pass attributes=[{text!r}]"
            )
        parts: dict[str, Any] = {role: None if name is None else found[name] for role, name in roles.items()}
        table = np.column_stack([np.asarray(found[name], dtype=np.float64) for name in chosen])
        made = cls.from_arrays(table, **parts, attributes={name: found[name] for name in words})
        return replace(made, queries=made.queries.replace(feature_names=tuple(chosen)))

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Any) -> Self:
        """`from_frame` of a parquet, CSV or Feather file."""
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
        rows, new = self.queries.rows[rows_of(self.queries.offsets, chosen)], np.full(self.queries.n_documents, -1)
        new[rows] = np.arange(queries.n_documents)
        kept = new[self.rows] >= 0
        if not kept.any():
            raise DataError(f"the log shows no document of query {queries.query_ids[0]!r}; select others.")
        return ClickLog(
            queries, new[self.rows[kept]], self.positions[kept], self.shown[kept], self.clicked[kept],
            self.sessions[chosen], None if self.placements is None else self.placements[rows],
        )  # fmt: skip

    @cached_property
    def sessions_of_row(self) -> Ints:
        """(N,) the sessions of the query of each row."""
        return np.asarray(self.sessions[self.queries.query_of(np.arange(self.queries.n_documents))])

    def by_row(self, values: Any) -> Floats:
        """(N,) sums of values (r,) of the records of each row, divided by the sessions of its query."""
        order = np.argsort(self.positions, kind="stable")  # sums do not depend on the order of records
        sums = np.bincount(self.rows[order], np.asarray(values)[order], self.queries.n_documents)
        return np.asarray(sums / np.maximum(self.sessions_of_row, 1))

    def exposure(self, propensities: PositionBias, policy: bool = True) -> Floats:
        """(N,) ρ_j = Σ_p P_jp e_p, the probability that a session examines the document of each row: with `policy`
        under `placements`, if they are known, else under the shares of the log."""
        check_type("propensities", propensities, PositionBias, error=OptionError, cure="Pass a PositionBias.")
        if not policy or self.placements is None:
            return self.by_row(self.shown * propensities.at(self.positions))
        return np.asarray((self.placements * propensities.at(np.arange(1, self.placements.shape[1] + 1))).sum(axis=1))

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
            "dr"        c_j / ρ_j + m_j (1 - ρ̂_j / ρ_j), m the relevance by a model that has not seen the query

        Where ρ_j = 0 the log says nothing about the document: b̂ is 0, and m_j for "dr". Without `placements` ρ̂ = ρ, and
        "dr" is "ips" elsewhere; `dataclasses.replace(log, placements=P)` adds them. model: a scikit-learn regressor
        that takes sample_weight, by default a ridge of scaled features, with means and indicators in place of NaN; its
        predictions are cut to [0, 1]. folds: the largest number of parts of the queries, each predicted by a model of
        the others.

        Source: Joachims, Swaminathan and Schnabel 2017; Oosterhuis and de Rijke 2020 (policy-aware); Oosterhuis 2023
        (doubly robust); Agarwal et al. 2019 (trust).
        """
        weight = self.weights(propensities, estimator, clip)
        seen, b = self.exposure(propensities, policy=False), self._clicks(propensities) * weight
        if estimator == "dr":
            rho = self.exposure(propensities)
            left = 1 - np.divide(seen, rho, out=np.zeros_like(rho), where=rho > 0)  # 0 if the placements are unknown
            return self.queries.with_gains(b + self.predicted(propensities, model, folds) * left)
        if estimator == "snips":
            query, count = self.queries.query_of(np.arange(b.size)), len(self.queries)
            order = canonical_rows(self.queries, seen)
            total = np.bincount(query[order], (seen * weight)[order], count)
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
        order = canonical_rows(self.queries, weight, target)
        of_row = part[self.queries.query_of(order)]
        found = np.zeros(seen.size)
        for fold in range(folds):
            train, test = order[(of_row != fold) & (weight[order] > 0)], order[of_row == fold]
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


def check_placements(P: Floats, queries: Queries) -> None:
    """DataError unless P (N, K) are probabilities of positions: in a query each is of one document at most."""
    if P.ndim != 2 or len(P) != queries.n_documents or not P.size:
        raise DataError(f"placements must have {queries.n_documents} rows, one a document; got shape {P.shape}.")
    if not ((P >= 0) & (P <= 1 + SLACK)).all():
        row = int(np.flatnonzero(~((P >= 0) & (P <= 1 + SLACK)).all(axis=1))[0])
        raise DataError(f"placements must be probabilities, from 0 to 1; row {row} has {P[row].tolist()!s:.80}.")
    if (sums := P.sum(axis=1)).max() > 1 + SLACK:
        raise DataError(f"placements of a document must sum to 1 at most; row {sums.argmax()} has {sums.max():g}.")
    sums = np.add.reduceat(P[queries.rows], queries.offsets[:-1])
    if sums.max() > 1 + SLACK:
        q, p = np.argwhere(sums > 1 + SLACK)[0].tolist()
        raise DataError(
            f"placements at a position must sum to 1 at most in a query; query {queries.query_ids[q]!r} has "
            f"{sums[q, p]:g} at position {p + 1}."
        )


def _numbers(name: str, values: Any, n: int) -> Floats:
    """A column (n,) of numbers; DataError that names the first row without one."""
    try:
        return column(values, n, name, np.float64)
    except DataError:
        for row, value in enumerate(each(name, values, DataError)):
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(f"{name} is {value!r:.80} in row {row}, which is no number.") from None
        raise


def _documents(
    features: Any, queries: Ints, documents: Ints, ids: tuple[Hashable, ...], names_of: tuple[Hashable, ...],
    attributes: Mapping[str, Any],
) -> tuple[Queries, Ints]:  # fmt: skip
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
    labels = {str(name): column(values, codes.size, name) for name, values in attributes.items()}
    rows_that_differ = {"features": different}
    for name, own in labels.items():
        rows_that_differ[f"{name!r}"] = np.flatnonzero((own != own[same]) & ~((own != own) & (own[same] != own[same])))
    for what, rows in rows_that_differ.items():
        if rows.size:
            row = int(rows[0])
            raise DataError(
                f"row {row} has other {what} than row {same[row]}, which is the same document "
                f"{names_of[documents[row]]!r} of query {ids[queries[row]]!r}; a document has one value, in all rows."
            )
    return Queries.from_arrays(
        table[first], qid=[ids[one] for one in queries[first]], documents=[names_of[one] for one in documents[first]],
        feature_names=None if names is None else [str(name) for name in names],
        attributes={name: own[first] for name, own in labels.items()},
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
