"""One line that says what a data set holds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankopt.data.values import Features, is_sparse

SHOWN = 6
"""Distinct grades that are counted one by one, and attributes that are named; more are given by range and number."""


def summary(
    features: Features, offsets: NDArray[np.int64], relevance: NDArray[np.float64] | None, attributes: Sequence[str]
) -> str:
    """For example `Queries(2 queries, 5 documents (2 to 3 a query), 4 features float64, grades 0: 3, 1: 2)`."""
    sizes = np.diff(offsets)
    parts = [
        _count(sizes.size, "query", "queries"),
        f"{_count(features.shape[0], 'document', 'documents')} ({_each(sizes)} a query)",
        f"{_count(features.shape[1], 'feature', 'features')} {_kind(features)}",
        _grades(relevance),
    ]
    if attributes:
        parts.append(f"attributes {_named(attributes)}")
    return f"Queries({', '.join(parts)})"


def seen(
    features: Features, offsets: NDArray[np.int64], relevance: NDArray[np.float64] | None, attributes: Sequence[str]
) -> dict[str, str]:
    """The same, fact by fact."""
    judged = graded(offsets, relevance, attributes)
    first = {name: judged.pop(name) for name in ("queries", "documents")}
    return first | {"features": f"{features.shape[1]} {_kind(features)}"} | judged


def graded(
    offsets: NDArray[np.int64], relevance: NDArray[np.float64] | None, attributes: Sequence[str]
) -> dict[str, str]:
    """The same of documents without features."""
    sizes = np.diff(offsets)
    facts = {"queries": f"{sizes.size}", "documents": f"{sizes.sum()} ({_each(sizes)} a query)"}
    facts["grades"] = _grades(relevance).removeprefix("grades ")
    return facts | ({"attributes": _named(attributes)} if attributes else {})


def _named(attributes: Sequence[str]) -> str:
    more = f" and {len(attributes) - SHOWN} more" if len(attributes) > SHOWN else ""
    return ", ".join(attributes[:SHOWN]) + more


def _each(sizes: NDArray[np.int64]) -> str:
    if not sizes.size:
        return "0"
    return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"


def _kind(features: Features) -> str:
    return f"{features.dtype}{' sparse' if is_sparse(features) else ''}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _grades(relevance: NDArray[np.float64] | None) -> str:
    if relevance is None:
        return "no grades"
    grades, counts = np.unique(relevance, return_counts=True)
    if not grades.size:
        return "no grades"
    if grades.size > SHOWN:
        return f"grades {grades[0]:g} to {grades[-1]:g}"
    return "grades " + ", ".join(f"{grade:g}: {count}" for grade, count in zip(grades, counts, strict=True))
