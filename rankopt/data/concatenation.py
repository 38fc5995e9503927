"""Several parts of a data set as one."""

from collections.abc import Hashable, Sequence

import numpy as np

from rankopt.data.queries import Queries
from rankopt.data.validation import Features, is_sparse, sealed
from rankopt.errors import DataError


def concatenate(parts: Sequence[Queries]) -> Queries:
    """The queries of all parts, part after part: rows of the caller are those of the first part, of the second, ...

    Features are CSR if those of a part are, float64 unless all are float32. Raises DataError where a query is in two
    parts, where widths, names of features or attributes differ, and where only some parts have grades.
    """
    parts = list(parts)
    if not parts:
        raise DataError("concatenate cannot join no part at all; pass one Queries at least.")
    _check_alike(parts)
    shifts = np.cumsum([0, *(part.n_documents for part in parts)])
    graded = [part.relevance for part in parts if part.relevance is not None]
    documents: list[Hashable] = []
    for part in parts:
        documents += part.document_ids if part.document_ids is not None else [None] * part.n_documents
    ranks = [np.argsort(np.argsort(part.row_order)) for part in parts]  # dropped rows leave no gaps
    return Queries(
        features=_stacked([part.features for part in parts]),
        offsets=np.concatenate([[0], *(part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False))]),
        relevance=np.concatenate(graded) if graded else None,
        query_ids=tuple(name for part in parts for name in part.query_ids),
        document_ids=tuple(documents) if any(part.document_ids is not None for part in parts) else None,
        attributes={k: np.concatenate([part.attributes[k] for part in parts]) for k in parts[0].attributes},
        feature_names=next((part.feature_names for part in parts if part.feature_names is not None), None),
        row_order=np.concatenate([rank + shift for rank, shift in zip(ranks, shifts, strict=False)]),
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
            raise DataError(f"Part {p} names its features differently; bring them into one order and one naming.")
        if (part.relevance is None) != (first.relevance is None):
            raise DataError(f"Part {p} and part 0 differ in having grades; grade both or neither.")
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
