"""Ratings as training sees them: users and items in an order of their content, so that names play no part.

Sums round by their order, and a nonconvex problem turns the last bit into another point. So users and items are put in
an order that the ratings alone decide: the colour of a user is made of the multiset of ratings and colours of the
items, that of an item of the users' in turn, some rounds long (colour refinement). Equal colours are left to those whom
the ratings hardly tell apart; where these could change places for nothing, either order is the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.fingerprints import mixed
from rankopt.data.ratings.table import Ratings

__all__ = ["Rated"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Hashes = NDArray[np.uint64]

ROUNDS = 4
"""Rounds of refinement: on sparse ratings the fourth tells no more apart than the third."""


@dataclass(frozen=True, eq=False)
class Rated:
    """The ratings of n users on m items, user by user and, by `item_order`, item by item.

    bounds (n + 1,), columns (ratings,) rising inside a user, values (ratings,); weights (ratings,), or empty: 1 each.
    item_bounds (m + 1,), item_order (ratings,) positions of the ratings of each item, item_users (ratings,) who gave
    them. users (n,), items (m,), given (ratings,): the places of all in the `Ratings` that they come from, which have
    all_users and all_ratings.
    """

    bounds: Ints
    columns: Shorts
    values: Floats
    weights: Floats
    item_bounds: Ints
    item_order: Shorts | Ints
    item_users: Shorts
    users: Ints
    items: Ints
    given: Shorts | Ints
    all_users: int
    all_ratings: int

    @classmethod
    def of(cls, ratings: Ratings, weights: Floats | None = None) -> Rated:
        """Of all ratings, with weights (ratings,) in their order."""
        weights = np.zeros(0) if weights is None else weights
        users, items = _canonical(ratings, weights)
        return cls._arranged(ratings.bounds, ratings.columns, ratings.values, weights, users, items)

    @classmethod
    def _arranged(
        cls, bounds: Ints, columns: Shorts, values: Floats, weights: Floats, users: Ints, items: Ints
    ) -> Rated:
        """The users and items of these places, in this order."""
        from scipy.sparse import csr_array

        sizes = np.diff(bounds)[users]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        kind = np.int32 if values.size < np.iinfo(np.int32).max else np.int64
        rows = np.arange(starts[-1], dtype=kind)
        rows += np.repeat((bounds[users] - starts[:-1]).astype(kind), sizes)
        rank = np.empty(items.size, dtype=np.int32)
        rank[items] = np.arange(items.size, dtype=np.int32)
        shape = (users.size, items.size)
        mixed_up = csr_array((rows, rank[columns[rows]], starts.astype(kind)), shape=shape)
        table = mixed_up.tocsc().tocsr()  # two counting sorts: items rise inside a user
        given = table.data
        by_item = csr_array((np.arange(given.size, dtype=kind), table.indices, table.indptr), shape=shape).tocsc()
        return cls(
            bounds=starts.astype(np.int64),
            columns=table.indices.astype(np.int32, copy=False),
            values=values[given],
            weights=weights[given] if weights.size else weights,
            item_bounds=by_item.indptr.astype(np.int64),
            item_order=by_item.data,
            item_users=by_item.indices.astype(np.int32, copy=False),
            users=users,
            items=items,
            given=given,
            all_users=bounds.size - 1,
            all_ratings=values.size,
        )

    def keep(self, mask: NDArray[np.bool_]) -> Rated:
        """The ratings where the mask holds, of the same users and items in the same order; `given` are places here."""
        before = np.concatenate([[0], np.cumsum(mask)])
        weights = self.weights[mask] if self.weights.size else self.weights
        users, items = np.arange(self.n_users), np.arange(self.n_items)
        kept = self._arranged(before[self.bounds], self.columns[mask], self.values[mask], weights, users, items)
        return replace(kept, given=np.flatnonzero(mask)[kept.given])

    @property
    def n_users(self) -> int:
        return self.bounds.size - 1

    @property
    def n_items(self) -> int:
        return self.item_bounds.size - 1

    def user_of(self) -> Shorts:
        """(ratings,) the user of each rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.bounds))

    def per_user(self, values: Floats) -> Floats:
        """(n,) the sum of one number a rating over the ratings of each user."""
        return np.asarray(np.bincount(self.user_of(), values, self.n_users), dtype=np.float64)

    def per_item(self, values: Floats) -> Floats:
        """(m,) the same of each item."""
        return np.asarray(np.bincount(self.columns, values, self.n_items), dtype=np.float64)

    def table(self, values: Floats) -> Any:
        """A scipy CSR array (n, m) of one number a rating."""
        from scipy.sparse import csr_array

        kind = self.columns.dtype if values.size < np.iinfo(np.int32).max else np.int64
        parts = (values, self.columns.astype(kind, copy=False), self.bounds.astype(kind))
        return csr_array(parts, shape=(self.n_users, self.n_items), copy=False)

    def only_users(self, chosen: NDArray[np.bool_]) -> Rated:
        """The ratings of these users (n,) alone, over the same items; `users` and `given` are places as before."""
        if chosen.all():
            return self
        rows = np.repeat(chosen, np.diff(self.bounds))
        kept = self.keep(rows)
        weights = kept.weights
        some = self._arranged(
            kept.bounds, kept.columns, kept.values, weights, np.flatnonzero(chosen), np.arange(self.n_items)
        )
        return replace(
            some, users=self.users[chosen], items=self.items, given=self.given[np.flatnonzero(rows)[some.given]],
            all_users=self.all_users, all_ratings=self.all_ratings,
        )  # fmt: skip


def _canonical(ratings: Ratings, weights: Floats) -> tuple[Ints, Ints]:
    """Users and items in the order of their colours."""
    said = mixed((ratings.values + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    if weights.size:
        said += mixed(weights.view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
    item_bounds, order = ratings.by_item()
    users_of = ratings.user_of()
    of_users, of_items = np.zeros(ratings.n_users, np.uint64), np.zeros(ratings.n_items, np.uint64)
    for _ in range(ROUNDS):
        of_users = _summed(mixed(said + of_items[ratings.columns]), ratings.bounds)
        of_items = _summed(mixed(said + of_users[users_of])[order], item_bounds)
    return np.argsort(of_users, kind="stable"), np.argsort(of_items, kind="stable")


def _summed(bits: Hashes, bounds: Ints) -> Hashes:
    """The sum of the bits of each row, spread: whatever order they come in."""
    total = np.zeros(bits.size + 1, np.uint64)
    np.cumsum(bits, out=total[1:])
    return mixed(total[bounds[1:]] - total[bounds[:-1]])
