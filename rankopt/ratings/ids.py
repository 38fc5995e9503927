"""Ids of users and items in canonical order, their indices, and triplets from sparse matrices and data frames.

A universe is a read-only array of distinct ids: int64 if all are integers, else objects. Order: numbers by value, then
strings, then other types by type name. Within a type the order is `<`, or `repr` if `<` is not total (sets by the
`repr` of their elements).

17 and "17" are different ids. A lookup of one where only the other is known is an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from re import compile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Ints, Shorts, check_no_mask, each
from rankopt.data.validation import as_array, check_entries, did_you_mean, is_missing, plain_name, sealed
from rankopt.errors import DataError

Ids = NDArray[Any]
Codes = Shorts

CHUNK = 1 << 18  # number of ids per block; keeps temporaries small compared with the ratings
MOST = np.iinfo(np.int32).max  # maximum number of ids of a universe


def coded(values: Any, what: str, universe: Any = None) -> tuple[Ids, Codes]:
    """The universe of one id per rating, and the index (n,) of each in it. universe: distinct ids in any order that
    include all of them; by default those that occur. what: "user" or "item", for messages. Raises DataError for an id
    that is missing, not hashable or not in the universe."""
    plain = plain_ids(values, what)
    codes = np.empty(len(plain), dtype=np.int32)
    if universe is not None:
        known = distinct_ids(universe, what)
        found = indices_of(known, plain) if len(plain) else codes
        if found.size and found.min() < 0:
            row = int(np.flatnonzero(found < 0)[0])
            name = plain.item(row) if isinstance(plain, np.ndarray) else plain[row]
            raise DataError(
                f"The rating of row {row} is of {what} {name!r}, which {what}s= lacks; omit {what}s=, or list all."
            )
        codes[:] = found
        return known, codes
    if not isinstance(plain, np.ndarray):
        seen: dict[Hashable, int] = {}
        row = 0
        try:
            for row, one in enumerate(plain):
                codes[row] = seen.setdefault(one, len(seen))
        except TypeError:
            raise DataError(
                f"The {what} of row {row} is a {type(one).__name__}, which is not hashable; use numbers or strings."
            ) from None
        known, order = ordered([*seen], what, plain)
        recode(codes, order)
        return known, codes
    known = _distinct(plain)
    for begin, part in _chunks(plain):
        codes[begin : begin + len(part)] = np.searchsorted(known, part)
    return sealed(known if known.dtype == np.int64 else _objects(known.tolist())), codes


def distinct_ids(values: Any, what: str) -> Ids:
    """The universe of these ids. Raises DataError for a repeated one."""
    plain = plain_ids(values, what)
    if isinstance(plain, np.ndarray):
        known = _distinct(plain)
        known = sealed(known if known.dtype == np.int64 else _objects(known.tolist()))
    else:
        try:
            distinct = [*dict.fromkeys(plain)]
        except TypeError as error:
            raise DataError(f"Each {what} must be a number or a string ({error}).") from None
        known = ordered(distinct, what, plain)[0]
    if len(known) < len(plain):
        raise DataError(f"{what}s= has {len(plain)} ids, of which {len(known)} are distinct; list each once.")
    return known


def index_table(known: Ids) -> dict[Hashable, int]:
    """The index of each id of a universe of objects."""
    return {one: i for i, one in enumerate(known.tolist())}


def indices_of(known: Ids, ids: Any, table: dict[Hashable, int] | None = None) -> Ints:
    """The index (n,) of each id in a universe, -1 for unknown ids. table: its `index_table`, if cached."""
    plain = ids if isinstance(ids, np.ndarray | list) else list(ids)
    if known.dtype == np.int64:
        numbers = plain if isinstance(plain, np.ndarray) else None
        if numbers is None:
            numbers = np.fromiter(map(_as_integer, plain), dtype=object, count=len(plain))
        if numbers.dtype.kind not in "iu":
            integers = [_as_integer(one) for one in numbers.tolist()]
            inside = np.array([one is not None and -(2**63) <= one < 2**63 for one in integers], dtype=bool)
            numbers = np.array([one if ok else 0 for one, ok in zip(integers, inside, strict=True)], dtype=np.int64)
        else:
            inside = numbers <= np.iinfo(np.int64).max
            numbers = np.where(inside, numbers, 0).astype(np.int64)  # uint64 and int64 would be compared as floats
        found = np.full(len(numbers), -1, dtype=np.int64)
        for begin, part in _chunks(numbers) if known.size else ():
            at = np.minimum(np.searchsorted(known, part), known.size - 1)
            here = (known[at] == part) & inside[begin : begin + len(part)]
            found[begin : begin + len(part)] = np.where(here, at, -1)
        return found
    table = index_table(known) if table is None else table
    items = plain.tolist() if isinstance(plain, np.ndarray) and plain.dtype.kind not in "mM" else list(plain)
    try:
        return np.fromiter((table.get(one, -1) for one in items), dtype=np.int64, count=len(items))
    except TypeError as error:
        raise DataError(f"An id must be a number or a string ({error}).") from None


def check_present(ids: Any, found: Ints, what: str, of: str) -> None:
    """Raise the DataError of training if an unknown id of `ids` (n,), found (n,) < 0, is missing (None, NaN, NA). of:
    what needs the id."""
    values = as_array(ids)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iubUS":
        return
    for row in np.flatnonzero(found < 0).tolist():
        if is_missing(values[row]):
            raise _missing(what, row, values[row], of)


def _missing(what: str, row: int, one: Any, of: str) -> DataError:
    return DataError(f"The {what} of row {row} is {one}; every {of} needs one, fill it in or drop the row.")


def recode(codes: Codes, order: list[int]) -> None:
    """Replace each code by its rank in the order, in place."""
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    for begin in range(0, len(codes), CHUNK):
        codes[begin : begin + CHUNK] = rank[codes[begin : begin + CHUNK]]


def _as_integer(one: Any) -> int | None:
    """The id as an integer; None if it is not integral."""
    if isinstance(one, int | np.integer):
        return int(one)
    return int(one) if isinstance(one, float | np.floating) and float(one).is_integer() else None


def plain_ids(values: Any, what: str) -> Any:
    """Ids as an array of int64 or strings if possible, else a list of hashables."""
    values = as_array(values)
    check_no_mask(what, values, DataError)
    if not isinstance(values, np.ndarray):
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise DataError(f"{what} cannot be {values!r} because it needs one {what} per rating; pass a sequence.")
        values = list(each(what, values, DataError))
        kinds = {*map(type, values)}
        if kinds and all(issubclass(kind, int | np.integer) for kind in kinds):
            try:
                return np.array(values, dtype=np.int64)
            except OverflowError:
                return values
        return values
    if values.ndim != 1:
        raise DataError(f"{what} has shape {values.shape} but needs one {what} per rating; pass a vector.")
    if values.dtype.kind in "iub" and not (values.size and values.max() > np.iinfo(np.int64).max):
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == "f":
        if np.isfinite(values).all() and (values == np.floor(values)).all() and (abs(values) < 2.0**53).all():
            return values.astype(np.int64)
        return values.tolist()
    if values.dtype.kind == "U":
        return values
    return values.tolist() if values.dtype.kind not in "mM" else list(values)


def _distinct(values: Ids) -> Ids:
    """Sorted distinct values of an array; linear time for integers in a short range."""
    if values.dtype != np.int64 or not values.size:
        return np.unique(values)
    low, high = int(values.min()), int(values.max())
    if high - low >= max(values.size, CHUNK):
        return np.unique(values)
    present = np.zeros(high - low + 1, dtype=bool)
    for _, part in _chunks(values):
        present[part - low] = True
    return np.flatnonzero(present) + low


def ordered(ids: list[Hashable], what: str, rows: Any) -> tuple[Ids, list[int]]:
    """The universe of distinct ids, and the index in `ids` of each of its entries."""
    named = [one.item() if isinstance(one, np.generic) else one for one in ids]
    for i, one in enumerate(named):
        if is_missing(one):
            row = next(row for row, other in enumerate(rows) if other is ids[i])
            raise _missing(what, row, one, "rating")
        if isinstance(one, float | bool):
            named[i] = int(one) if float(one).is_integer() else one
    if len(named) > MOST:
        raise DataError(f"there are {len(named)} {what}s, but a table of ratings has at most {MOST}.")
    kinds: dict[tuple[int, str], list[int]] = {}
    for i, one in enumerate(named):
        kinds.setdefault(_kind(one), []).append(i)
    order: list[int] = []
    for kind in sorted(kinds):
        order += _sort_labels(named, kinds[kind])
    if all(type(one) is int and -(2**63) <= one < 2**63 for one in named):
        return sealed(np.array([named[i] for i in order], dtype=np.int64)), order
    return sealed(_objects([named[i] for i in order])), order


def _kind(one: Hashable) -> tuple[int, str]:
    if isinstance(one, int | float):
        return 0, ""
    if isinstance(one, str):
        return 1, ""
    return 2, f"{type(one).__module__}.{type(one).__qualname__}"


def _sort_labels(named: list[Any], chosen: list[int]) -> list[int]:
    try:
        order = sorted(chosen, key=lambda i: named[i])
        if all(named[i] < named[j] for i, j in pairwise(order)):  # a chain; partially ordered sets are none
            return order
    except (TypeError, ValueError):
        pass
    return sorted(chosen, key=lambda i: spelled(named[i]))


def spelled(one: Any) -> str:
    """`repr` with the elements of sets in sorted order."""
    if isinstance(one, frozenset):
        return f"{{{', '.join(sorted(map(spelled, one)))}}}"
    return f"({', '.join(map(spelled, one))})" if isinstance(one, tuple) else repr(one)


def _objects(values: list[Any]) -> Ids:
    return np.fromiter(values, dtype=object, count=len(values))


def _chunks(values: Ids) -> Iterator[tuple[int, Ids]]:
    for begin in range(0, len(values), CHUNK):
        yield begin, values[begin : begin + CHUNK]


INTEGER = compile(r"0|-?[1-9][0-9]{0,17}")


def check_spelling(known: NDArray[Any], ids: Any, found: Ints, what: str) -> None:
    """Raise DataError if an unknown id of `ids` (n,), found (n,) < 0, is known under another type, 17 for "17", or if
    it is a number where all known ids are text, or the text of a number where all are numbers."""
    missing = np.flatnonzero(found < 0)
    if not missing.size or not known.size:
        return
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    some = values[missing].tolist() if isinstance(values, np.ndarray) else [values[i] for i in missing.tolist()]
    twins = {_twin(one): one for one in {*some}}
    twins.pop(None, None)
    indices = indices_of(known, list(twins)) if twins else np.zeros(0, dtype=np.int64)
    first, last = known.item(0), known.item(-1)  # numbers before text before other types
    for (twin, one), index in zip(twins.items(), indices.tolist(), strict=True):
        is_text = isinstance(one, str)
        own, other, others = ("text", "a number", "numbers") if is_text else ("a number", "text", "text")
        only = not isinstance(last, str | tuple) if is_text else isinstance(first, str) and isinstance(last, str)
        if index < 0 and not only:
            continue
        rest = f"the known id is {other}, {twin!r}" if index >= 0 else f"all known ids are {others}, such as {first!r}"
        raise DataError(
            f"{what} {one!r} is {own}, but {rest}; pass ids of the type used in "
            "training (NumPy turns a mixed array into text: pass a list, or dtype=object)"
        )


def _twin(one: Any) -> int | str | None:
    """The same id as the other type, number or text; None for others."""
    if isinstance(one, str):
        return int(one) if INTEGER.fullmatch(one) else None
    if isinstance(one, bool | np.bool_) or not isinstance(one, int | float | np.integer | np.floating):
        return None
    return str(int(one)) if isinstance(one, int | np.integer) or float(one).is_integer() else None


USER = (
    "user", "userid", "uid", "useridx", "member", "memberid", "customer", "customerid", "client", "clientid", "reader",
    "readerid", "reviewer", "reviewerid", "visitor", "visitorid",
)  # fmt: skip
ITEM = (
    "item", "itemid", "iid", "itemidx", "movie", "movieid", "film", "filmid", "book", "bookid", "isbn", "joke",
    "jokeid", "product", "productid", "track", "trackid", "song", "songid", "artist", "artistid",
    "sku", "skuid", "article", "articleid", "asin", "business", "businessid", "game", "gameid", "recipe", "recipeid",
)  # fmt: skip
RATING = ("rating", "ratings", "score", "stars", "value", "overall")
"""Column names, case-insensitive, without `_`, `-` and blanks."""


def triplets_of_csr(table: Any, users: Any, items: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Universes and indices of rows and columns, and the entries, of a scipy sparse matrix or array of any format."""
    if not hasattr(table, "tocoo"):
        raise DataError(f"from_csr cannot read a {type(table).__name__}; pass a scipy sparse matrix.")
    check_entries(table)
    if table.format == "csr":  # tocoo keeps entries that are stored twice, for CSR and CSC
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        last = int(table.indptr[-1])
        columns, values = table.indices[:last], table.data[:last]
    else:
        entries = table.tocoo()
        rows, columns, values = entries.row, entries.col, entries.data
    found = []
    for names, codes, size, what in ((users, rows, table.shape[0], "user"), (items, columns, table.shape[1], "item")):
        ids = np.arange(size) if names is None else list(names) if isinstance(names, Iterator) else names
        known = distinct_ids(ids, what)
        if known.size != size:
            raise DataError(f"{what}s has {known.size} ids, the matrix shape {table.shape}; pass one id per {what}.")
        rank = indices_of(known, plain_ids(ids, what)).astype(np.int32)
        found.append((known, rank[codes]))
    return *found[0], *found[1], values


def triplets_of_frame(frame: Any, user: str | None, item: str | None, rating: str | None) -> tuple[Any, Any, Any]:
    """The three columns of a data frame."""
    if not hasattr(frame, "columns"):
        raise DataError(f"from_frame cannot read a {type(frame).__name__}; pass a data frame, or use from_arrays.")
    if hasattr(frame, "collect"):
        raise DataError("from_frame needs a collected frame; got a lazy one. Pass frame.collect().")
    chosen = chosen_columns(list(frame.columns), user, item, rating, "Ratings.from_frame(frame, {})")
    return frame[chosen[0]], frame[chosen[1]], frame[chosen[2]]


def chosen_columns(
    names: list[Any], user: str | None, item: str | None, rating: str | None, call: str = ""
) -> list[Any]:
    """The columns of user, item and rating: the named ones, else those with usual names. call: the call with all three
    that an error suggests, {} for its arguments; by default only the missing one is named."""
    listed = ", ".join(map(repr, names)) or "none"
    found = {}
    for what, wanted, usual in (("user", user, USER), ("item", item, ITEM), ("rating", rating, RATING)):
        if wanted is not None and (not isinstance(wanted, Hashable) or names.count(wanted) != 1):
            near = did_you_mean(wanted, names) or "."
            raise DataError(f"{what}={wanted!r} is not the name of one column; the columns are {listed}{near}")
        found[what] = [name for name in names if plain_name(name) in usual] if wanted is None else [wanted]
    words = {what: f"{what}={some[0]!r}" if len(some) == 1 else f"{what}='...'" for what, some in found.items()}
    for what, some in found.items():
        if len(some) != 1:
            why = f"{', '.join(map(repr, some))} would all do" if some else "none has a usual name"
            cure = call.format(", ".join(words.values())) if call else words[what]
            raise DataError(f"The frame has no unique column of the {what} ({why} among {listed}); pass {cure}.")
    return [some[0] for some in found.values()]
