"""Encoded ratings: users and items in a canonical order, independent of their ids.

Sums round by their order, and a nonconvex problem turns the last bit into another point. So users and items are sorted
by permutation-invariant hashes of color refinement (1-WL): the hash of a user combines the multiset of ratings and
hashes of the items, that of an item those of the users, for some rounds. Sums of 64 bits commute, so a pass over the
ratings in any order gives the same hashes. Users or items with equal hashes are exchangeable.

Shards for engines contain complete users, or complete items. The cuts depend on the ratings, not on the number of
workers, so results are bit-identical for every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, Shorts
from rankopt.collaborative.linear_algebra import rated_table, row_sums
from rankopt.data.canonical_order import PART, Hashes, mixed
from rankopt.ratings.table import Ratings
from rankopt.risk.risk import cut

ROUNDS = 4  # rounds of refinement: on sparse ratings the fourth tells no more apart than the third


def unit_of_ratings(values: Floats) -> float:
    """A quarter of the range from the 1% to the 99% quantile (of the full range if these are equal): 1 for ratings of
    1 to 5 stars, whatever their frequencies. So the unit of the ratings has no effect on lists."""
    if not values.size:
        return 1.0
    low, high = np.quantile(values, (0.01, 0.99), method="inverted_cdf")
    reach = float(high - low) or float(values.max() - values.min())
    return reach / 4.0 if 0.0 < reach < math.inf else 1.0


def refine_colors(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, items: int) -> tuple[Hashes, Hashes]:
    """(users,) and (items,) 64 bits each; weights: (ratings,) or empty. Neither the unit of the values counts nor their
    zero: they are hashed on a scale of 1 to 5, in single precision."""
    low, unit = float(values.min(initial=np.inf)), unit_of_ratings(values)
    users, owner = bounds.size - 1, np.repeat(np.arange(bounds.size - 1, dtype=np.int32), np.diff(bounds))

    def combine(columns: NDArray[Any], colors: Hashes, rows: NDArray[Any], size: int) -> Hashes:
        found = np.zeros(size, np.uint64)
        for first in range(0, values.size, PART):
            part = slice(first, first + PART)
            level = (1.0 + (values[part] - low) / unit).astype(np.float32).astype(np.float64)
            rated = mixed(level.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            weight = weights[part] if weights.size else np.ones(1)
            rated += mixed(weight.view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
            np.add.at(found, rows[part], mixed(rated + colors[columns[part]]))
        return mixed(found)

    of_items = np.zeros(items, np.uint64)
    for _ in range(ROUNDS):
        of_users = combine(columns, of_items, owner, users)
        of_items = combine(owner, of_users, columns, items)
    return of_users, of_items


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
        return cls._arrange(ratings.bounds, ratings.columns, values, weights, users, items, ratings.n_items)

    @classmethod
    def _arrange(
        cls, bounds: Ints, columns: Shorts, values: NDArray[Any], weights: Floats, users: Ints, items: Ints, all_items:
        int,
    ) -> EncodedRatings:  # fmt: skip
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
        own = weights[given] if weights.size else weights
        sizes_of_all = (bounds.size - 1, all_items, values.size)
        return cls(
            starts.astype(np.int64), columns, values[given], own, item_bounds, users, items, given, *sizes_of_all
        )

    def select(self, mask: Bools) -> EncodedRatings:
        """The ratings where the mask holds, of the same users and items in the same order; `given` are indices here."""
        before = np.concatenate([[0], np.cumsum(mask)])
        weights = self.weights[mask] if self.weights.size else self.weights
        users, items = np.arange(self.n_users), np.arange(self.n_items)
        cut = (before[self.bounds], self.columns[mask], self.stored[mask], weights)
        filtered = self._arrange(*cut, users, items, self.n_items)
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
        return np.asarray(self.table(values).sum(axis=0), dtype=np.float64)

    def table(self, values: NDArray[Any]) -> Any:
        """A scipy CSR array (n, m) of one number a rating."""
        return rated_table(self.bounds, self.columns, values, self.n_items)

    def select_users(self, chosen: Bools) -> EncodedRatings:
        """The ratings of these users (n,) alone, over the same items; `users` and `given` are indices as before."""
        return self if chosen.all() else self._submatrix(np.flatnonzero(chosen), np.arange(self.n_items))

    def of_rated_items(self) -> EncodedRatings:
        """The same over the items that have ratings: others add nothing, and would change the last bits of sums."""
        rated = np.diff(self.item_bounds) > 0
        return self if rated.all() else self._submatrix(np.arange(self.n_users), np.flatnonzero(rated))

    def _submatrix(self, users: Ints, items: Ints) -> EncodedRatings:
        some = self._arrange(self.bounds, self.columns, self.stored, self.weights, users, items, self.n_items)
        return replace(
            some, users=self.users[users], items=self.items[items], given=self.given[some.given],
            all_users=self.all_users, all_items=self.all_items, all_ratings=self.all_ratings,
        )  # fmt: skip


def compact(values: Floats) -> NDArray[Any]:
    """The values in single precision where that loses no bit, else as they are."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    return small if np.array_equal(small, values) else values


LASTING = 1 << 19  # ratings up to which the losses of all users are cached, 58 bytes each


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
    return tuple(
        RatedShard(
            ShardValues(rated.stored[entries, None]), "users", first, last, bounds, rated.columns[entries],
            rated.weights[entries] if rated.weights.size else rated.weights, user_weights[first:last], loss,
            rated.stored.size <= LASTING,
        )
        for first, last, bounds, entries in _pieces(rated.bounds, ratings)
    )  # fmt: skip


def item_shards(rated: EncodedRatings, ratings: int) -> tuple[RatedShard, ...]:
    """Shards of complete items with at least so many ratings, except the last."""
    order, users = rated.by_item
    return tuple(
        RatedShard(
            ShardValues(rated.stored[order[entries], None]), "items", first, last, bounds, users[entries],
            rated.weights[order[entries]] if rated.weights.size else rated.weights, np.zeros(0),
        )
        for first, last, bounds, entries in _pieces(rated.item_bounds, ratings)
    )  # fmt: skip


def _pieces(bounds: Ints, ratings: int) -> Iterator[tuple[int, int, Ints, slice]]:
    """First and last row of each shard, its bounds from 0, and its entries."""
    for first, last in cut(bounds, ratings):
        own = bounds[first : last + 1]
        yield first, last, own - own[0], slice(int(own[0]), int(own[-1]))
