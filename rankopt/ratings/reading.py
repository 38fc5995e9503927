"""Strict one-pass readers of rating files and item files in the formats of MovieLens.

    196 242     3       881250949            u.data
    1::1193::5::978300760          ratings.dat
    userId,movieId,rating,timestamp        ratings.csv, or any file with such a header

Plain or gzip, UTF-8, with or without a byte order mark. Ids are integers if all of a column are written in canonical
decimal form with at most 18 digits, else strings. Time is linear; memory is 16 bytes per rating plus the ids.

The first line of a file determines its layout:

    separator   '::', tab, ',', ';', '|' or blank: the first that splits the line into three fields or more
    header      a first line whose rating is not a number names the columns
    else        user, item and rating are the first three fields; others (a time) are ignored

Fields may be padded with blanks, and quoted if separated by ',' or ';'. Ratings separated by ';' or a tab may have a
decimal comma.

Parquet and Feather files have columns user, item and rating; others are ignored. Ids are integers or
text, as stored.

Item files are u.item next to u.genre, movies.dat, movies.csv, or any file with a header that names the item; plain or
gzip, UTF-8, else Latin-1 (both older sets).
"""

import csv
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from re import Pattern, compile
from typing import Any

import numpy as np

from formulations.arrays import as_path, check_type
from rankopt.data.svmlight.parser import NUMBER, query_name
from rankopt.data.tables import column_of, table_at
from rankopt.data.text import BLOCK, check_text, clipped, is_text, text_blocks
from rankopt.data.validation import did_you_mean, plain_name
from rankopt.errors import DataError
from rankopt.ratings.ids import ITEM, RATING, USER, chosen_columns, ordered, recode
from rankopt.ratings.table import Ratings

SEPARATORS = (b"::", b"\t", b",", b";", b"|", b" ")
QUOTED = (b",", b";")
DECIMAL_COMMA = compile(rb"[+-]?\d+,\d+")


@dataclass(frozen=True)
class Layout:
    """Separator, number of fields of a line, and the indices of user, item and rating."""

    separator: bytes
    fields: int
    user: int
    item: int
    rating: int
    header: bool

    def numbers(self) -> re.Pattern[bytes]:
        """Pattern of a line of numbers with ids that are integers and exact as doubles, including its end. Use `sub` to
        test a text of such lines: Python 3.11.2 matches `(line)*+` wrongly."""
        integer, number = rb"(?:0|[1-9][0-9]{0,14}+)", rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
        fields = [integer if index in (self.user, self.item) else number for index in range(self.fields)]
        return re.compile(re.escape(self.separator).join(fields) + rb"\r?(?:\n|\Z)")


def cut(line: bytes, separator: bytes) -> list[bytes]:
    """The fields of a line. Raises csv.Error for an unclosed quote."""
    if separator in QUOTED and b'"' in line:
        return [
            field.encode() for field in next(csv.reader([line.decode()], strict=True, delimiter=separator.decode()))
        ]
    return [field.strip(b" ") for field in (line.split() if separator == b" " else line.split(separator))]


def _with_point(word: bytes, separator: bytes) -> bytes:
    """The number with a decimal point, where the separator allows a decimal comma."""
    allowed = separator in (b";", b"\t") and DECIMAL_COMMA.fullmatch(word)
    return word.replace(b",", b".") if allowed else word


def layout_of(line: bytes, where: str, columns: Sequence[str | None]) -> Layout:
    """The layout implied by the first line. columns: header names of user, item and rating, None for the usual ones;
    where: file and line, for the DataError."""
    fields, separator = [], b""
    several_commas = line.count(b";") > line.count(b",") > 1  # c1;sku;4,0;3,5
    for separator in (b";", *SEPARATORS) if several_commas else SEPARATORS:
        try:
            fields = cut(line, separator)
        except csv.Error:
            continue
        if len(fields) >= 3 and (separator != b";" or not several_commas or DECIMAL_COMMA.fullmatch(fields[2])):
            break
    else:
        raise DataError(
            f"{where}: {clipped(line)!r} is no rating; a line has user, item and rating, separated by '::', a tab, "
            "',', ';', '|' or a blank."
        )
    if NUMBER.fullmatch(_with_point(fields[2], separator)) and not any(columns):
        return Layout(separator, len(fields), 0, 1, 2, False)
    names = [field.decode(errors="replace").strip() for field in fields]
    indices = [
        _field_index(names, name, usual, what, where)
        for name, usual, what in zip(columns, (USER, ITEM, RATING), ("user", "item", "rating"), strict=True)
    ]
    if len(set(indices)) < 3:
        raise DataError(f"{where}: user, item and rating need three different columns; name three of the header's.")
    return Layout(separator, len(fields), indices[0], indices[1], indices[2], True)


def _field_index(names: list[str], wanted: str | None, usual: tuple[str, ...], what: str, where: str) -> int:
    check_type(what, wanted, str, type(None), error=DataError)
    found = [i for i, name in enumerate(names) if (name == wanted if wanted is not None else plain_name(name) in usual)]
    if len(found) == 1:
        return found[0]
    listed = clipped(", ".join(map(repr, names)).encode())
    count = "several columns" if found else "no column"
    if wanted is not None:
        near = did_you_mean(wanted, names) or f"; pass {what}= with another name."
        raise DataError(f"{where}: {what}={wanted!r}: the header has {count} of this name ({listed}){near}")
    raise DataError(
        f"{where}: the rating {clipped(names[2].encode())!r} is not a number, and as a header the line has {count} for "
        f"the {what} ({listed}); correct the line, or pass user=, item= and rating=."
    )


def ratings_of_columns(
    file: str, columns: tuple[str | None, str | None, str | None], attributes: dict[str, dict[Any, Any]] | None
) -> Ratings:
    """The ratings of the file. columns: of user, item and rating, None for the usual names. attributes: attributes of
    items. Raises DataError naming the file, as `Ratings.from_frame` does, and for missing values."""
    table = table_at(file)
    try:
        names = chosen_columns(list(table.column_names), *columns)
        user, item, rating = (column_of(table, name, file) for name in names)
        if not attributes:
            return Ratings.from_arrays(user, item, rating)
        is_integer = item.dtype.kind in "iu"
        known = {
            name: {one if is_integer else str(one): value for one, value in of.items()}
            for name, of in attributes.items()
        }
        items = list(dict.fromkeys([*item.tolist(), *(one for of in known.values() for one in of)]))
        return Ratings.from_arrays(user, item, rating, items=items).with_attributes(known)
    except DataError as error:
        message = str(error)
        raise DataError(message if file in message else f"{file}: {message}") from error


FOLDERS = (("u.data", "u.item"), ("ratings.dat", "movies.dat"), ("ratings.csv", "movies.csv"))
"""File names of ratings and items in MovieLens folders."""

NONE = ("(no genres listed)", "")
TITLE, GENRES = ("title", "name"), ("genres", "genre", "categories")


def read_items(path: str | PathLike[str]) -> dict[str, dict[Any, Any]]:
    """Attribute -> {item id: value}. MovieLens has `title` and `genre`, a tuple of genres or None. In another file
    with a header, separated by ',', ';' or tabs, each column next to that of the item is an attribute; an empty field
    is None. Raises DataError naming file and line for a wrong number of fields and for a repeated item."""
    file = as_path(path, DataError, "items")
    lines = _lines(file)
    number, first = next(lines, (1, ""))
    if not first:
        raise DataError(f"{file} is empty: it has no item.")
    whole = chain([(number, first)], lines)
    if "::" in first:
        found = _fields(file, "::", 3, whole)
        return _read(file, ((n, f[0], [f[1], f[2].split("|")]) for n, f in found))
    if "|" in first and first.count("|") > first.count(","):
        genres = _genres(Path(file))
        found = _fields(file, "|", 5 + len(genres), whole)
        return _read(file, ((n, f[0], [f[1], _genres_of(file, n, f[5:], genres)]) for n, f in found))
    separator = max(",;\t", key=first.count)
    try:
        header = [name.strip() for name in next(csv.reader([first], delimiter=separator))]
    except csv.Error as error:
        raise DataError(f"{file}, line {number}: invalid CSV: {error}; correct the line.") from None
    plain = [plain_name(name) for name in header]
    item = [i for i, name in enumerate(plain) if name in ITEM]
    if len(item) != 1 or len(header) < 2 or len({*header}) < len(header):
        raise DataError(
            f"{file}, line {number}: a file of items has a header with one column of the item (item, sku, movieId, "
            f"...) and one for each attribute, with different names; this is {clipped(first.encode())!r}."
        )
    names = {i: name for i, name in enumerate(header) if i != item[0]}
    for name, usual in (("title", TITLE), ("genre", GENRES[:1])):
        same = [i for i in names if plain[i] in usual]
        if len(same) == 1 and name not in header:
            names[same[0]] = name
    found = _fields(file, separator, len(header), lines)
    several = {i for i in names if plain[i] in GENRES}
    return _read(file, ((n, f[item[0]], [f[i].split("|") if i in several else f[i] for i in names]) for n, f in found),
                 [*names.values()])  # fmt: skip


def _read(
    file: str, lines: Iterator[tuple[int, str, list[Any]]], names: Sequence[str] = ("title", "genre")
) -> dict[str, dict[Any, Any]]:
    """Attributes of the lines (number, item, values); a list is of labels."""
    attributes: dict[str, dict[Any, Any]] = {name: {} for name in names}
    seen: dict[Any, int] = {}
    for number, word, values in lines:
        if not word:
            raise DataError(f"{file}, line {number}: the item is empty; correct the line or remove it.")
        one = query_name(word.encode())
        if seen.setdefault(one, number) != number:
            raise DataError(
                f"{file}, line {number}: item {clipped(word.encode())!r} repeats line {seen[one]}; remove one "
                "of the two."
            )
        for of, value in zip(attributes.values(), values, strict=True):
            if isinstance(value, list):
                value = tuple(dict.fromkeys(label for label in value if label not in NONE))
            of[one] = value or None
    return attributes


def _lines(file: str) -> Iterator[tuple[int, str]]:
    """Non-blank lines with their numbers."""
    for first, text in text_blocks(file):
        for number, line in enumerate(text.split(b"\n"), start=first):
            line = line.removesuffix(b"\r")
            if line.strip():
                try:
                    words = line.decode()
                except UnicodeDecodeError:
                    words = line.decode("latin-1")
                if not words.isprintable() and any(ord(letter) < 32 and letter != "\t" for letter in words):
                    raise DataError(f"{file}, line {number}: it holds control characters; save the file as plain text.")
                yield number, words


def _fields(file: str, separator: str, count: int, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    for n, line in lines:
        try:
            is_csv = separator in ",;\t"
            fields = next(csv.reader([line], strict=True, delimiter=separator)) if is_csv else line.split(separator)
        except csv.Error as error:
            raise DataError(f"{file}, line {n}: invalid CSV: {error}; correct the line.") from None
        if len(fields) != count:
            raise DataError(f"{file}, line {n}: {len(fields)} fields, but an item has {count}; correct the line.")
        yield n, [field.strip() for field in fields]


def _genres_of(file: str, number: int, flags: list[str], genres: list[str]) -> list[str]:
    wrong = next((flag for flag in flags if flag not in ("0", "1")), None)
    if wrong is not None:
        raise DataError(f"{file}, line {number}: the flag of a genre is {clipped(wrong.encode())!r}, not 0 or 1.")
    return [genre for genre, flag in zip(genres, flags, strict=True) if flag == "1"]


def _genres(file: Path) -> list[str]:
    """The names of the genres, in the order of the flags, from `u.genre` in the folder of `u.item`."""
    for end in ("", ".gz"):
        genres = file.with_name(f"u.genre{end}")
        if genres.is_file():
            return [line.split("|")[0].strip() for _, line in _lines(fspath(genres))]
    raise DataError(f"{file} has genre flags, but u.genre, with their names, is missing; put it in the same folder.")


INTEGER = compile(rb"0|-?[1-9][0-9]{0,17}")
MANY = 1 << 31


def read_ratings(
    path: str | PathLike[str],
    *,
    items: str | PathLike[str] | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
) -> Ratings:
    """Read ratings from a text, parquet or Feather file, or from a MovieLens folder including its item file.

    items: an item file (`u.item`, `movies.dat`, `movies.csv`); its titles and genres become the attributes `title` and
    `genre` (a tuple of labels). Any other file with a header that names the item (item, sku, ...) works too: its other
    columns become attributes. Unrated items are included; a warning states how many of the rated items the file has
    if these are fewer than half. Ratings separated by ';' or tabs may have a decimal comma. user, item, rating: header
    columns, by default those with usual names; see `Ratings.from_frame`.

    Raises DataError naming file and line for a wrong number of fields, an empty id, a rating that is not a finite
    number, bytes that are not text, and a pair that is rated twice.
    """
    if not (isinstance(path, str) or hasattr(path, "__fspath__")):
        cure = "Ratings.from_frame(frame)" if hasattr(path, "columns") else "Ratings.from_arrays(user, item, rating)"
        raise DataError(f"read_ratings cannot read a {type(path).__name__} because it is no file; use {cure}")
    file = as_path(path, DataError)
    if Path(file).is_dir():
        file, found = _in_folder(Path(file))
        items = found if items is None else items
    attributes = None if items is None else read_items(items)
    if file.lower().endswith((".parquet", ".feather")):
        ratings = ratings_of_columns(file, (user, item, rating), attributes)
    else:
        reading = _Reading(file, (user, item, rating))
        for first, text in text_blocks(file, BLOCK):
            reading.take(first, text)
        ratings = reading.ratings(attributes)
    if items is not None and attributes:
        warn_of_missing(ratings.items[ratings.counts > 0], attributes, fspath(items))
    return ratings


def warn_of_missing(rated: Any, attributes: dict[str, dict[Any, Any]], file: str) -> None:
    """Warn if a file of items has fewer than half of these."""
    listed = {str(one) for one in next(iter(attributes.values()))}
    found = sum(str(one) in listed for one in rated.tolist())
    if 2 * found < rated.size:
        message = f"{file} has {found} of the {rated.size} rated items; check that their ids agree"
        warnings.warn(message, UserWarning, stacklevel=3)


def rating_columns(
    path: str | PathLike[str], user: str | None = None, item: str | None = None, rating: str | None = None
) -> list[str] | None:
    """The header names that `read_ratings` takes for user, item and rating; None for a file without a header."""
    file = as_path(path, DataError)
    if Path(file).is_dir():
        file, _ = _in_folder(Path(file))
    columns = (user, item, rating)
    if file.lower().endswith((".parquet", ".feather")):
        return list(chosen_columns(list(table_at(file).column_names), *columns))
    number, line = next(_lines(file), (1, ""))
    if not line:
        return None
    layout = layout_of(line.encode(), f"{file}, line {number}", columns)
    fields = [field.decode() for field in cut(line.encode(), layout.separator)]
    return [fields[index] for index in (layout.user, layout.item, layout.rating)] if layout.header else None


def _in_folder(folder: Path) -> tuple[str, Path | None]:
    """The files of ratings and items of a MovieLens folder."""
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
    """Ids in order of first appearance, integers or strings."""

    def __init__(self) -> None:
        self.codes: dict[int | str, int] = {}
        self.are_integers = True

    def code(self, word: bytes) -> int:
        one: int | str
        if INTEGER.fullmatch(word):
            one = int(word)
        else:
            one, self.are_integers = word.decode(), False
        return self.codes.setdefault(one, len(self.codes))

    def of_numbers(self, numbers: Any) -> Any:
        found, inverse = np.unique(numbers, return_inverse=True)
        codes = [self.codes.setdefault(one, len(self.codes)) for one in found.tolist()]
        return np.array(codes, dtype=np.int32)[inverse]

    def names(self) -> list[Any]:
        """All integers or all strings; the conversion is injective."""
        return list(self.codes) if self.are_integers else [str(one) for one in self.codes]


class _Reading:
    """State of a reader: ids, codes and ratings so far."""

    def __init__(self, file: str, columns: tuple[str | None, str | None, str | None]) -> None:
        self.file, self.columns = file, columns
        self.layout: Layout | None = None
        self.numbers: Pattern[bytes] | None = None
        self.ids = {"user": _Ids(), "item": _Ids()}
        self.rows, self.columns_of_items, self.values = array("i"), array("i"), array("d")
        self.begins = array("q")  # row and line where a run of consecutive lines begins
        self.next_line = 0

    def take(self, first: int, text: bytes) -> None:
        if self.layout is None:
            first, text = self._begin(first, text)
        if self.layout is None or not text:
            return
        if self.numbers is not None and not self.numbers.sub(b"", text):
            self._take_numbers(first, text, self.layout)
        else:
            self._take_lines(first, text, self.layout)
        if len(self.values) >= MANY:
            raise DataError(f"{self.file}: there are {MANY} ratings or more, which is more than a table holds; cut it.")

    def _begin(self, first: int, text: bytes) -> tuple[int, bytes]:
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
        """Record the line of the next row."""
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
        for ids, index, codes in (
            (self.ids["user"], layout.user, self.rows),
            (self.ids["item"], layout.item, self.columns_of_items),
        ):
            codes.frombytes(ids.of_numbers(table[:, index].astype(np.int64)).tobytes())
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
                fields = cut(line, layout.separator)
            except csv.Error as error:
                raise DataError(f"{self.file}, line {number}: invalid CSV: {error}; correct the line.") from None
            if len(fields) != layout.fields:
                raise DataError(
                    f"{self.file}, line {number}: {len(fields)} fields, but the first line has {layout.fields}; "
                    "correct the line."
                )
            word = _with_point(fields[layout.rating], layout.separator)
            if not NUMBER.fullmatch(word) or not isfinite(float(word)):
                raise DataError(
                    f"{self.file}, line {number}: the rating is {clipped(word)!r}. Ratings are finite numbers: "
                    "correct the line or remove it."
                )
            for what, index in (("user", layout.user), ("item", layout.item)):
                if not fields[index]:
                    raise DataError(f"{self.file}, line {number}: the {what} is empty; correct the line or remove it.")
            self._follow(number)
            self.rows.append(user.code(fields[layout.user]))
            self.columns_of_items.append(item.code(fields[layout.item]))
            self.values.append(float(word))

    def ratings(self, items: dict[str, dict[Any, Any]] | None) -> Ratings:
        if not self.values:
            raise DataError(f"{self.file} is empty: it has no line of data.")
        codes = {
            "user": np.frombuffer(self.rows, dtype=np.int32),
            "item": np.frombuffer(self.columns_of_items, dtype=np.int32),
        }
        names = {what: ids.names() for what, ids in self.ids.items()}
        attributes = items or {}
        if attributes:
            if not self.ids["item"].are_integers:  # ids of one type
                attributes = {name: {str(one): v for one, v in of.items()} for name, of in attributes.items()}
            names["item"] = list(dict.fromkeys([*names["item"], *(i for of in attributes.values() for i in of)]))
        known = {}
        for what, listed in names.items():
            known[what], order = ordered(listed, what, listed)
            recode(codes[what], order)
        values = np.frombuffer(self.values, dtype=np.float64)
        table = Ratings.from_indices(known["user"], codes["user"], known["item"], codes["item"], values, self._twice)
        return table.with_attributes(attributes) if attributes else table

    def _twice(self, user: Any, item: Any, first: int, second: int) -> DataError:
        return DataError(
            f"{self.file}, line {self._line(second)}: user {_quote(user)} rates item {_quote(item)}, as in line "
            f"{self._line(first)}; remove one of the two."
        )

    def _line(self, row: int) -> int:
        begins = np.array(self.begins, dtype=np.int64).reshape(-1, 2)
        begin, line = begins[np.searchsorted(begins[:, 0], row, side="right") - 1]
        return int(line + row - begin)


def _quote(one: Any) -> str:
    return repr(one if isinstance(one, int) else clipped(str(one).encode()))
