"""Triplets out of sparse matrices and data frames."""

from typing import Any

import numpy as np

from rankopt.data.ratings.ids import distinct_ids, placed, plain_ids
from rankopt.data.validation import check_entries
from rankopt.errors import DataError

USER = ("user", "userid", "uid", "useridx", "member", "customer", "customerid", "reader", "readerid")
ITEM = (
    "item", "itemid", "iid", "itemidx", "movie", "movieid", "film", "filmid", "book", "bookid", "isbn", "joke",
    "jokeid", "product", "productid", "track", "trackid", "song", "songid", "artist", "artistid",
)  # fmt: skip
RATING = ("rating", "ratings", "score", "stars", "value")
"""Names of columns, letters in any case, without `_`, `-` and blanks."""


def triplets_of_csr(table: Any, users: Any, items: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Places of rows and of columns, entries and the two universes of a scipy sparse matrix or array of any format."""
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
    for given, places, size, what in (
        (users, rows, table.shape[0], "user"),
        (items, columns, table.shape[1], "item"),
    ):
        ids = np.arange(size) if given is None else given
        known = distinct_ids(ids, what)
        if known.size != size:
            raise DataError(f"{what}s has {known.size} ids but the matrix has shape {table.shape}; name each {what}.")
        rank = placed(known, plain_ids(ids, what)).astype(np.int32)
        found.append((known, rank[places]))
    return *found[0], *found[1], values


def triplets_of_frame(frame: Any, user: str | None, item: str | None, rating: str | None) -> tuple[Any, Any, Any]:
    """The three columns of a data frame."""
    if not hasattr(frame, "columns"):
        raise DataError(f"from_frame cannot read a {type(frame).__name__}; pass a data frame, or use Ratings.of.")
    if hasattr(frame, "collect"):
        raise DataError("from_frame reads rows, and a lazy frame has none yet; pass frame.collect().")
    chosen = chosen_columns(list(frame.columns), user, item, rating)
    return frame[chosen[0]], frame[chosen[1]], frame[chosen[2]]


def chosen_columns(names: list[Any], user: str | None, item: str | None, rating: str | None) -> list[Any]:
    """The columns of user, item and rating: those that are given, else those of the usual names."""
    return [
        _column(names, given, usual, what)
        for given, usual, what in ((user, USER, "user"), (item, ITEM, "item"), (rating, RATING, "rating"))
    ]


def _column(names: list[Any], given: str | None, usual: tuple[str, ...], what: str) -> Any:
    listed = ", ".join(map(repr, names)) or "none"
    if given is not None:
        if names.count(given) != 1:
            raise DataError(f"{what} = {given!r} is not the name of one column; the columns are {listed}.")
        return given
    found = [name for name in names if plain_name(name) in usual]
    if len(found) != 1:
        why = f"{', '.join(map(repr, found))} would all do" if found else "none has a usual name"
        raise DataError(f"The frame has no clear column of the {what} ({why} among {listed}); say {what}='...'.")
    return found[0]


def plain_name(name: Any) -> str:
    """A name of a column as the lists above have it."""
    return str(name).strip().lower().replace("_", "").replace("-", "").replace(" ", "")
