"""Tables of ratings of items by users, sorted in linear time by two sparse transpositions, with item attributes."""

import hashlib
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, Shorts, check_no_mask, check_type
from formulations.display import CompactReprMixin
from formulations.typing import Sparse
from rankopt.data.queries import attributes_text, range_text
from rankopt.data.typing import Frame, Ids, Values
from rankopt.data.validation import as_array, column, each_row, frozen, is_missing, plain_name, sealed, whole
from rankopt.errors import DataError
from rankopt.options import check
from rankopt.ratings.ids import (
    ITEM,
    check_spelling,
    coded,
    distinct_ids,
    index_table,
    indices_of,
    plain_ids,
    spelled,
    triplets_of_csr,
    triplets_of_frame,
)

SHOWN = 10  # maximum number of distinct ratings counted individually; more are shown as a range


def _values(values: Floats) -> str:
    if not values.size:
        return ""
    some = np.unique(values[:1000])
    if some.size <= SHOWN:
        counted = [int(np.count_nonzero(values == one)) for one in some]
        if sum(counted) == values.size:
            return ", ".join(f"{one:g}: {count}" for one, count in zip(some, counted, strict=True))
        some, numbers = np.unique(values, return_counts=True)
        if some.size <= SHOWN:
            return ", ".join(f"{one:g}: {count}" for one, count in zip(some, numbers, strict=True))
    return f"from {values.min():g} to {values.max():g}"


def _bytes(values: NDArray[Any]) -> bytes:
    """Numbers as bits, others as text."""
    if values.dtype.kind in "iufb":
        return b"numbers" + values.tobytes()
    return b"words" + repr(values.tolist()).encode(errors="surrogatepass")


def by_code(codes: Shorts, size: int) -> tuple[Ints, NDArray[Any]]:
    """Bounds (size + 1,) int64 and the positions (n,) sorted by code, stable."""
    from scipy.sparse import csr_array

    n = codes.size
    kind = np.int32 if n < np.iinfo(np.int32).max else np.int64
    rows = csr_array((np.ones(n, dtype=np.int8), codes, np.arange(n + 1, dtype=kind)), shape=(n, size))
    columns = rows.tocsc()
    return columns.indptr.astype(np.int64), columns.indices


def in_order(users: Shorts, items: Shorts, n_users: int, n_items: int) -> tuple[Ints, Any]:
    """Bounds (n_users + 1,) of the users, and the order (n,) of the ratings: by user, item, input row."""
    order = None
    if ((users[1:] < users[:-1]) | ((users[1:] == users[:-1]) & (items[1:] < items[:-1]))).any():
        first = by_code(items, n_items)[1]
        bounds, second = by_code(users[first], n_users)
        order = first[second]
    else:
        bounds = np.zeros(n_users + 1, dtype=np.int64)
        np.cumsum(np.bincount(users, minlength=n_users), out=bounds[1:])
    return bounds, order


def not_rising(bounds: Ints, columns: Shorts, ties_only: bool = False) -> Bools:
    """(n - 1,) where the item of a rating is not below (ties_only: equals) that of the next rating of its user."""
    wrong = columns[1:] == columns[:-1] if ties_only else columns[1:] <= columns[:-1]
    inner = bounds[1:-1]
    wrong[inner[(inner > 0) & (inner < columns.size)] - 1] = False
    return np.asarray(wrong)


def first_twice(bounds: Ints, columns: Shorts, order: Any) -> tuple[int, int, int] | None:
    """The first pair that is rated twice: its index and the input rows of both ratings; None if there is none. order:
    the input rows of the sorted ratings, None if they are sorted."""
    repeated = np.flatnonzero(not_rising(bounds, columns, ties_only=True))
    if not repeated.size:
        return None
    second = repeated + 1 if order is None else order[repeated + 1]
    index = int(repeated[second.argmin()])
    return index, *((index, index + 1) if order is None else (int(order[index]), int(order[index + 1])))


SEVERAL = (tuple, list, set, frozenset, np.ndarray)  # types of entries with several labels


def attributes_of_items(
    attributes: Mapping[str, Any] | None, items: NDArray[Any], given: Any
) -> dict[str, NDArray[Any]]:
    """name -> (n_items,) values in the order of `items`. given: the items as the caller listed them, for attributes
    that are sequences. Raises DataError if they do not fit."""
    if hasattr(attributes, "columns"):
        attributes = _columns_of_frame(attributes)
    if attributes is not None and not isinstance(attributes, Mapping):
        raise DataError(
            f"attributes cannot be a {type(attributes).__name__} which has no names; pass name -> {{item: value}}, "
            "such as {'genre': dict(zip(frame['item'], frame['genre']))}"
        )
    found = {}
    for name, values in (attributes or {}).items():
        if isinstance(values, Mapping):
            ids = list(values)
            where = indices_of(items, ids)
            check_spelling(items, ids, where, f"item of attribute {name!r},")
            aligned = np.full(items.size, None, dtype=object)
            for index, one in zip(where.tolist(), values.values(), strict=True):
                if index >= 0:
                    aligned[index] = one
            found[name] = sealed(_typed_array(aligned))
        elif given is None:
            raise DataError(
                f"attribute {name!r} needs the ids of its items; pass a mapping from item to value, or items= too."
            )
        else:
            where = indices_of(items, plain_ids(given, "item"))
            listed = labels_of_items(values, where.size, name)
            aligned = np.empty(items.size, dtype=listed.dtype)
            aligned[where] = listed
            found[name] = sealed(aligned)
    return found


def _columns_of_frame(frame: Any) -> dict[str, dict[Any, Any]]:
    """The columns of a data frame next to the one of the item, as mappings from the item; missing values are None."""
    found = [name for name in frame.columns if plain_name(name) in ITEM]
    listed = ", ".join(map(repr, frame.columns))
    if len(found) != 1:
        raise DataError(
            f"attributes cannot be this frame because {len(found)} of its columns, {listed}, have a usual name of the "
            "item (item, sku, ...) and one must; rename it, or pass name -> {item: value}"
        )
    ids = frame[found[0]].to_list()
    if len({*ids}) < len(ids):
        raise DataError(f"attributes list an item twice in column {found[0]!r}; drop its other rows")
    return {
        name: {one: None if is_missing(value) else value for one, value in zip(ids, frame[name].to_list(), strict=True)}
        for name in frame.columns
        if name != found[0]
    }


def labels_of_items(values: Any, n: int, name: str) -> NDArray[Any]:
    """One entry an item, (n,), that nobody can write to: lists and arrays become tuples of labels in their order, sets
    in the order of their types' names and their words. Raises DataError for another shape, and for what is no label."""
    values = as_array(values)
    if isinstance(values, list | tuple) and any(isinstance(one, SEVERAL) for one in values):
        values = np.fromiter(values, dtype=object, count=len(values))
    array = column(values, n, name)
    if array.dtype != object:
        return frozen(array)
    entries = array.tolist()
    settled = [_plain_value(one) for one in entries]
    for index, one in enumerate(settled):
        try:
            hash(one)
        except TypeError as error:
            raise DataError(
                f"attribute {name!r}, entry {index}: {entries[index]!r} is no label ({error}); pass a label, or a "
                "tuple of labels."
            ) from None
    if all(one is own for one, own in zip(settled, entries, strict=True)):
        return frozen(array)
    return sealed(np.fromiter(settled, dtype=object, count=n))


def _plain_value(one: Any) -> Any:
    if isinstance(one, set | frozenset):
        return tuple(sorted(one, key=lambda label: (type(label).__name__, spelled(label))))
    if isinstance(one, np.ndarray):
        return tuple(one.tolist())
    return tuple(one) if isinstance(one, list) else one


def _typed_array(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as numeric arrays; strings, tuples and missing values stay objects."""
    kinds = {type(one) for one in values.tolist()}
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return values.astype(np.int64)
    if kinds and all(issubclass(kind, float | np.floating) for kind in kinds):
        return values.astype(np.float64)
    return values.astype(bool) if kinds == {bool} else values


@dataclass(frozen=True, eq=False, repr=False)
class Ratings(CompactReprMixin):
    """Immutable explicit ratings of users × items in CSR form; user u has the ratings bounds[u]:bounds[u+1].

    * `users` (n_users,), `items` (n_items,): distinct ids, int64 if all are integers, else objects; numbers by value,
      then strings, then other types. Ids may have no ratings
    * `bounds` (n_users + 1,) int64, non-decreasing from 0 to n_ratings
    * `columns` (n_ratings,) int32: the index of the item in `items`, increasing for each user
    * `values` (n_ratings,) float64, finite; 0 is an ordinary rating
    * `attributes`: name -> (n_items,) array; an entry is a label, a tuple of labels (genres) or None; lists and sets
      become tuples

    `Ratings.from_arrays` takes triplets in any order; shuffled triplets give the same table and `fingerprint`. Memory:
    12 bytes per rating. Raises DataError for inconsistent parts, non-finite values, and two ratings of one pair.

    >>> ratings = Ratings.from_arrays(["ann", "bob", "ann"], ["Alien", "Alien", "Brazil"], [4, 2, 5])
    >>> ratings.users, ratings.bounds, ratings.values
    (array(['ann', 'bob'], dtype=object), array([0, 2, 3]), array([4., 5., 2.]))
    >>> ratings.item_index(["Brazil", "Cube"])
    array([ 1, -1])
    """

    users: NDArray[Any]
    items: NDArray[Any]
    bounds: Ints
    columns: Shorts
    values: Floats
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        user: Ids,
        item: Ids,
        rating: Values,
        *,
        users: Ids | None = None,
        items: Ids | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> "Ratings":
        """Build from n triplets: (n,) hashable ids, (n,) hashable ids, (n,) numbers, in any order.

        users, items: distinct ids including all that occur, by default these. attributes: name -> {item: value}, or one
        value for each of `items=` in its order; items missing in a mapping have None.
        """
        known_users, rows = coded(user, "user", users)
        known_items, columns = coded(item, "item", items)
        if rows.size != columns.size:
            raise DataError(f"user has {rows.size} entries but item has {columns.size}; pass one of each per rating.")
        if not rows.size and users is None and items is None:
            raise DataError("there are no ratings; a table without any needs users= and items=.")
        found = attributes_of_items(attributes, known_items, items)
        return cls.from_indices(known_users, rows, known_items, columns, rating)._having(found)

    @classmethod
    def from_csr(
        cls,
        table: Sparse,
        *,
        users: Ids | None = None,
        items: Ids | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> "Ratings":
        """Build from the stored entries of a scipy sparse matrix or array (n_users, n_items) of any format.

        A stored 0 is a rating. users, items: the ids of its rows and columns, by default 0, 1, ... Raises DataError for
        duplicate entries, which scipy would add, and for an index outside the shape.
        """
        known_users, rows, known_items, columns, values = triplets_of_csr(table, users, items)
        listed = np.arange(known_items.size) if items is None else items
        found = attributes_of_items(attributes, known_items, listed)
        return cls.from_indices(known_users, rows, known_items, columns, values)._having(found)

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        users: Ids | None = None,
        items: Ids | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> "Ratings":
        """Build from the rows of a pandas or polars data frame.

        user, item, rating: its columns, by default those with usual names (user, userID, user_id, userId; item,
        sku, movie, ... alike; rating, score, stars); others are ignored. Raises DataError for a missing or ambiguous
        column.
        """
        found = triplets_of_frame(frame, user, item, rating)
        return cls.from_arrays(*found, users=users, items=items, attributes=attributes)

    @classmethod
    def from_indices(
        cls, users: NDArray[Any], rows: Shorts, items: NDArray[Any], columns: Shorts, rating: Any, twice: Callable[[Any,
        Any, int, int], DataError] | None = None,
    ) -> "Ratings":  # fmt: skip
        """Build from triplets of indices into two universes. twice: the error for a pair in two rows."""
        for name, part, universe in (("rows", rows, users), ("columns", columns, items)):
            for array in (part, universe):
                check_type(f"{name} and its universe", array, np.ndarray, error=DataError)
            valid = part.ndim == universe.ndim == 1 and part.size == rows.size and part.dtype.kind in "iu"
            if not valid or (part.size and not 0 <= part.min() <= part.max() < universe.size):
                raise DataError(f"{name} must be {rows.size} indices from 0 to {universe.size - 1}; got {part!r:.80}.")
        try:
            values = column(rating, rows.size, "rating", np.float64)
        except DataError as error:
            if isinstance(error.__cause__ or error.__context__, ValueError):
                raise _of_text(rating, error) from None
            raise
        named = users.item, items.item  # Python's own numbers and strings
        _check_finite(values, lambda row: f"Row {row}, user {named[0](rows[row])!r}, item {named[1](columns[row])!r}")
        bounds, order = in_order(rows, columns, users.size, items.size)
        if order is not None:
            columns, values = columns[order], values[order]
        pair = first_twice(bounds, columns, order)
        if pair is not None:
            index, first, second = pair
            user = named[0](int(np.searchsorted(bounds, index, side="right")) - 1)
            raise (twice or _twice)(user, named[1](columns[index]), first, second)
        return cls(users, items, bounds, sealed(columns.copy() if order is None else columns), sealed(values + 0.0))

    def __post_init__(self) -> None:
        try:
            users, items = frozen(np.asarray(self.users)), frozen(np.asarray(self.items))
        except ValueError as error:
            raise DataError(f"users and items must be vectors of ids ({error}).") from None
        for ids, what in ((users, "user"), (items, "item")):
            known = distinct_ids(ids, what)
            if known.dtype != ids.dtype or not np.array_equal(known, ids):
                raise DataError(f"{what}s are not in the order of their ids; make the table by Ratings.from_arrays.")
        values = column(self.values, len(self.values), "values", np.float64)
        columns = np.ascontiguousarray(whole("columns", self.columns), dtype=np.int32)
        bounds = whole("bounds", self.bounds)
        n = values.size
        if bounds.shape != (users.size + 1,) or bounds[0] != 0 or bounds[-1] != n or (bounds[1:] < bounds[:-1]).any():
            raise DataError(f"bounds do not cut {n} ratings into those of {users.size} users; they rise from 0 to {n}.")
        if columns.shape != (n,) or (n and (columns.min() < 0 or columns.max() >= items.size)):
            raise DataError(f"columns must be {n} indices into items, from 0 to {items.size - 1}.")
        falling = not_rising(bounds, columns)
        if falling.any():
            raise DataError(f"columns do not rise in a user at rating {falling.argmax() + 1}; use Ratings.from_arrays.")
        _check_finite(values, lambda row: f"Rating {row}")
        attributes = {name: labels_of_items(v, items.size, name) for name, v in self.attributes.items()}
        settled = {
            "users": users, "items": items, "bounds": frozen(bounds), "columns": frozen(columns),
            "values": frozen(values), "attributes": MappingProxyType(attributes),
        }  # fmt: skip
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """The number of ratings."""
        return self.values.size

    @property
    def n_users(self) -> int:
        """Number of users, including those without ratings."""
        return self.users.size

    @property
    def n_items(self) -> int:
        """Number of items, including those without ratings."""
        return self.items.size

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return self.values.size

    @cached_property
    def counts(self) -> Ints:
        """(n_items,) number of ratings of each item."""
        return sealed(np.bincount(self.columns, minlength=self.n_items).astype(np.int64, copy=False))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the content, 32 hexadecimal digits; equal tables have equal fingerprints: SHA-256, truncated, of ids
        (by `repr` unless numbers), attributes (sorted by name) and arrays, each prefixed by its length."""
        named = [part for name in sorted(self.attributes) for part in (name.encode(), _bytes(self.attributes[name]))]
        arrays = map(np.ascontiguousarray, (self.bounds, self.columns, self.values))
        parts: list[Any] = [_bytes(self.users), _bytes(self.items), *arrays, *named]
        hashed = hashlib.sha256()
        for part in parts:
            size = part.nbytes if isinstance(part, np.ndarray) else len(part)
            hashed.update(size.to_bytes(8, "little"))
            hashed.update(part)
        return hashed.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratings) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def user_of(self) -> Shorts:
        """(n_ratings,) the index in `users` of the user of each rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.bounds))

    def to_csr(self) -> Any:
        """A scipy CSR array (n_users, n_items) of the ratings, with stored zeros; it shares memory."""
        from scipy.sparse import csr_array

        kind = np.int32 if self.n_ratings < np.iinfo(np.int32).max else np.int64
        parts = (self.values, self.columns.astype(kind, copy=False), self.bounds.astype(kind))
        table = csr_array(parts, shape=(self.n_users, self.n_items), copy=False)
        table.has_canonical_format = True
        return table

    def user_index(self, ids: Any) -> Ints:
        """(n,) the index of each id in `users`, -1 if unknown."""
        return indices_of(self.users, ids, self._user_index)

    def item_index(self, ids: Any) -> Ints:
        """(n,) the index of each id in `items`, -1 if unknown."""
        return indices_of(self.items, ids, self._item_index)

    def select(self, mask: Any, *, drop: bool = False) -> "Ratings":
        """The ratings selected by the mask (n_ratings,), over the same users and items. drop: remove users and items
        without ratings."""
        selected = each_row(mask)
        check("drop", drop, (bool,))
        if selected.dtype != bool or selected.shape != (self.n_ratings,):
            raise DataError(f"select takes a mask of {self.n_ratings} booleans, one per rating; got {selected.shape}.")
        before = np.concatenate([[0], np.cumsum(selected)])
        bounds, columns = before[self.bounds], self.columns[selected]
        users, items, attributes = self.users, self.items, self.attributes
        if drop:
            left, seen = np.diff(bounds) > 0, np.zeros(self.n_items, dtype=bool)
            seen[columns] = True
            bounds = np.concatenate([[0], bounds[1:][left]])
            columns = (np.cumsum(seen, dtype=np.int32) - 1)[columns]
            users, items = sealed(users[left]), sealed(items[seen])
            attributes = {name: values[seen] for name, values in attributes.items()}
        return Ratings(users, items, bounds, columns, self.values[selected], attributes)

    def select_users(self, index: Any, *, drop: bool = False) -> "Ratings":
        """The ratings of the users at these indices: integers, a mask (n_users,) or a slice; see `select`."""
        check_no_mask("the index", index, DataError)
        chosen = np.zeros(self.n_users, dtype=bool)
        try:
            chosen[index] = True
        except (IndexError, ValueError) as error:
            raise DataError(f"select_users cannot pick from {self.n_users} users: {error}.") from None
        return self.select(np.repeat(chosen, np.diff(self.bounds)), drop=drop)

    def with_attributes(self, attributes: Mapping[str, Any]) -> "Ratings":
        """Add attributes of items: name -> {item: value}, or one value per item; or a data frame with a column of the
        item, whose other columns are attributes."""
        return self._having(attributes_of_items(attributes, self.items, self.items))

    def _having(self, attributes: Mapping[str, NDArray[Any]]) -> "Ratings":
        """Add attributes that are in the order of the items."""
        if not attributes:
            return self
        every = {**self.attributes, **attributes}
        return Ratings(self.users, self.items, self.bounds, self.columns, self.values, every)

    @cached_property
    def _user_index(self) -> dict[Hashable, int] | None:
        return None if self.users.dtype == np.int64 else index_table(self.users)

    @cached_property
    def _item_index(self) -> dict[Hashable, int] | None:
        return None if self.items.dtype == np.int64 else index_table(self.items)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled, and arrays come back writable: build anew instead.
        values = [getattr(self, one.name) for one in fields(self)]
        return Ratings, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    def __str__(self) -> str:
        """For example `Ratings(2 users (1 to 2 ratings each), 2 items (1 to 2), 3 ratings 2: 1, 4: 1, 5: 1)`."""
        parts = [
            f"{self.n_users} users ({range_text(np.diff(self.bounds))} ratings each)",
            f"{self.n_items} items ({range_text(self.counts)})",
            f"{self.n_ratings} ratings {_values(self.values)}".rstrip(),
            *attributes_text([*self.attributes]),
        ]
        return f"Ratings({', '.join(parts)})"


def _of_text(rating: Any, error: DataError) -> DataError:
    """The error for ratings of text with decimal commas; else the error itself."""
    try:
        entries = list(rating)
    except TypeError:  # a number, a sparse matrix
        return error
    one = next((one for one in entries if isinstance(one, str) and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", one)), None)
    if one is None:
        return error
    return DataError(
        f"rating {one!r} is text with a decimal comma; read the file with pandas.read_csv(path, sep=';', decimal=','), "
        "or with rankopt.ratings.read_ratings(path)"
    )


def _twice(user: Any, item: Any, first: int, second: int) -> DataError:
    return DataError(f"User {user!r} rates item {item!r} twice, in rows {first} and {second}; remove one of the two.")


def _check_finite(values: Floats, describe: Any) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{describe(row)}: the rating is {values[row]}. Ratings must be finite: remove the row.")
