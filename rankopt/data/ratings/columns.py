"""Ratings out of the columns of a parquet or Feather file.

    user, item, rating, ...          one row a rating, in any order; other columns are left aside

Ids are what the columns hold: whole numbers, or text. Extra `tables`.
"""

from typing import Any

from rankopt.data.ratings.sources import chosen_columns
from rankopt.data.ratings.table import Ratings
from rankopt.data.tables import column_of, table_at
from rankopt.errors import DataError

__all__ = ["KINDS", "is_of_columns", "ratings_of_columns"]

KINDS = (".parquet", ".feather")


def is_of_columns(file: str) -> bool:
    """Whether a file is one of those, by its ending."""
    return file.lower().endswith(KINDS)


def ratings_of_columns(
    file: str, columns: tuple[str | None, str | None, str | None], attributes: dict[str, dict[Any, Any]] | None
) -> Ratings:
    """The ratings of the file.

    columns: of user, item and rating, None for the usual names. attributes: of items, rated or not.

    Raises DataError, which names the file, for what `Ratings.from_frame` refuses, and for a column that lacks a value.
    """
    table = table_at(file)
    try:
        names = chosen_columns(list(table.column_names), *columns)
        user, item, rating = (column_of(table, name, file) for name in names)
        if not attributes:
            return Ratings.of(user, item, rating)
        whole = item.dtype.kind in "iu"
        known = {
            name: {one if whole else str(one): value for one, value in of.items()} for name, of in attributes.items()
        }
        items = list(dict.fromkeys([*item.tolist(), *(one for of in known.values() for one in of)]))
        return Ratings.of(user, item, rating, items=items).with_attributes(known)
    except DataError as error:
        told = str(error)
        raise DataError(told if file in told else f"{file}: {told}") from error
