"""What the values of queries must be: finite features, grades that are finite and not negative."""

from typing import TYPE_CHECKING

import numpy as np

from rankopt.data.values import Features, is_sparse
from rankopt.errors import DataError

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


def check_values(queries: "Queries") -> None:
    """Raise DataError naming the caller's row, query and document of the first value that cannot be."""
    place = first_not_finite(queries.features)
    if place is not None:
        row, j = place
        named = "" if queries.feature_names is None else f" ({queries.feature_names[j]!r})"
        raise DataError(
            f"{_place(queries, row)}: feature column {j}{named} is {queries.features[row, j]}. Rankings need finite "
            "features: impute it, or leave the document out."
        )
    if queries.relevance is None:
        return
    wrong = ~((queries.relevance >= 0) & (queries.relevance < np.inf))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        grade = queries.relevance[row]
        cure = "say what it means by unjudged=0 or unjudged='drop'" if grade < 0 else "leave the document out"
        raise DataError(f"{_place(queries, row)}: the grade is {grade:g}. Grades are finite and >= 0: {cure}.")


def _place(queries: "Queries", row: int) -> str:
    document = "" if queries.document_ids is None else f", document {queries.document_ids[row]!r}"
    return f"Row {queries.row_order[row]}, query {queries.query_ids[queries.query_of(row)]!r}{document}"


def first_not_finite(features: Features) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinite value, None where all are finite."""
    entries = features.data if is_sparse(features) else features
    with np.errstate(all="ignore"):
        total = entries.sum()  # finite only if every term is; it may overflow although they all are
    if np.isfinite(total):
        return None
    wrong = ~np.isfinite(entries)
    if not wrong.any():
        return None
    if not is_sparse(features):
        row, column = np.argwhere(wrong)[0]
        return int(row), int(column)
    entry = int(np.flatnonzero(wrong)[0])
    return int(np.searchsorted(features.indptr, entry, side="right")) - 1, int(features.indices[entry])
