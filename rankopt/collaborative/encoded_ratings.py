"""Ratings as training sees them: users and items in an order of their content, so that names play no part.

Sums round by their order, and a nonconvex problem turns the last bit into another point. So users and items are put in
an order that the ratings alone decide, that of their `refine_colors`. Equal ones are left to those whom the ratings
hardly tell apart; where these could change places for nothing, either order is the same problem.

Ratings as codes: there are few different ones, so one byte or two say which a rating is.

A book of numbers, each of which stands there once, and the pages at which given ones stand: codes of two bytes.

Colours of users and items: what ratings say of them, blind to names and to the order of rows.

The colour of a user is made of the multiset of ratings and of the colours of the items, that of an item of the users'
in turn, some rounds long (colour refinement). Sums of 64 bits commute, so a pass over the ratings in any order will do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.collaborative.linear_algebra import column_sums, row_sums
from rankopt.data.canonical_order import HASHES, SALT, mixed
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint16]

CODES = nb.types.Array(nb.uint16, 1, "C")
READ_CODES = nb.types.Array(nb.uint16, 1, "C", readonly=True)

PAGES = 1 << 16
"""Numbers that a book holds at most."""

LARGE = nb.uint64(0x9E3779B97F4A7C15)


def encode_values(book: Floats, values: Floats) -> tuple[Codes | None, Floats]:
    """The page of each value, and the book with those that it lacked behind the others; None where it is full."""
    pages = np.empty(PAGES)
    pages[: book.size] = book
    codes = np.empty(values.size, dtype=np.uint16)
    held = _entered(np.ascontiguousarray(values), pages, book.size, codes)
    return (None, book) if held < 0 else (codes, pages[:held].copy())


@compiled(nb.void(FLOATS, nb.int64, INTS))
def _indexed(pages: Floats, held: int, table: Ints) -> None:
    """table[slot]: the page that stands there, -1 for none; a power of 2 of slots."""
    bits, size = pages.view(np.int64), nb.uint64(table.size)
    table[:] = -1
    for page in range(held):
        slot = nb.int64(((nb.uint64(bits[page]) * LARGE) >> nb.uint64(32)) * size >> nb.uint64(32))
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = page


@compiled(nb.int64(READ_FLOATS, FLOATS, nb.int64, CODES))
def _entered(values: Floats, pages: Floats, held: int, codes: Codes) -> int:
    """Codes of the values, new ones written into the pages behind the first `held`; how many there are then, -1 where
    they are full. Values are told apart by their bits."""
    size = 1 << 10
    while size < 2 * held:
        size *= 2
    table = np.empty(size, np.int64)
    _indexed(pages, held, table)
    bits, known = values.view(np.int64), pages.view(np.int64)
    for e in range(values.size):
        own = bits[e]
        slot = nb.int64(((nb.uint64(own) * LARGE) >> nb.uint64(32)) * nb.uint64(size) >> nb.uint64(32))
        while table[slot] >= 0 and known[table[slot]] != own:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            if held == pages.size:
                return -1
            pages[held] = values[e]
            table[slot] = held
            codes[e] = held
            held += 1
            if 2 * held > size:
                size *= 2
                table = np.empty(size, np.int64)
                _indexed(pages, held, table)
        else:
            codes[e] = table[slot]
    return held


BYTE = 1 << 8
"""Numbers that one byte tells apart."""


@dataclass(frozen=True, eq=False)
class EncodedValues:
    """(ratings,) numbers, to the bit: `book[codes]`, or `codes` themselves where no book holds them all.

    What is asked of an index or of places is told as floats of the moment.
    """

    codes: NDArray[Any]
    book: Floats

    @classmethod
    def of(cls, values: Floats) -> EncodedValues:
        codes, book = encode_values(np.zeros(0), values)
        if codes is None:
            return cls(values, np.zeros(0))
        return cls(codes.astype(np.uint8) if book.size <= BYTE else codes, book)

    @property
    def size(self) -> int:
        return self.codes.size

    def __getitem__(self, places: Any) -> Floats:
        found = self.codes[places]
        return np.asarray(self.book[found] if self.book.size else found, dtype=np.float64)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy is not False)

    def kept(self, places: NDArray[Any]) -> EncodedValues:
        """Those at these places, or where a mask holds, as codes."""
        return EncodedValues(self.codes[places], self.book)


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
    """The ratings of n users on m items, user by user and, where that is asked for, item by item.

    bounds (n + 1,), columns (ratings,) rising inside a user, values (ratings,) as `EncodedValues`; weights (ratings,),
    or empty: 1 each.
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
