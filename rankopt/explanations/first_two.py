"""The first document of a query against the second: how sure their order is, and what would exchange them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.explanations.contributions import Explanation
from rankopt.explanations.counterfactual import CounterfactualChange, chance_in_order

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE = 0.1
"""Deviation of the noise of the scores, as a part of the deviation of the scores of the query."""


@dataclass(frozen=True, eq=False)
class FirstTwo:
    """The documents at the first two positions of a query.

    grades: None where there are none. reasons: first against second. swap: the smallest change of the second by which
    it reaches the first, each feature within the range that the data has, in deviations within queries. chance: that
    noise of `NOISE` times the deviation of the query's scores leaves their order.
    """

    query: Hashable
    documents: tuple[Hashable, Hashable]
    grades: tuple[float, float] | None
    reasons: Explanation
    swap: CounterfactualChange
    chance: float


def first_two(
    queries: Queries,
    names: Sequence[str],
    coef: Floats,
    deviation: Floats,
    shown: Mapping[Hashable, Ints],
    chosen: Sequence[Hashable],
) -> list[FirstTwo]:
    """The first two documents of the chosen queries that show two.

    shown: the caller's rows of each query's documents in the order in which they are shown. deviation: (d,).
    """
    features = queries.features
    low, high = _range(features)
    place = {query: number for number, query in enumerate(queries.query_ids)}
    stands = np.argsort(queries.row_order, kind="stable")
    rows_of = queries.row_order[stands]
    found = []
    for query in chosen:
        first, last = queries.offsets[place[query] : place[query] + 2].tolist()
        rows = stands[np.searchsorted(rows_of, shown[query][:2])]
        if rows.size < 2:
            continue
        x, y = (_row(features, int(row)) for row in rows)
        reasons = Explanation.of(tuple(names), coef, x, y)
        own = features[first:last]
        spread = float(np.std(np.asarray(own @ coef)))
        grades = None if queries.relevance is None else (queries.relevance[rows[0]], queries.relevance[rows[1]])
        ids = queries.document_ids
        documents = tuple(int(row) for row in shown[query][:2]) if ids is None else tuple(ids[row] for row in rows)
        found.append(
            FirstTwo(
                query=query,
                documents=(documents[0], documents[1]),
                grades=None if grades is None else (float(grades[0]), float(grades[1])),
                reasons=reasons,
                swap=reasons.swap(low=low, high=high, units=deviation),
                chance=float(chance_in_order(abs(reasons.total), NOISE * spread)),
            )
        )
    return found


def _range(features: Any) -> tuple[Floats, Floats]:
    """(d,) the least and the largest value of each feature."""
    least, largest = features.min(axis=0), features.max(axis=0)
    if hasattr(features, "tocsr"):
        least, largest = least.toarray().ravel(), largest.toarray().ravel()
    return np.asarray(least, dtype=np.float64), np.asarray(largest, dtype=np.float64)


def _row(features: Any, row: int) -> Floats:
    """(d,) the features of one document."""
    found = features[[row]]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64).ravel()
