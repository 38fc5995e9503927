"""Ratings put in order of user and item, in linear time: two stable counting sorts, those of a sparse transposition."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def by_code(codes: NDArray[np.int32], size: int) -> tuple[Ints, NDArray[Any]]:
    """Bounds (size + 1,) int64 and the positions (n,) of equal codes, code after code, each in the order given."""
    from scipy.sparse import csr_array

    n = codes.size
    kind = np.int32 if n < np.iinfo(np.int32).max else np.int64
    rows = csr_array((np.ones(n, dtype=np.int8), codes, np.arange(n + 1, dtype=kind)), shape=(n, size))
    columns = rows.tocsc()
    return columns.indptr.astype(np.int64), columns.indices


def in_order(users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> tuple[Ints, Any]:
    """Bounds (n_users + 1,) of the users, and the order (n,) of the ratings: by user, then by item, then as given."""
    order = None
    if ((users[1:] < users[:-1]) | ((users[1:] == users[:-1]) & (items[1:] < items[:-1]))).any():
        first = by_code(items, n_items)[1]
        bounds, second = by_code(users[first], n_users)
        order = first[second]
    else:
        bounds = np.zeros(n_users + 1, dtype=np.int64)
        np.cumsum(np.bincount(users, minlength=n_users), out=bounds[1:])
    return bounds, order


def not_rising(bounds: Ints, columns: NDArray[np.int32], ties_only: bool = False) -> NDArray[np.bool_]:
    """(n - 1,) where the item of a rating is not below that of the next one of its user (ties_only: is the same)."""
    wrong = columns[1:] == columns[:-1] if ties_only else columns[1:] <= columns[:-1]
    inner = bounds[1:-1]
    wrong[inner[(inner > 0) & (inner < columns.size)] - 1] = False
    return np.asarray(wrong)


def first_twice(bounds: Ints, columns: NDArray[np.int32], order: Any) -> tuple[int, int, int] | None:
    """Of the ratings of one user for one item: where they stand, and the rows of the two, of which the second comes
    first in the data; None where each pair is rated once. order: the rows of the ratings, None as they stand."""
    places = np.flatnonzero(not_rising(bounds, columns, ties_only=True))
    if not places.size:
        return None
    second = places + 1 if order is None else order[places + 1]
    place = int(places[second.argmin()])
    return place, *((place, place + 1) if order is None else (int(order[place]), int(order[place + 1])))
