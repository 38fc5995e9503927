"""Files of ratings: those of MovieLens and their like, read strictly, in one pass.

    196\t242\t3\t881250949            u.data
    1::1193::5::978300760          ratings.dat
    userId,movieId,rating,timestamp        ratings.csv, and any other with such a header

Plain or gzip, UTF-8, with or without a byte order mark. Ids are whole numbers where all of a column are written as
Python writes them and have 18 digits at the most, else strings. Time is linear; memory is 16 bytes a rating and the
ids, and a block of text. Parquet and Feather files are read by their columns: `rankopt.data.ratings.columns`.
"""

import csv
from array import array
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from re import Pattern, compile
from typing import Any

import numpy as np

from rankopt.data.ratings.columns import is_of_columns, ratings_of_columns
from rankopt.data.ratings.item_files import FOLDERS, read_items
from rankopt.data.ratings.layout import Layout, layout_of
from rankopt.data.ratings.table import Ratings
from rankopt.data.ratings.universe import ordered, recode
from rankopt.data.svmlight.grammar import NUMBER
from rankopt.data.text import BLOCK, check_text, clipped, is_text, text_blocks
from rankopt.errors import DataError

__all__ = ["read_ratings"]

WHOLE = compile(rb"0|-?[1-9][0-9]{0,17}")
MANY = 1 << 31


def read_ratings(
    path: str | PathLike[str],
    *,
    items: str | PathLike[str] | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Ratings:
    """The ratings of a file of text or of columns, or of a folder of MovieLens, whose file of items comes along.

    items: a file of items (`u.item`, `movies.dat`, `movies.csv`), whose titles and genres become the attributes `title`
    and `genre` (a tuple of labels); items that nobody rated are in the table too. user, item, rating: columns of the
    header, by default those of the usual names, see `Ratings.from_frame`, which takes data frames.

    Raises DataError naming file and line for a line of another number of fields, an empty id, a rating that is no
    finite number, bytes that are no text, and for a pair that is rated twice.
    """
    try:
        file = fspath(path)
    except TypeError:
        cure = "Ratings.from_frame(frame)" if hasattr(path, "columns") else "Ratings.of(user, item, rating)"
        raise DataError(f"read_ratings cannot read a {type(path).__name__} because it is no file; use {cure}") from None
    if Path(file).is_dir():
        file, beside = _in_folder(Path(file))
        items = beside if items is None else items
    if is_of_columns(file):
        return ratings_of_columns(file, (user, item, rating), None if items is None else read_items(items))
    reading = _Reading(file, (user, item, rating))
    for first, text in text_blocks(file, BLOCK):
        reading.take(first, text)
    return reading.ratings(None if items is None else read_items(items))


def _in_folder(folder: Path) -> tuple[str, Path | None]:
    """The files of ratings and of items of a folder of MovieLens."""
    there = []
    for names in FOLDERS:
        ratings, items = (
            next((folder / f"{name}{end}" for end in ("", ".gz") if (folder / f"{name}{end}").is_file()), None)
            for name in names
        )
        if ratings is not None:
            there.append((ratings, items))
    if len(there) > 1:
        both = " and ".join(ratings.name for ratings, _ in there[:2])
        raise DataError(f"{folder} has {both}, two files of ratings; name the file.")
    if not there:
        known = ", ".join(ratings for ratings, _ in FOLDERS)
        raise DataError(f"{folder} has no file of ratings ({known}, or these with .gz); name the file.")
    return fspath(there[0][0]), there[0][1]


class _Ids:
    """Ids by first appearance: whole numbers as such, others as strings."""

    def __init__(self) -> None:
        self.codes: dict[int | str, int] = {}
        self.whole = True

    def code(self, word: bytes) -> int:
        one: int | str
        if WHOLE.fullmatch(word):
            one = int(word)
        else:
            one, self.whole = word.decode(), False
        return self.codes.setdefault(one, len(self.codes))

    def of_numbers(self, numbers: Any) -> Any:
        found, inverse = np.unique(numbers, return_inverse=True)
        codes = [self.codes.setdefault(one, len(self.codes)) for one in found.tolist()]
        return np.array(codes, dtype=np.int32)[inverse]

    def names(self) -> list[Any]:
        """All whole numbers or all strings; a number and a string never read alike, so none fall together."""
        return list(self.codes) if self.whole else [str(one) for one in self.codes]


class _Reading:
    """What has been read of a file so far."""

    def __init__(self, file: str, columns: tuple[str | None, str | None, str | None]) -> None:
        self.file, self.columns = file, columns
        self.layout: Layout | None = None
        self.numbers: Pattern[bytes] | None = None
        self.ids = {"user": _Ids(), "item": _Ids()}
        self.rows, self.places, self.values = array("i"), array("i"), array("d")
        self.begins = array("q")  # row and line where rows begin to follow each other line by line
        self.next_line = 0

    def take(self, first: int, text: bytes) -> None:
        if self.layout is None:
            first, text = self._begun(first, text)
        if self.layout is None or not text:
            return
        if self.numbers is not None and not self.numbers.sub(b"", text):
            self._take_numbers(first, text, self.layout)
        else:
            self._take_lines(first, text, self.layout)
        if len(self.values) >= MANY:
            raise DataError(f"{self.file}: there are {MANY} ratings or more, which is more than a table holds; cut it.")

    def _begun(self, first: int, text: bytes) -> tuple[int, bytes]:
        """Take the layout from the first line that is not blank; what comes after the header, or all from it."""
        while text:
            line, _, rest = text.partition(b"\n")
            if line.strip():
                where = f"{self.file}, line {first}"
                check_text(line.removesuffix(b"\r"), where)
                self.layout = layout_of(line.removesuffix(b"\r"), where, self.columns)
                self.numbers = self.layout.numbers() if self.layout.separator != b" " else None
                return (first + 1, rest) if self.layout.header else (first, text)
            first, text = first + 1, rest
        return first, text

    def _follow(self, line: int) -> None:
        """Say that the next row stands in this line."""
        if line != self.next_line:
            self.begins.extend((len(self.values), line))
        self.next_line = line + 1

    def _take_numbers(self, first: int, text: bytes, layout: Layout) -> None:
        plain = text.replace(layout.separator, b" ")
        table = np.fromstring(plain, dtype=np.float64, sep=" ").reshape(-1, layout.fields)
        if not np.isfinite(table[:, layout.rating]).all():  # 1e999
            self._take_lines(first, text, layout)
            return
        self._follow(first)
        self.next_line = first + len(table)
        for ids, place, codes in (
            (self.ids["user"], layout.user, self.rows),
            (self.ids["item"], layout.item, self.places),
        ):
            codes.frombytes(ids.of_numbers(table[:, place].astype(np.int64)).tobytes())
        self.values.frombytes(np.ascontiguousarray(table[:, layout.rating]).tobytes())

    def _take_lines(self, first: int, text: bytes, layout: Layout) -> None:
        clean = is_text(text)
        user, item = self.ids["user"], self.ids["item"]
        for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=first):
            line = line.removesuffix(b"\r")
            if not clean:
                check_text(line, f"{self.file}, line {number}")
            if not line.strip():
                continue
            try:
                fields = layout.cut(line)
            except csv.Error as error:
                raise DataError(f"{self.file}, line {number}: this is no CSV: {error}; mend the line.") from None
            if len(fields) != layout.fields:
                raise DataError(
                    f"{self.file}, line {number}: {len(fields)} fields, but the first line has {layout.fields}; mend "
                    "the line."
                )
            word = fields[layout.rating]
            if not NUMBER.fullmatch(word) or not isfinite(float(word)):
                raise DataError(
                    f"{self.file}, line {number}: the rating is {clipped(word)!r}. Ratings are finite numbers: mend "
                    "the line or leave it out."
                )
            for what, place in (("user", layout.user), ("item", layout.item)):
                if not fields[place]:
                    raise DataError(f"{self.file}, line {number}: the {what} is empty; mend the line or leave it out.")
            self._follow(number)
            self.rows.append(user.code(fields[layout.user]))
            self.places.append(item.code(fields[layout.item]))
            self.values.append(float(word))

    def ratings(self, items: dict[str, dict[Any, Any]] | None) -> Ratings:
        if not self.values:
            raise DataError(f"{self.file} is empty: it has no line of data.")
        codes = {"user": np.frombuffer(self.rows, dtype=np.int32), "item": np.frombuffer(self.places, dtype=np.int32)}
        names = {what: ids.names() for what, ids in self.ids.items()}
        attributes = items or {}
        if attributes:
            attributes = _of_same_type(attributes, self.ids["item"].whole)
            names["item"] = list(dict.fromkeys([*names["item"], *(i for of in attributes.values() for i in of)]))
        known = {}
        for what, listed in names.items():
            known[what], order = ordered(listed, what, listed)
            rank = np.empty(len(order), dtype=np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            recode(codes[what], rank)
        values = np.frombuffer(self.values, dtype=np.float64)
        table = Ratings.of_places(known["user"], codes["user"], known["item"], codes["item"], values, self._twice)
        return table.with_attributes(attributes) if attributes else table

    def _twice(self, user: Any, item: Any, first: int, second: int) -> DataError:
        return DataError(
            f"{self.file}, line {self._line(second)}: user {_told(user)} rates item {_told(item)}, as in line "
            f"{self._line(first)}; keep one of the two."
        )

    def _line(self, row: int) -> int:
        begins = np.array(self.begins, dtype=np.int64).reshape(-1, 2)
        begin, line = begins[np.searchsorted(begins[:, 0], row, side="right") - 1]
        return int(line + row - begin)


def _told(one: Any) -> str:
    return repr(one if isinstance(one, int) else clipped(str(one).encode()))


def _of_same_type(attributes: dict[str, dict[Any, Any]], whole: bool) -> dict[str, dict[Any, Any]]:
    """Ids of items as the ratings have them: strings where those are no whole numbers."""
    if whole:
        return attributes
    return {name: {str(one): value for one, value in of.items()} for name, of in attributes.items()}
