"""Where a line of a file of ratings has user, item and rating: found out from its first line.

    separator   '::', tab, ',', ';', '|' or blank: the first that cuts the first line into three fields or more
    header      a first line whose rating is no number names the columns
    else        user, item and rating are the first three fields; what follows (a time) is left aside

Fields may have blanks around them, and quotes where they stand apart by ',' or ';'.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rankopt.data.ratings.sources import ITEM, RATING, USER, plain_name
from rankopt.data.svmlight.grammar import NUMBER
from rankopt.data.text import clipped
from rankopt.errors import DataError

__all__ = ["Layout", "layout_of"]

SEPARATORS = (b"::", b"\t", b",", b";", b"|", b" ")
QUOTED = (b",", b";")


@dataclass(frozen=True)
class Layout:
    """Separator, number of fields of a line, and the places of user, item and rating among them."""

    separator: bytes
    fields: int
    user: int
    item: int
    rating: int
    header: bool

    def cut(self, line: bytes) -> list[bytes]:
        """The fields of a line. Raises csv.Error for quotes that do not end."""
        return cut(line, self.separator)

    def numbers(self) -> re.Pattern[bytes]:
        """A line all of whose fields are numbers, the ids whole and short enough to be exact as doubles, with its end.
        `sub` leaves nothing of a text of such lines: Python 3.11.2 takes other texts for `(line)*+`."""
        whole, number = rb"(?:0|[1-9][0-9]{0,14}+)", rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
        fields = [whole if place in (self.user, self.item) else number for place in range(self.fields)]
        return re.compile(re.escape(self.separator).join(fields) + rb"\r?(?:\n|\Z)")


def cut(line: bytes, separator: bytes) -> list[bytes]:
    if separator in QUOTED and b'"' in line:
        return [
            field.encode() for field in next(csv.reader([line.decode()], strict=True, delimiter=separator.decode()))
        ]
    return [field.strip(b" ") for field in (line.split() if separator == b" " else line.split(separator))]


def layout_of(line: bytes, where: str, columns: Sequence[str | None]) -> Layout:
    """The layout that the first line shows. columns: names of the columns of user, item and rating in a header, None
    for the usual ones; where: file and line, for the DataError of a line that shows none."""
    fields, separator = [], b""
    for separator in SEPARATORS:
        try:
            fields = cut(line, separator)
        except csv.Error:
            continue
        if len(fields) >= 3:
            break
    else:
        raise DataError(
            f"{where}: {clipped(line)!r} is no rating; a line has user, item and rating, apart by '::', a tab, ',', "
            "';', '|' or a blank."
        )
    if NUMBER.fullmatch(fields[2]) and not any(columns):
        return Layout(separator, len(fields), 0, 1, 2, False)
    names = [field.decode(errors="replace").strip() for field in fields]
    places = [
        _place(names, given, usual, what, where)
        for given, usual, what in zip(columns, (USER, ITEM, RATING), ("user", "item", "rating"), strict=True)
    ]
    if len(set(places)) < 3:
        raise DataError(f"{where}: user, item and rating cannot stand in one column; say three of the header's.")
    return Layout(separator, len(fields), places[0], places[1], places[2], True)


def _place(names: list[str], given: str | None, usual: tuple[str, ...], what: str, where: str) -> int:
    found = [i for i, name in enumerate(names) if (name == given if given is not None else plain_name(name) in usual)]
    if len(found) == 1:
        return found[0]
    listed = clipped(", ".join(map(repr, names)).encode())
    wanted = f"{what}={given!r}" if given is not None else f"the {what}"
    count = "several columns" if found else "no column"
    raise DataError(
        f"{where}: the rating {clipped(names[2].encode())!r} is no number, and as a header the line has {count} for "
        f"{wanted} ({listed}); mend the line, or say user=, item= and rating=."
    )
