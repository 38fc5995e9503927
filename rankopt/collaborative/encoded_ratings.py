"""Encoded ratings: users and items in a canonical order, independent of their ids.

Sums round by their order, and a nonconvex problem turns the last bit into another point. So users and items are sorted
by permutation-invariant hashes of colour refinement (1-WL): the hash of a user combines the multiset of ratings and
hashes of the items, that of an item those of the users, for some rounds. Sums of 64 bits commute, so a pass over the
ratings in any order gives the same hashes. Users or items with equal hashes are exchangeable.

Shards for engines contain complete users, or complete items. The cuts depend on the ratings, not on the number of
workers, so results are bit-identical for every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.collaborative.linear_algebra import column_sums, row_sums
from rankopt.data.canonical_order import HASHES, SALT, mixed
from rankopt.ratings.table import Ratings
from rankopt.risk.risk import cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

Hashes = NDArray[np.uint64]

ROUNDS = 4
"""Rounds of refinement: on sparse ratings the fourth tells no more apart than the third."""


def refine_colors(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, items: int) -> tuple[Hashes, Hashes]:
    """(users,) and (items,) 64 bits each; weights: (ratings,) or empty."""
    of_users, of_items = np.zeros(bounds.size - 1, np.uint64), np.zeros(items, np.uint64)
    for _ in range(ROUNDS):
        found = np.zeros(of_users.size, np.uint64)
        _gathered(bounds, columns, values, weights, of_items, found)
        of_users, found = mixed(found), np.zeros(items, np.uint64)
        _spread(bounds, columns, values, weights, of_users, found)
        of_items = mixed(found)
    return of_users, of_items


@compiled(nb.uint64(nb.uint64))
def _mixed(bits: np.uint64) -> np.uint64:
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@compiled(nb.uint64(nb.float64, nb.float64, nb.uint64))
def _said(value: float, weight: float, other: np.uint64) -> np.uint64:
    """A rating with the colour of its other end."""
    bits = _mixed(np.float64(value + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    bits += _mixed(np.float64(weight).view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
    return _mixed(bits + other)


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_FLOATS, SALT, HASHES))
def _gathered(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, of_items: Hashes, found: Hashes) -> None:
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            found[u] += _said(values[e], weights[e] if weights.size else 1.0, of_items[columns[e]])


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_FLOATS, SALT, HASHES))
def _spread(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, of_users: Hashes, found: Hashes) -> None:
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            found[columns[e]] += _said(values[e], weights[e] if weights.size else 1.0, of_users[u])


@dataclass(frozen=True, eq=False)
class EncodedRatings:
    """The ratings of n users on m items, user by user and, on demand, item by item.

    bounds (n + 1,), columns (ratings,) rising inside a user, stored (ratings,) the values, in single precision where
    that is exact (`compact`); weights (ratings,), or empty: 1 each.
    item_bounds (m + 1,) of the ratings item by item (`by_item`). users (n,), items (m,), given (ratings,): their
    indices in the original `Ratings`, which have all_users, all_items and all_ratings.
    """

    bounds: Ints
    columns: Shorts
    stored: NDArray[Any]
    weights: Floats
    item_bounds: Ints
    users: Ints
    items: Ints
    given: Shorts | Ints
    all_users: int
    all_items: int
    all_ratings: int

    @classmethod
    def from_ratings(cls, ratings: Ratings, weights: Floats | None = None) -> EncodedRatings:
        """Of all ratings, with weights (ratings,) in their order."""
        weights = np.zeros(0) if weights is None else weights
        found = refine_colors(ratings.bounds, ratings.columns, ratings.values, weights, ratings.n_items)
        users, items = (np.argsort(one, kind="stable") for one in found)
        values = compact(ratings.values)
        return cls._arranged(ratings.bounds, ratings.columns, values, weights, users, items, ratings.n_items)

    @classmethod
    def _arranged(
        cls,
        bounds: Ints,
        columns: Shorts,
        values: NDArray[Any],
        weights: Floats,
        users: Ints,
        items: Ints,
        all_items: int,
    ) -> EncodedRatings:
        """The users and items of these indices, in this order; items of others have no ratings."""
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
            stored=values[given],
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
        """The ratings where the mask holds, of the same users and items in the same order; `given` are indices here."""
        before = np.concatenate([[0], np.cumsum(mask)])
        weights = self.weights[mask] if self.weights.size else self.weights
        users, items = np.arange(self.n_users), np.arange(self.n_items)
        cut = (before[self.bounds], self.columns[mask], self.stored[mask], weights)
        filtered = self._arranged(*cut, users, items, self.n_items)
        return replace(filtered, given=np.flatnonzero(mask)[filtered.given])

    @property
    def values(self) -> Floats:
        """(ratings,) a copy of the moment."""
        return self.stored.astype(np.float64)

    @property
    def n_ratings(self) -> int:
        return self.stored.size

    @property
    def n_users(self) -> int:
        return self.bounds.size - 1

    @property
    def n_items(self) -> int:
        return self.item_bounds.size - 1

    @cached_property
    def by_item(self) -> tuple[Shorts | Ints, Shorts]:
        """(ratings,) each: the indices here of the ratings of each item, and their users."""
        kind = np.int32 if self.stored.size < np.iinfo(np.int32).max else np.int64
        table = self.table(np.arange(self.stored.size, dtype=kind)).tocsc()
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

    def select_users(self, chosen: NDArray[np.bool_]) -> EncodedRatings:
        """The ratings of these users (n,) alone, over the same items; `users` and `given` are indices as before."""
        return self if chosen.all() else self._selected(np.flatnonzero(chosen), np.arange(self.n_items))

    def of_rated_items(self) -> EncodedRatings:
        """The same over the items that have ratings: others tell nothing, and would move the last bits of sums."""
        rated = np.diff(self.item_bounds) > 0
        return self if rated.all() else self._selected(np.arange(self.n_users), np.flatnonzero(rated))

    def _selected(self, users: Ints, items: Ints) -> EncodedRatings:
        some = self._arranged(self.bounds, self.columns, self.stored, self.weights, users, items, self.n_items)
        return replace(
            some, users=self.users[users], items=self.items[items], given=self.given[some.given],
            all_users=self.all_users, all_items=self.all_items, all_ratings=self.all_ratings,
        )  # fmt: skip


def compact(values: Floats) -> NDArray[Any]:
    """The values in single precision where that loses no bit, else as they are."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    return small if np.array_equal(small, values) else values


LASTING = 1 << 19
"""Ratings up to which the losses of all users are cached, some 58 bytes each; beyond, one shard at a time."""


@dataclass(frozen=True, eq=False)
class ShardValues:
    """The ratings of a shard (entries, 1), which engines put into files of their own."""

    features: Any

    def with_features(self, features: Any) -> ShardValues:
        return ShardValues(features)


@dataclass(frozen=True, eq=False)
class RatedShard:
    """Rows first <= i < last of one side, "users" or "items", cut by bounds (last - first + 1,), with the columns of
    the other. loss: from ratings and bounds to a loss, of users, made once or, where it is not `lasting`, for each
    question. remembered: for the shard itself."""

    scorer: ShardValues
    side: str
    first: int
    last: int
    bounds: Ints
    columns: Shorts
    weights: Floats
    user_weights: Floats
    loss: Callable[[Floats, Ints], Any] | None = None
    lasting: bool = True
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def values(self) -> Floats:
        """(entries,) the ratings, a copy of the moment."""
        return np.array(self.scorer.features[:, 0], dtype=np.float64)

    @property
    def rows(self) -> slice:
        """Its users or items among all."""
        return slice(self.first, self.last)

    def loss_at(self, touch: Floats | None) -> Any:
        """The loss of its users, or the majorant that touches it at these scores."""
        loss = self.remembered.get("loss")
        if loss is None:
            assert self.loss is not None
            loss = self.loss(self.values, self.bounds)
            if self.lasting:
                self.remembered["loss"] = loss
        return loss if touch is None or loss.convex else loss.majorant(touch)


def user_shards(
    rated: EncodedRatings, ratings: int, user_weights: Floats, loss: Callable[[Floats, Ints], Any] | None = None
) -> tuple[RatedShard, ...]:
    """Shards of complete users with at least so many ratings, except the last."""
    found = []
    for first, last in cut(rated.bounds, ratings):
        entries = slice(int(rated.bounds[first]), int(rated.bounds[last]))
        weights = rated.weights[entries] if rated.weights.size else rated.weights
        found.append(
            RatedShard(
                ShardValues(rated.stored[entries, None]), "users", first, last,
                rated.bounds[first : last + 1] - rated.bounds[first], rated.columns[entries], weights,
                user_weights[first:last], loss, rated.stored.size <= LASTING,
            )
        )  # fmt: skip
    return tuple(found)


def item_shards(rated: EncodedRatings, ratings: int) -> tuple[RatedShard, ...]:
    """Shards of complete items with at least so many ratings, except the last."""
    order, users = rated.by_item
    found = []
    for first, last in cut(rated.item_bounds, ratings):
        entries = slice(int(rated.item_bounds[first]), int(rated.item_bounds[last]))
        weights = rated.weights[order[entries]] if rated.weights.size else rated.weights
        found.append(
            RatedShard(
                ShardValues(rated.stored[order[entries], None]), "items", first, last,
                rated.item_bounds[first : last + 1] - rated.item_bounds[first], users[entries], weights, np.zeros(0),
            )
        )  # fmt: skip
    return tuple(found)
