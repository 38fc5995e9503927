"""Ratings as training sees them: users and items in an order of their content, so that names play no part.

Sums round by their order, and a nonconvex problem turns the last bit into another point. So users and items are put in
an order that the ratings alone decide, that of their `refine_colors`. Equal ones are left to those whom the ratings hardly
tell apart; where these could change places for nothing, either order is the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.colours import refine_colors
from rankopt.collaborative.levels import EncodedValues
from rankopt.collaborative.row_sums import column_sums, row_sums
from rankopt.data.ratings.table import Ratings

__all__ = ["EncodedRatings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class EncodedRatings:
    """The ratings of n users on m items, user by user and, where that is asked for, item by item.

    bounds (n + 1,), columns (ratings,) rising inside a user, values (ratings,) as `EncodedValues`; weights (ratings,), or
    empty: 1 each.
    item_bounds (m + 1,) of the ratings item by item (`by_item`). users (n,), items (m,), given (ratings,): the places
    of all in the `Ratings` that they come from, which have all_users, all_items and all_ratings.
    """

    bounds: Ints
    columns: Shorts
    values: EncodedValues
    weights: Floats
    item_bounds: Ints
    users: Ints
    items: Ints
    given: Shorts | Ints
    all_users: int
    all_items: int
    all_ratings: int

    @classmethod
    def of(cls, ratings: Ratings, weights: Floats | None = None) -> EncodedRatings:
        """Of all ratings, with weights (ratings,) in their order."""
        weights = np.zeros(0) if weights is None else weights
        found = refine_colors(ratings.bounds, ratings.columns, ratings.values, weights, ratings.n_items)
        users, items = (np.argsort(one, kind="stable") for one in found)
        values = EncodedValues.of(ratings.values)
        return cls._arranged(ratings.bounds, ratings.columns, values, weights, users, items, ratings.n_items)

    @classmethod
    def _arranged(
        cls,
        bounds: Ints,
        columns: Shorts,
        values: EncodedValues,
        weights: Floats,
        users: Ints,
        items: Ints,
        all_items: int,
    ) -> EncodedRatings:
        """The users and items of these places, in this order; items of others have no ratings."""
        from scipy.sparse import csr_array

        sizes = np.diff(bounds)[users]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        kind = np.int32 if values.size < np.iinfo(np.int32).max else np.int64
        rank = np.empty(all_items, dtype=np.int32)
        rank[items] = np.arange(items.size, dtype=np.int32)
        shape = (users.size, items.size)
        rows = np.arange(starts[-1], dtype=kind)
        rows += np.repeat((bounds[users] - starts[:-1]).astype(kind), sizes)
        seen = columns[rows]
        np.take(rank, seen, out=seen)
        by_item = csr_array((rows, seen, starts.astype(kind)), shape=shape, copy=False).tocsc()
        del rows, seen
        item_bounds = by_item.indptr.astype(np.int64)
        table = by_item.tocsr()  # two counting sorts: items rise inside a user
        del by_item
        given, columns = table.data, table.indices.astype(np.int32, copy=False)
        del table
        return cls(
            bounds=starts.astype(np.int64),
            columns=columns,
            values=values.kept(given),
            weights=weights[given] if weights.size else weights,
            item_bounds=item_bounds,
            users=users,
            items=items,
            given=given,
            all_users=bounds.size - 1,
            all_items=all_items,
            all_ratings=values.size,
        )

    def keep(self, mask: NDArray[np.bool_]) -> EncodedRatings:
        """The ratings where the mask holds, of the same users and items in the same order; `given` are places here."""
        before = np.concatenate([[0], np.cumsum(mask)])
        weights = self.weights[mask] if self.weights.size else self.weights
        users, items = np.arange(self.n_users), np.arange(self.n_items)
        cut = (before[self.bounds], self.columns[mask], self.values.kept(mask), weights)
        kept = self._arranged(*cut, users, items, self.n_items)
        return replace(kept, given=np.flatnonzero(mask)[kept.given])

    @property
    def n_users(self) -> int:
        return self.bounds.size - 1

    @property
    def n_items(self) -> int:
        return self.item_bounds.size - 1

    @cached_property
    def by_item(self) -> tuple[Shorts | Ints, Shorts]:
        """(ratings,) each: the places here of the ratings of each item, and who gave them."""
        kind = np.int32 if self.values.size < np.iinfo(np.int32).max else np.int64
        table = self.table(np.arange(self.values.size, dtype=kind)).tocsc()
        return table.data, table.indices.astype(np.int32, copy=False)

    def user_of(self) -> Shorts:
        """(ratings,) the user of each rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.bounds))

    def per_user(self, values: Floats) -> Floats:
        """(n,) the sum of one number a rating over the ratings of each user."""
        return row_sums(self.bounds, values)

    def per_item(self, values: Floats) -> Floats:
        """(m,) the same of each item."""
        return column_sums(self.columns, values, self.n_items)

    def table(self, values: NDArray[Any]) -> Any:
        """A scipy CSR array (n, m) of one number a rating."""
        from scipy.sparse import csr_array

        kind = self.columns.dtype if values.size < np.iinfo(np.int32).max else np.int64
        parts = (values, self.columns.astype(kind, copy=False), self.bounds.astype(kind))
        return csr_array(parts, shape=(self.n_users, self.n_items), copy=False)

    def only_users(self, chosen: NDArray[np.bool_]) -> EncodedRatings:
        """The ratings of these users (n,) alone, over the same items; `users` and `given` are places as before."""
        if chosen.all():
            return self
        rows = np.repeat(chosen, np.diff(self.bounds))
        kept = self.keep(rows)
        weights = kept.weights
        some = self._arranged(
            kept.bounds, kept.columns, kept.values, weights, np.flatnonzero(chosen), np.arange(self.n_items),
            self.n_items,
        )  # fmt: skip
        return replace(
            some, users=self.users[chosen], items=self.items, given=self.given[np.flatnonzero(rows)[some.given]],
            all_users=self.all_users, all_items=self.all_items, all_ratings=self.all_ratings,
        )  # fmt: skip

    def of_rated_items(self) -> EncodedRatings:
        """The same over the items that have ratings: others tell nothing, and would move the last bits of sums."""
        rated = np.diff(self.item_bounds) > 0
        if rated.all():
            return self
        users, items = np.arange(self.n_users), np.flatnonzero(rated)
        some = self._arranged(self.bounds, self.columns, self.values, self.weights, users, items, self.n_items)
        return replace(
            some, users=self.users, items=self.items[rated], given=self.given[some.given],
            all_users=self.all_users, all_items=self.all_items, all_ratings=self.all_ratings,
        )  # fmt: skip
