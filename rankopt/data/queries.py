"""Queries: documents grouped by query, with their features and grades.

Features are finite or NaN (a missing value), grades finite and nonnegative. Parts of a data set with the same features
are concatenated.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Memoized, check_no_mask, check_type, each, is_sparse
from formulations.display import CompactReprMixin
from rankopt.data.typing import Ids, Rows, Sizes, Unjudged, Values
from rankopt.data.validation import (
    Features,
    as_features,
    check_same_index,
    codes_of_ids,
    codes_of_sizes,
    column,
    column_names,
    each_row,
    frozen,
    frozen_features,
    grouped,
    hashables,
    judged,
    picked,
    sealed,
    taken,
    whole,
    without_query_column,
)
from rankopt.errors import DataError


def first_wrong_value(
    features: Features | None, relevance: Floats | None, names: Sequence[str] | None, has_gains: bool = False
) -> tuple[int, str] | None:
    """The row of the first value that cannot be, and what is wrong with it; None where all can. No features: they are
    known to have no infinite value. has_gains: relevance may be negative."""
    infinite = None if features is None else wrong_feature(features, names, np.isinf)
    if infinite is not None:
        row, text = infinite
        return row, f"{text}. Rankings need finite features: impute it, or leave the document out."
    if relevance is None:
        return None
    wrong = ~(np.isfinite(relevance) & ((relevance >= 0) | has_gains))
    if not wrong.any():
        return None
    row = int(np.flatnonzero(wrong)[0])
    if has_gains:
        return row, f"the gain is {relevance[row]:g}. Gains are finite."
    cure = (
        "read the data with unjudged=0 or unjudged='drop', as in Queries.from_arrays(X, y, qid=qid, unjudged=0)"
        if relevance[row] < 0
        else "leave the document out"
    )
    return row, f"the grade is {relevance[row]:g}. Grades are finite and >= 0: {cure}."


def wrong_feature(
    features: Features, names: Sequence[str] | None, is_wrong: Callable[[Any], Any]
) -> tuple[int, str] | None:
    """Row and description of the first feature that `is_wrong` (np.isinf or np.isnan), None where none is."""
    entry = first_not_finite(features, is_wrong)
    if entry is None:
        return None
    row, j = entry
    named = "" if names is None else f" ({names[j]!r})"
    return row, f"feature column {j}{named} is {features[row, j]}"


def first_not_finite(features: Features, is_wrong: Callable[[Any], Any]) -> tuple[int, int] | None:
    """Row and column of the first value that `is_wrong`: of a sort that is not finite."""
    entries = features.data if is_sparse(features) else features
    with np.errstate(all="ignore"):
        total = entries.sum()  # finite only if every term is; it may overflow although they all are
    if np.isfinite(total):
        return None
    wrong = is_wrong(entries)
    if not wrong.any():
        return None
    if not is_sparse(features):
        row, column = np.argwhere(wrong)[0]
        return int(row), int(column)
    entry = int(np.flatnonzero(wrong)[0])
    return int(np.searchsorted(features.indptr, entry, side="right")) - 1, int(features.indices[entry])


SHOWN = 6  # maximum number of distinct grades counted, and of attributes named


def summary(
    features: Features, offsets: Ints, relevance: Floats | None, attributes: Sequence[str], has_gains: bool = False
) -> str:
    """For example `Queries(2 queries, 5 documents (2 to 3 a query), 4 features float64, grades 0: 3, 1: 2)`."""
    sizes, (n, d) = np.diff(offsets), features.shape
    kind = f"{features.dtype}{' sparse' if is_sparse(features) else ''}"
    parts = [
        f"{sizes.size} {'query' if sizes.size == 1 else 'queries'}",
        f"{n} document{'' if n == 1 else 's'} ({range_text(sizes)} a query)",
        f"{d} feature{'' if d == 1 else 's'} {kind}",
        _grades(relevance, "gains" if has_gains else "grades"),
        *attributes_text(attributes),
    ]
    return f"Queries({', '.join(parts)})"


def attributes_text(names: Sequence[str]) -> list[str]:
    """The first names, in one text; empty without attributes."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"attributes {', '.join(names[:SHOWN])}{more}"] if names else []


def range_text(sizes: Ints) -> str:
    """Smallest and largest size: "2 to 3", or one number if they are equal."""
    if not sizes.size:
        return "0"
    return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"


def _grades(relevance: Floats | None, name: str) -> str:
    if relevance is None:
        return "no grades"
    grades, counts = np.unique(relevance, return_counts=True)
    if not grades.size:
        return "no grades"
    if grades.size > SHOWN:
        return f"{name} {grades[0]:g} to {grades[-1]:g}"
    return f"{name} " + ", ".join(f"{grade:g}: {count}" for grade, count in zip(grades, counts, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Queries(Memoized, CompactReprMixin):
    """Immutable m queries with N documents of d features, a row each, in the order in which they were passed.

    * `features` (N, d): float64 or float32, a C-contiguous array or scipy CSR; NaN is a missing value
    * `relevance` (N,) float64 grades >= 0, or None; with `has_gains` estimates of relevance, which may be negative
    * `document_ids`: N hashables, or None
    * `attributes`: name -> (N,) array, one value per document (site, author, genre, group)
    * `feature_names`: d strings, or None
    * `query_ids`: m distinct hashables, in order of first appearance; `qid` (N,) is the one of each row
    * `rows` (N,), `offsets` (m + 1,) int64: the documents of query q are rows[offsets[q]:offsets[q + 1]]
    * `input_order` (N,) int64: the row of each document in the data that they were read or selected from

    Scores, weights and whatever else is one value a row, passed or returned, are in the same order. `grouped()` has
    the rows of a query next to each other, so that `rows` is 0, 1, ..., N - 1.

    The constructor takes grouped rows unless `rows` is passed; `Queries.from_arrays` takes a query id per row. Raises
    DataError for inconsistent parts, infinite values and negative grades. lazy: features are validated later, by
    `check_features`.

    >>> queries = Queries.from_arrays([[0.5, 1], [2, 0], [3, 1]], [0, 2, 1], qid=["b", "a", "b"])
    >>> queries
    Queries(2 queries, 3 documents (1 to 2 a query), 2 features float64, grades 0: 1, 1: 1, 2: 1)
    >>> queries.relevance, queries.rows, queries.grouped().relevance
    (array([0., 2., 1.]), array([0, 2, 1]), array([0., 1., 2.]))
    """

    features: Features
    offsets: Ints
    relevance: Floats | None = None
    query_ids: tuple[Hashable, ...] = ()
    document_ids: tuple[Hashable, ...] | None = None
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    input_order: Ints = field(default_factory=lambda: np.arange(0))
    rows: Ints = field(default_factory=lambda: np.arange(0))
    has_gains: bool = False
    lazy: InitVar[bool] = False
    _unread: bool = field(default=False, init=False, repr=False)
    is_grouped: bool = field(default=True, init=False, repr=False)
    """Whether the rows of each query are next to each other, query after query."""

    @classmethod
    def from_arrays(
        cls,
        features: Rows,
        relevance: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        documents: Sequence[Hashable] | None = None,
        attributes: Mapping[str, Any] | None = None,
        feature_names: Sequence[str] | None = None,
        unjudged: Unjudged = None,
    ) -> "Queries":
        """N rows in any order, which is kept. All arguments are in the same row order.

        features: (N, d) array, scipy sparse matrix or data frame (whose columns name the features).
        qid: (N,) hashables in any order, or else group: the sizes of consecutive queries, which get the ids 0, 1, ...;
        or else a column of the data frame with a usual name (qid, query_id, ...).
        documents: N document ids. attributes: name -> N values.
        unjudged: the meaning of negative grades: a grade >= 0, or "drop" to drop the document.
        """
        check_same_index(features=features, relevance=relevance, qid=qid)
        features, name, own = without_query_column(features)
        if sum(one is not None for one in (qid, group, own)) != 1:
            known = "" if own is None else f"; the column {name!r} of the features is one too"
            raise DataError(
                f"Queries are defined by qid= (one id per row) or group= (sizes): pass exactly one of them{known}."
            )
        qid = own if qid is None else qid
        names = column_names(features)
        if feature_names is None and names is not None:
            feature_names = [str(column) for column in names]
        table = as_features(features)
        n = table.shape[0]
        codes, ids = codes_of_ids(qid, n) if qid is not None else codes_of_sizes(group, n)
        selected: NDArray[Any] = np.arange(n, dtype=np.int64)
        if relevance is not None:
            relevance, keep = judged(column(relevance, n, "relevance", np.float64), unjudged)
            selected = selected if keep is None else np.flatnonzero(keep)
        rows, offsets, present = grouped(codes[selected])
        documents = None if documents is None else each("documents", documents, DataError)
        if documents is not None and len(documents) != n:
            raise DataError(f"documents has {len(documents)} entries but there are {n} rows; pass one id per row.")
        check_type("attributes", attributes, Mapping, type(None), error=DataError)
        return cls(
            features=table if selected.size == n else taken(table, selected),
            offsets=offsets,
            relevance=None if relevance is None else relevance[selected],
            query_ids=tuple(ids[code] for code in present),
            document_ids=None if documents is None else picked(documents, selected),
            attributes={name: column(v, n, name)[selected] for name, v in (attributes or {}).items()},
            feature_names=None if feature_names is None else each("feature_names", feature_names, DataError),
            input_order=selected,
            rows=rows,
        )

    def __post_init__(self, lazy: bool) -> None:
        check_type("lazy", lazy, bool, error=DataError)
        check_type("attributes", self.attributes, Mapping, error=DataError)
        features = as_features(self.features)
        n, d = features.shape
        if n == 0 or d == 0:
            raise DataError(f"features have shape {features.shape} but rankings need documents and features.")
        offsets = whole("offsets", self.offsets)
        if offsets.ndim != 1 or offsets.size < 2 or offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 1).any():
            raise DataError(
                f"offsets {offsets} do not split {n} rows into queries; they must increase strictly from 0 to {n}."
            )
        m = offsets.size - 1
        ids = hashables("query_ids", self.query_ids) or tuple(range(m))
        if len(ids) != m or len(set(ids)) != m:
            raise DataError(
                f"query_ids has {len(set(ids))} distinct ids but there are {m} queries; pass one distinct id per query."
            )
        source, rows = (
            np.arange(n) if isinstance(part, np.ndarray) and not part.size else whole(name, part)
            for name, part in (("input_order", self.input_order), ("rows", self.rows))
        )
        if source.shape != (n,) or rows.shape != (n,):
            raise DataError(f"input_order and rows need a number for each of {n} rows; got {source.size}, {rows.size}.")
        is_grouped = bool((rows == np.arange(n)).all())
        if not is_grouped and (rows.min() < 0 or rows.max() >= n or (np.bincount(rows, minlength=n) != 1).any()):
            raise DataError(f"rows must name each of the {n} rows once; pass a permutation, or leave it out.")
        names = (
            None
            if self.feature_names is None
            else tuple(map(str, each("feature_names", self.feature_names, DataError)))
        )
        if names is not None and len(names) != d:
            raise DataError(f"feature_names has {len(names)} names but there are {d} features; pass one name each.")
        documents = None if self.document_ids is None else each("document_ids", self.document_ids, DataError)
        if documents is not None and len(documents) != n:
            raise DataError(f"document_ids has {len(documents)} ids but there are {n} documents; pass one each.")
        settled = {
            "features": frozen_features(features),
            "offsets": frozen(offsets),
            "query_ids": ids,
            "document_ids": documents,
            "feature_names": names,
            "input_order": frozen(source),
            "rows": frozen(rows),
            "attributes": MappingProxyType({k: frozen(column(v, n, k)) for k, v in self.attributes.items()}),
        }
        if self.relevance is not None:
            settled["relevance"] = frozen(column(self.relevance, n, "relevance", np.float64))
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_unread", lazy)
        object.__setattr__(self, "is_grouped", is_grouped)
        self._check_values(None if lazy else features)

    def __len__(self) -> int:
        """The number m of queries."""
        return self.offsets.size - 1

    @property
    def n_documents(self) -> int:
        """The number N of documents of all queries together."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """The number d of features."""
        return int(self.features.shape[1])

    def check_features(self) -> None:
        """Raise DataError for the first infinite feature, unless already checked. Only large stored folders are not
        checked at construction."""
        if self._unread:
            self._check_values(self.features)
            object.__setattr__(self, "_unread", False)

    def check_no_missing(self, cure: str) -> None:
        """Raise DataError, with this cure, for the first feature that is NaN."""
        missing = wrong_feature(self.features, self.feature_names, np.isnan)
        if missing is not None:
            row, text = missing
            raise self._error(row, f"{text}. {cure}")

    @property
    def qid(self) -> NDArray[Any]:
        """(N,) the query id of each row: an array of numbers or strings, of objects if the ids are mixed."""
        ids: NDArray[Any] = np.empty(len(self), dtype=object)
        ids[:] = self.query_ids
        if len({type(name) for name in self.query_ids} - {int, str}) == 0:
            plain = np.array(ids.tolist())
            ids = plain if plain.dtype.kind in "iU" and plain.tolist() == ids.tolist() else ids
        made: NDArray[Any] = ids[self.query_of(np.arange(self.n_documents))]
        return made

    def query_of(self, row: Any) -> Any:
        """The query (0 to m - 1) of a row, or of each of several."""
        query = np.empty(self.n_documents, dtype=np.int64)
        query[self.rows] = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return query[row]

    def grouped(self) -> "Queries":
        """The same queries with the rows of each next to each other; itself if they are."""
        return self if self.is_grouped else self._of(self.rows, self.offsets, np.arange(len(self)))

    def to_input_order(self, values: Any) -> NDArray[Any]:
        """Values (N, ...) of these rows in the order of the data that the rows were read or selected from."""
        array = each_row(values)
        if array.shape[:1] != (self.n_documents,):
            raise DataError(f"values have shape {array.shape} but there are {self.n_documents} documents.")
        return array[np.argsort(self.input_order, kind="stable")]

    def select(self, indices: Any) -> "Queries":
        """The queries at these indices, in this order, grouped. indices: distinct integers, a mask (m,) or a slice."""
        check_no_mask("the index", indices, DataError)
        try:
            chosen = np.atleast_1d(np.arange(len(self))[indices])
        except (IndexError, ValueError) as error:
            raise DataError(f"select cannot pick from {len(self)} queries: {error}.") from None
        if chosen.ndim != 1 or chosen.size == 0 or np.unique(chosen).size != chosen.size:
            raise DataError("select needs distinct queries, at least one; got none, or one twice. Pass distinct ones.")
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], sizes)
        return self._of(self.rows[places], offsets, chosen)

    def _of(self, rows: Ints, offsets: Ints, chosen: Ints) -> "Queries":
        """These rows, grouped, split by these offsets into the chosen queries."""
        return Queries(
            features=taken(self.features, rows),
            offsets=offsets,
            relevance=None if self.relevance is None else self.relevance[rows],
            query_ids=tuple(self.query_ids[q] for q in chosen),
            document_ids=None if self.document_ids is None else picked(self.document_ids, rows),
            attributes={name: values[rows] for name, values in self.attributes.items()},
            feature_names=self.feature_names,
            input_order=self.input_order[rows],
            has_gains=self.has_gains,
        )

    def replace(self, **changes: Any) -> "Queries":
        """Replace fields, for example relevance or attributes: one value a row, in the order of the rows."""
        unchanged = "features" not in changes  # checked features are not checked again
        made = replace(self, **changes, lazy=unchanged)
        object.__setattr__(made, "_unread", unchanged and self._unread)
        return made

    def with_gains(self, gains: Values) -> "Queries":
        """The same queries with gains (N,) of any sign in place of grades, such as estimates from clicks.

        Rankers train on them by a measure that is linear in the gains, DCG@k or P@k."""
        return self.replace(relevance=column(gains, self.n_documents, "gains", np.float64), has_gains=True)

    def to_frame(self) -> Any:
        """The pandas DataFrame that `read_table` reads back: columns qid, relevance and docid where known, the features
        by name (x1, x2, ... without names), the attributes. Sparse features become dense. A row per document.

        `read_table` takes numeric columns for features: name numeric attributes in its attributes=."""
        import pandas

        names = self.feature_names or tuple(f"x{column}" for column in range(1, self.n_features + 1))
        dense = self.features if isinstance(self.features, np.ndarray) else self.features.toarray()
        known = {"qid": self.qid, "relevance": self.relevance, "docid": self.document_ids}
        first = pandas.DataFrame({name: values for name, values in known.items() if values is not None})
        return first.join(pandas.DataFrame(dense, columns=list(names))).assign(**self.attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled, and arrays come back writable: build anew instead.
        values = [getattr(self, one.name) for one in fields(self) if one.init]
        return Queries, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    def __str__(self) -> str:
        """Counts, the range of sizes, the grades, the names of attributes."""
        return summary(self.features, self.offsets, self.relevance, tuple(self.attributes), self.has_gains)

    def _check_values(self, features: Features | None) -> None:
        wrong = first_wrong_value(features, self.relevance, self.feature_names, self.has_gains)
        if wrong is not None:
            raise self._error(*wrong)

    def _error(self, row: int, text: str) -> DataError:
        document = "" if self.document_ids is None else f", document {self.document_ids[row]!r}"
        query = self.query_ids[self.query_of(row)]
        return DataError(f"Row {self.input_order[row]}, query {query!r}{document}: {text}")


def concatenate(parts: Sequence[Queries]) -> Queries:
    """Concatenate queries; rows are those of part after part, in their order.

    Features are CSR if those of a part are, float64 unless all are float32. Raises DataError if a query is in two
    parts, if feature counts, names or attributes differ, or if only some parts have grades.
    """
    parts = list(each("parts", parts, DataError))
    for part in parts:
        check_type("a part", part, Queries, error=DataError)
    if not parts:
        raise DataError("concatenate needs at least one Queries; got an empty sequence.")
    _check_alike(parts)
    shifts = np.cumsum([0, *(part.n_documents for part in parts)])
    graded = [part.relevance for part in parts if part.relevance is not None]
    documents: list[Hashable] = []
    for part in parts:
        documents += part.document_ids if part.document_ids is not None else [None] * part.n_documents
    return Queries(
        features=_stacked([part.features for part in parts]),
        offsets=np.concatenate([[0], *(part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False))]),
        relevance=np.concatenate(graded) if graded else None,
        query_ids=tuple(name for part in parts for name in part.query_ids),
        document_ids=tuple(documents) if any(part.document_ids is not None for part in parts) else None,
        attributes={k: np.concatenate([part.attributes[k] for part in parts]) for k in parts[0].attributes},
        feature_names=next((part.feature_names for part in parts if part.feature_names is not None), None),
        rows=np.concatenate([part.rows + shift for part, shift in zip(parts, shifts, strict=False)]),
        has_gains=parts[0].has_gains,
    )


def _check_alike(parts: list[Queries]) -> None:
    first, names = parts[0], None
    home: dict[Hashable, int] = {}
    for p, part in enumerate(parts):
        if part.n_features != first.n_features:
            raise DataError(
                f"Part {p} has {part.n_features} features but part 0 {first.n_features}; read them with n_features=."
            )
        names = names if part.feature_names is None else names or part.feature_names
        if part.feature_names not in (None, names):
            raise DataError(f"Part {p} names its features differently; use the same names in the same order.")
        if (part.relevance is None, part.has_gains) != (first.relevance is None, first.has_gains):
            raise DataError(f"Part {p} and part 0 differ in having grades, or gains; give all parts the same.")
        if set(part.attributes) != set(first.attributes):
            raise DataError(
                f"Part {p} has the attributes {sorted(part.attributes)} but part 0 has {sorted(first.attributes)}; "
                "give all parts the same."
            )
        for name in part.query_ids:
            if home.setdefault(name, p) != p:
                raise DataError(
                    f"Query {name!r} is in part {home[name]} and in part {p}; rename one, or group its documents by "
                    "Queries.from_arrays."
                )


def _stacked(tables: list[Features]) -> Features:
    if not any(map(is_sparse, tables)):
        return sealed(np.concatenate(tables))
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(table) for table in tables], format="csr"))
