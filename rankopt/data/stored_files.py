"""The files of a folder of stored queries, read without trust: regular files, of the size and kind that is expected.

A FIFO would wait for ever, a device give what it likes; sizes are compared before a byte is read, so nothing that a
file says of itself can claim memory that the file does not fill.

What the manifest of stored queries says, and whether it can be: counts, kinds, ids and names that go together.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankopt.errors import DataError

SUMS = "B2SUMS"
"""Digests of all other files, BLAKE2b with 512 bits, in the format of `b2sum`: `b2sum -c B2SUMS` checks them too."""

WORDS = "biufcSUmM"
"""Kinds of attributes that can be a file of their own: numbers, words and times."""

LINE = re.compile(r"([0-9a-f]{128})  ([A-Za-z0-9_./]+)")
NPY = re.compile(
    rb"\x93NUMPY\x01\x00(?P<size>..)"
    rb"\{'descr': '(?P<kind>[<>|][biufcSUmM]\d{1,9}(\[\w{1,9}\])?)', 'fortran_order': (False|True), "
    rb"'shape': \((?P<count>\d{1,19}),\), \} *\n",
    re.DOTALL,
)
"""The header of a vector as numpy writes it; numpy itself reads it as Python, which a hostile one need not be."""
CHUNK = 1 << 20
HEADER = 4096
"""Bytes that the header of an array may have."""
LARGEST_TEXT = 1 << 32
"""Bytes that a file of text may have."""
LAST_CHARACTER = 0x10FFFF


class StoredFiles:
    """The files at `path`. sums: name → digest, None where an earlier version wrote the folder without.

    Every method raises DataError that names the file. What is read whole is compared with its digest; what is mapped
    is when `compare` is called.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sums: dict[str, str] | None = None
        if os.path.lexists(path / SUMS):
            self.sums = self._listed(self._content(SUMS, CHUNK))

    def size(self, name: str) -> int:
        """Bytes of a file."""
        with self._opened(name) as file:
            return os.fstat(file.fileno()).st_size

    def content(self, name: str, largest: int = LARGEST_TEXT) -> bytes:
        """A file of at most so many bytes, whole."""
        content = self._content(name, largest)
        self._compare(name, blake2b(content).hexdigest())
        return content

    def array(self, name: str, count: int, kinds: str = "", dtype: DTypeLike | None = None) -> NDArray[Any]:
        """A vector of `count` numbers (words, times) from a plain npy file: of this type, or of one of these kinds."""
        size = self.size(name)
        with self._opened(name) as file:
            begin = NPY.match(file.read(HEADER))
        if begin is None or begin.end() != 10 + int.from_bytes(begin["size"], "little"):
            raise self.damaged(name, "it is no npy file of a vector")
        try:
            kind = np.dtype(begin["kind"].decode("ascii"))
        except (TypeError, ValueError, OverflowError) as error:
            raise self.damaged(name, f"its entries are of no type ({error})") from error
        if begin["count"] != b"%d" % count:
            raise self.damaged(name, f"it has {begin['count'].decode('ascii')} entries instead of {count}")
        wanted = kind.kind in kinds and kind.itemsize > 0 if dtype is None else kind == np.dtype(dtype)
        if not wanted:
            needed = "numbers, words or times" if dtype is None else str(np.dtype(dtype))
            raise self.damaged(name, f"its entries are {kind}, not {needed}")
        start = begin.end()
        if size != start + count * kind.itemsize:
            raise self.damaged(name, f"{size} bytes are not {count} entries of {kind}")
        content = self.content(name, size)
        if len(content) != size:
            raise self.damaged(name, "it changes while it is read")
        array: NDArray[Any] = np.frombuffer(content, dtype=kind, offset=start)
        if not (array.flags.aligned and kind.isnative):
            array = array.astype(kind.newbyteorder("="))
        if kind.kind == "U" and array.view(np.uint32).max() > LAST_CHARACTER:
            raise self.damaged(name, "it holds what is no character")
        return array

    def mapped(self, name: str, dtype: DTypeLike, count: int) -> NDArray[Any]:
        """`count` numbers of a bare file, mapped into memory and not read."""
        size, wanted = self.size(name), count * np.dtype(dtype).itemsize
        if size != wanted:
            raise self.damaged(name, f"it has {size} bytes instead of {wanted}")
        return np.memmap(self.path / name, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype=dtype)

    def compare(self, names: Iterable[str]) -> None:
        """Read the files and compare them with their digests, where the folder has any."""
        for name in names if self.sums is not None else ():
            digest = blake2b()
            with self._opened(name) as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
            self._compare(name, digest.hexdigest())

    def check_listed(self, names: Iterable[str]) -> None:
        """Raise DataError unless there are digests of just these files."""
        if self.sums is not None and set(names) != self.sums.keys():
            differing = ", ".join(sorted(set(names) ^ self.sums.keys()))
            raise self.damaged(SUMS, f"it lists other files than the folder has ({differing})")

    def damaged(self, name: str, why: str) -> DataError:
        """The error of a file that cannot be used."""
        return DataError(
            f"{self.path / name} cannot be used because {why}. It was damaged, or not written by `store`: "
            "fetch the folder again, or store its data again."
        )

    def _compare(self, name: str, digest: str) -> None:
        if self.sums is not None and self.sums.get(name) != digest:
            why = "it has no digest in" if name not in self.sums else "its content is not that of its digest in"
            raise self.damaged(name, f"{why} {SUMS}")

    def _content(self, name: str, largest: int) -> bytes:
        with self._opened(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > largest:
                raise self.damaged(name, f"it has {size} bytes, more than {largest}")
            return file.read(size)

    def _opened(self, name: str) -> BinaryIO:
        """The file, open; asked first what it is, for to open a FIFO or a device may wait or do things."""
        try:
            if S_ISREG(os.stat(self.path / name).st_mode):
                return open(self.path / name, "rb")
        except FileNotFoundError:
            raise DataError(
                f"{self.path} holds no stored queries: {name} is missing; write it by `store`, or fetch it again."
            ) from None
        except (OSError, ValueError) as error:
            raise self.damaged(name, f"it cannot be read ({error})") from error
        raise self.damaged(name, "it is no regular file")

    def _listed(self, content: bytes) -> dict[str, str]:
        lines = content.decode("ascii", errors="replace").splitlines()
        found = [LINE.fullmatch(line) for line in lines]
        sums = {line[2]: line[1] for line in found if line is not None}
        if len(sums) != len(lines) or content[-1:] != b"\n":
            raise self.damaged(SUMS, "it is no list of digests")
        return sums


def sums_of(digests: Mapping[str, str]) -> bytes:
    """The text of `B2SUMS`."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode("ascii")


FORMAT, VERSION = "rankopt queries", 1

PLAIN = (str, int, float, bool)
"""Types of the entries of attributes that a manifest can hold, None beside them."""

MOST_FEATURES = 1 << 31
"""Columns of a sparse table cost nothing in a file, and 8 bytes each where weights are learnt."""


@dataclass(frozen=True)
class Manifest:
    """`documents` and `features` are counts, `dtype` the type of the features, `entries` how many a sparse table has,
    else None. attributes: name → values, or None where they are in a file of their own."""

    documents: int
    features: int
    dtype: np.dtype[Any]
    entries: int | None
    graded: bool
    query_ids: tuple[Hashable, ...]
    document_ids: tuple[Hashable, ...] | None
    feature_names: tuple[str, ...] | None
    attributes: dict[str, list[Any] | None]

    @classmethod
    def read(cls, content: bytes) -> Manifest:
        """The manifest of this text; ValueError says what is wrong with it."""
        try:
            said = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"it is not the JSON of `store` ({error})") from error
        if not isinstance(said, dict):
            raise ValueError("it is not the JSON of `store`")
        if said.get("format") != FORMAT or said.get("version") != VERSION:
            told = f"format {str(said.get('format'))[:40]!r}, version {str(said.get('version'))[:40]!r}"
            raise ValueError(f"it is of {told}, and this rankopt reads {FORMAT!r}, version {VERSION}")
        missing = cls.__dataclass_fields__.keys() - said.keys()
        if missing:
            raise ValueError(f"it does not say {', '.join(sorted(missing))}")
        documents = _count(said, "documents", 1)
        features = _count(said, "features", 1, MOST_FEATURES)
        ids = _listed(said, "query_ids", (str, int))
        if ids is None or not 1 <= len(set(ids)) == len(ids) <= documents:
            raise ValueError(f"query_ids are no distinct names of queries of {documents} documents")
        if not isinstance(said["graded"], bool):
            raise ValueError("graded is neither true nor false")
        return cls(
            documents=documents,
            features=features,
            dtype=_dtype(said["dtype"]),
            entries=None if said["entries"] is None else _count(said, "entries", 0, documents * features),
            graded=said["graded"],
            query_ids=ids,
            document_ids=_listed(said, "document_ids", (str, int, type(None)), documents),
            feature_names=_listed(said, "feature_names", (str,), features),
            attributes=_attributes(said["attributes"], documents),
        )


def _count(said: dict[str, Any], name: str, least: int, most: int | None = None) -> int:
    value = said[name]
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"{name} = {str(value)[:40]} is no count from {least}{'' if most is None else f' to {most}'}")
    return value


def _dtype(name: Any) -> np.dtype[Any]:
    """The type of the features: looked up, for a type that is made from a name may be pointers."""
    known = {np.dtype(kind).str: np.dtype(kind) for kind in (np.float32, np.float64)}
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"dtype is {str(name)[:40]!r}; features are {' or '.join(known)} on this machine")
    return known[name]


def _listed(said: dict[str, Any], name: str, kinds: tuple[type, ...], length: int | None = None) -> Any:
    """A tuple of values of these types, or None."""
    values = said[name]
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(value, kinds) for value in values):
        raise ValueError(f"{name} is no list of words or whole numbers")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries instead of {length}")
    return tuple(values)


def _attributes(said: Any, documents: int) -> dict[str, list[Any] | None]:
    pairs: list[Any] = said if isinstance(said, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError("attributes are no pairs of a name and values")
    found: dict[str, list[Any] | None] = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two attributes have one name")
    for name, values in found.items():
        if values is None:
            continue
        if not isinstance(values, list) or len(values) != documents:
            raise ValueError(f"the attribute {name[:40]!r} has no value for each of {documents} documents")
        if not all(
            map(_is_plain, (entry for value in values for entry in (value if type(value) is list else [value])))
        ):
            raise ValueError(f"the attribute {name[:40]!r} holds more than words, numbers and lists of them")
    return found


def _is_plain(entry: Any) -> bool:
    return entry is None or isinstance(entry, PLAIN)
