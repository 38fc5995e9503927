"""How much each query counts: from what a caller passes to one number a query."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.errors import DataError

Floats = NDArray[np.float64]

RANGE = (1e-100, 1e100)
"""The least and the largest weight of a query that counts: weighted squares of features stay in double precision."""


def query_weights(queries: Queries, weight: Any) -> Floats:
    """The weights (m,) of the queries in order of first appearance, not normalised: 1 each when `weight` is None.

    weight: a mapping from query id to weight (it may know more queries, so that it survives cross-validation), a
    pandas Series (its index are the query ids), or an array (m,) in order of first appearance.
    Raises DataError when a query has no weight, or a weight is negative, infinite or NaN, or all are 0.
    """
    if weight is None:
        return np.ones(len(queries))
    if hasattr(weight, "to_dict"):
        weight = weight.to_dict()
    if isinstance(weight, Mapping):
        missing = [query for query in queries.query_ids if query not in weight]
        if missing:
            raise DataError(f"query_weight has no weight for query {missing[0]!r}; give every query one.")
        weight = [weight[query] for query in queries.query_ids]
    try:
        given = np.asarray(weight)
        if given.dtype.kind == "c":
            raise TypeError("they are complex")
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"query_weight cannot be read as numbers: {error}; pass one weight a query.") from None
    if values.shape != (len(queries),):
        raise DataError(
            f"query_weight has shape {values.shape} but there are {len(queries)} queries; pass one weight a query in "
            "order of first appearance, or a mapping from query id to weight (which also survives cross-validation)."
        )
    return _checked(queries, values, "query_weight")


def weights_of_rows(queries: Queries, sample_weight: Any) -> Floats:
    """The weights (m,) of the queries from one weight a row (N,) in the caller's order.

    A ranking is weighed as a whole: rows of one query must have one weight. Raises DataError where they differ.
    """
    if sample_weight is None:
        return np.ones(len(queries))
    rows = np.array(sample_weight, dtype=np.float64)
    if rows.shape != (queries.n_documents,):
        raise DataError(
            f"sample_weight has shape {rows.shape} but there are {queries.n_documents} rows; pass one weight a row."
        )
    # The places of the grouped rows among the caller's rows; row_order may skip some, as in a selection of queries.
    grouped = rows[np.argsort(np.argsort(queries.row_order))]
    values = grouped[queries.offsets[:-1]]
    differs = grouped != np.repeat(values, np.diff(queries.offsets))
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        query = queries.query_ids[int(np.searchsorted(queries.offsets, row, side="right")) - 1]
        raise DataError(
            f"sample_weight differs inside query {query!r} (row {int(queries.row_order[row])}) but a ranking is "
            "weighed as a whole; give all rows of a query one weight."
        )
    return _checked(queries, values, "sample_weight")


def _checked(queries: Queries, values: Floats, name: str) -> Floats:
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        q = int(np.flatnonzero(wrong)[0])
        raise DataError(f"{name} of query {queries.query_ids[q]!r} is {values[q]}; weights must be finite and >= 0.")
    beyond = (values > 0) & ((values < RANGE[0]) | (values > RANGE[1]))
    if beyond.any():
        q = int(np.flatnonzero(beyond)[0])
        raise DataError(
            f"{name} of query {queries.query_ids[q]!r} is {values[q]:g}, and products with such weights leave "
            f"double precision; give 0 or numbers from {RANGE[0]:g} to {RANGE[1]:g}."
        )
    if not values.any():
        raise DataError(f"{name} is 0 for every query, so nothing counts; give at least one query a positive weight.")
    return values
