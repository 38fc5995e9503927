"""Files of items as MovieLens has them: the title and the genres of each film.

    1|Toy Story (1995)|01-Jan-1995||http://...|0|0|0|1|1|1|0|...    u.item: 19 flags, named in u.genre beside it
    1::Toy Story (1995)::Animation|Children's|Comedy                 movies.dat
    movieId,title,genres                                             movies.csv

Plain or gzip; UTF-8, or Latin-1 where they are not (both older sets).
"""

import csv
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from rankopt.data.ratings.sources import ITEM, plain_name
from rankopt.data.svmlight.grammar import query_name
from rankopt.data.text import clipped, text_blocks
from rankopt.errors import DataError

__all__ = ["FOLDERS", "read_items"]

FOLDERS = (("u.data", "u.item"), ("ratings.dat", "movies.dat"), ("ratings.csv", "movies.csv"))
"""Ratings and items of MovieLens' folders, by name."""

NONE = ("(no genres listed)", "")
TITLE, GENRES = ("title", "name"), ("genres", "genre", "categories")


def read_items(path: str | PathLike[str]) -> dict[str, dict[Any, Any]]:
    """`title` and `genre`: item id -> its title, and -> the tuple of its genres (None if it has none). Raises DataError
    naming file and line for a line of another number of fields, and for an item that comes twice."""
    file = fspath(path)
    lines = _lines(file)
    number, first = next(lines, (1, ""))
    if not first:
        raise DataError(f"{file} is empty: it has no item.")
    if "::" in first:
        found = _fields(file, "::", 3, number, first, lines)
        return _read(file, ((n, f[0], f[1], f[2].split("|")) for n, f in found))
    if "|" in first and first.count("|") > first.count(","):
        genres = _genres(Path(file))
        found = _fields(file, "|", 5 + len(genres), number, first, lines)
        return _read(file, ((n, f[0], f[1], _flagged(file, n, f[5:], genres)) for n, f in found))
    try:
        header = [plain_name(name) for name in next(csv.reader([first]))]
    except csv.Error as error:
        raise DataError(f"{file}, line {number}: this is no CSV: {error}; mend the line.") from None
    places = [[i for i, name in enumerate(header) if name in usual] for usual in (ITEM, TITLE, GENRES)]
    if any(len(place) != 1 for place in places):
        raise DataError(
            f"{file}, line {number}: a file of items has a header with the columns movieId, title and genres; this is "
            f"{clipped(first.encode())!r}."
        )
    item, title, genre = (place[0] for place in places)
    found = _fields(file, ",", len(header), number + 1, None, lines)
    return _read(file, ((n, f[item], f[title], f[genre].split("|")) for n, f in found))


def _read(file: str, lines: Iterator[tuple[int, str, str, list[str]]]) -> dict[str, dict[Any, Any]]:
    titles: dict[Any, str] = {}
    genres: dict[Any, tuple[str, ...] | None] = {}
    seen: dict[Any, int] = {}
    for number, word, title, labels in lines:
        if not word:
            raise DataError(f"{file}, line {number}: the item is empty; mend the line or leave it out.")
        one = query_name(word.encode())
        if seen.setdefault(one, number) != number:
            raise DataError(
                f"{file}, line {number}: item {clipped(word.encode())!r} stands in line {seen[one]} already; keep one "
                "of the two."
            )
        titles[one] = title
        genres[one] = tuple(dict.fromkeys(label for label in labels if label not in NONE)) or None
    return {"title": titles, "genre": genres}


def _lines(file: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers."""
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


def _fields(
    file: str, separator: str, count: int, number: int, first: str | None, lines: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    def rest() -> Iterator[tuple[int, str]]:
        if first is not None:
            yield number, first
        yield from lines

    for n, line in rest():
        try:
            fields = next(csv.reader([line], strict=True)) if separator == "," else line.split(separator)
        except csv.Error as error:
            raise DataError(f"{file}, line {n}: this is no CSV: {error}; mend the line.") from None
        if len(fields) != count:
            raise DataError(f"{file}, line {n}: {len(fields)} fields, but an item has {count}; mend the line.")
        yield n, [field.strip() for field in fields]


def _flagged(file: str, number: int, flags: list[str], genres: list[str]) -> list[str]:
    wrong = next((flag for flag in flags if flag not in ("0", "1")), None)
    if wrong is not None:
        raise DataError(f"{file}, line {number}: the flag of a genre is {clipped(wrong.encode())!r}, not 0 or 1.")
    return [genre for genre, flag in zip(genres, flags, strict=True) if flag == "1"]


def _genres(file: Path) -> list[str]:
    """The names of the genres, in the order of the flags, from `u.genre` beside `u.item`."""
    for end in ("", ".gz"):
        beside = file.with_name(f"u.genre{end}")
        if beside.is_file():
            return [line.split("|")[0].strip() for _, line in _lines(fspath(beside))]
    raise DataError(f"{file} has flags for genres, whose names u.genre has; put that file beside it.")
