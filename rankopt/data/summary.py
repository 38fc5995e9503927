"""One line that says what a data set holds."""

from typing import TYPE_CHECKING

import numpy as np

from rankopt.data.values import is_sparse

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

SHOWN = 6
"""Distinct grades that are counted one by one; more are given by their range."""


def summary(queries: "Queries") -> str:
    """For example `Queries(2 queries, 5 documents (2 to 3 a query), 4 features float64, grades 0: 3, 1: 2)`."""
    sizes = np.diff(queries.offsets)
    kind = f"{queries.features.dtype}{' sparse' if is_sparse(queries.features) else ''}"
    each = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    parts = [
        _count(len(queries), "query", "queries"),
        f"{_count(queries.n_documents, 'document', 'documents')} ({each} a query)",
        f"{_count(queries.n_features, 'feature', 'features')} {kind}",
        _grades(queries),
    ]
    if queries.attributes:
        parts.append(f"attributes {', '.join(queries.attributes)}")
    return f"Queries({', '.join(parts)})"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _grades(queries: "Queries") -> str:
    if queries.relevance is None:
        return "no grades"
    grades, counts = np.unique(queries.relevance, return_counts=True)
    if grades.size > SHOWN:
        return f"grades {grades[0]:g} to {grades[-1]:g}"
    return "grades " + ", ".join(f"{grade:g}: {count}" for grade, count in zip(grades, counts, strict=True))
