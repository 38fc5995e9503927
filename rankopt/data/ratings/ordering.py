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
