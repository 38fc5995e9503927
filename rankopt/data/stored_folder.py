"""Queries stored as a folder of `.npy` arrays and a manifest, memory-mapped when opened.

manifest.json   its own checksum, format, version, ids, names, attributes of mixed types, checksums of the arrays
features.npy    (N, d); for sparse data the stored values (nnz,), with columns.npy (nnz,) and bounds.npy (N + 1,)
offsets.npy, rows.npy, relevance.npy, attribute0.npy, ...

Opening checks sizes, types, shapes, index ranges, and the checksum of everything except features of more than 64 MiB.
`verify_queries` (`rankopt convert --verify`) checks those too. Do not write into a folder that is in use.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from secrets import token_hex
from types import NoneType
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

from formulations.arrays import as_path, check_type, is_sparse
from formulations.errors import SerializationError
from formulations.serialization import FileFormat, map_array
from rankopt.data.queries import Queries
from rankopt.errors import DataError

STORE = FileFormat("rankopt queries", version=2, has_nan=True, json_limit=1 << 32)
MANIFEST = STORE.manifest
CHECKSUM = re.compile(rb'\{"checksum": "([0-9a-f]{128})", ')
"""The beginning of a manifest: BLAKE2b of the following bytes."""

CHEAP = 1 << 26  # maximum bytes of features whose checksum is compared on opening
MOST_FEATURES = 1 << 31
LAST_CHARACTER = 0x10FFFF
WORDS = "biufcSUmM"
"""Dtype kinds of attributes stored as arrays: numbers, strings and times. Others are listed in the manifest."""
PLAIN = (str, int, float, bool, NoneType)  # types of the entries of a listed attribute


def checksum(array: NDArray[Any]) -> str:
    """BLAKE2b of the bytes of a contiguous array, its type and its shape."""
    return _finish(blake2b(array.reshape(-1).view(np.uint8).data), array.dtype, array.shape)


def _finish(digest: blake2b, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    digest.update(f"{dtype.str} {shape}".encode())
    return digest.hexdigest()


class GrowingArray:
    """An `.npy` file written in parts. Its header, of constant length, is rewritten with the number of rows."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
        self.dtype, self.row, self.rows, self.digest = dtype, row, 0, blake2b()
        self.file = open(path, "wb")  # noqa: SIM115 (closed by the writer)
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        plain = np.ascontiguousarray(values, dtype=self.dtype).reshape(-1).view(np.uint8).data
        self.file.write(plain)
        self.digest.update(plain)
        self.rows += len(values)

    def finish(self) -> str:
        """Write the final header and return the checksum."""
        self.file.seek(0)
        self._write_header()
        return _finish(self.digest, self.dtype, (self.rows, *self.row))

    def _write_header(self) -> None:
        header = {"descr": dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.rows, *self.row)}
        write_array_header_1_0(self.file, header)


class StoreWriter:
    """Writer of a folder: arrays are written as queries are added, ids and attributes at the end."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self.folder, self.files = folder, files
        self.first: Queries | None = None
        self.documents, self.entries = 0, 0
        self.queries: dict[Hashable, None] = {}
        self.ids: list[Any] = []
        self.named = False
        self.attributes: dict[str, list[NDArray[Any]]] = {}
        self.arrays: dict[str, GrowingArray] = {}

    def add(self, part: Queries) -> None:
        """Write the arrays of further queries."""
        if self.first is None:
            self.first = part
            self._append("offsets.npy", part.offsets[:1])
            if is_sparse(part.features):
                self._append("bounds.npy", part.features.indptr[:1].astype(np.int64))
        _check_alike(part, self.first)
        part.check_features()
        for query in part.query_ids:
            if query in self.queries:
                raise DataError(f"Query {query!r} is in two parts; rename one, or bring its documents together.")
            if not isinstance(query, str | int):
                raise DataError(
                    f"Query id {query!r} cannot be stored because it is neither a number nor a string; rename it."
                )
            self.queries[query] = None
        if is_sparse(part.features):
            self._append("features.npy", part.features.data)
            self._append("columns.npy", part.features.indices.astype(np.int64))
            self._append("bounds.npy", part.features.indptr[1:].astype(np.int64) + self.entries)
            self.entries += int(part.features.nnz)
        else:
            self._append("features.npy", part.features)
        self._append("offsets.npy", part.offsets[1:] + self.documents)
        self._append("rows.npy", part.rows + self.documents)
        if part.relevance is not None:
            self._append("relevance.npy", part.relevance)
        for name, values in part.attributes.items():
            self.attributes.setdefault(name, []).append(values)
        self.named = self.named or part.document_ids is not None
        self.ids += part.document_ids if part.document_ids is not None else [None] * part.n_documents
        self.documents += part.n_documents

    def finish(self) -> None:
        """Write attributes, headers and the manifest."""
        if self.first is None:
            raise DataError("There are no queries to store; pass at least one part.")
        wrong = next((name for name in self.ids if self.named and not isinstance(name, str | int | None)), None)
        if wrong is not None:
            raise DataError(
                f"Document id {wrong!r} cannot be stored because it is neither a number nor a string; rename it."
            )
        manifest = {
            "format": STORE.name,
            "version": STORE.version,
            "features": self.first.n_features,
            "sparse": is_sparse(self.first.features),
            "graded": self.first.relevance is not None,
            "query_ids": list(self.queries),
            "document_ids": self.ids if self.named else None,
            "feature_names": self.first.feature_names,
            "attributes": [(name, self._attribute(n, name)) for n, name in enumerate(self.attributes)],
            "checksums": {name: array.finish() for name, array in self.arrays.items()},
        }
        try:
            text = json.dumps(manifest, ensure_ascii=False).encode("utf-8").removeprefix(b"{")
        except ValueError as error:
            raise DataError(f"An id or a name cannot be written as text ({error}); rename it.") from error
        (self.folder / MANIFEST).write_bytes(b'{"checksum": "%s", ' % blake2b(text).hexdigest().encode() + text)

    def _append(self, name: str, values: NDArray[Any]) -> None:
        if name not in self.arrays:
            self.arrays[name] = GrowingArray(self.folder / name, values.dtype, values.shape[1:])
            self.files.enter_context(self.arrays[name].file)
        self.arrays[name].append(values)

    def _attribute(self, number: int, name: str) -> list[Any] | None:
        """Write an attribute to an array, or return it as a list if it has mixed types."""
        values = np.concatenate(self.attributes[name])
        if values.dtype.kind in WORDS and values.dtype.itemsize:
            self._append(f"attribute{number}.npy", values.astype(values.dtype.newbyteorder("=")))
            return None
        if values.dtype != object:
            raise DataError(
                f"Attribute {name!r} has type {values.dtype}, which cannot be stored; use numbers or strings."
            )
        listed = [list(v) if isinstance(v, tuple | list | set | frozenset) else v for v in values.tolist()]
        wrong = next((entry for entry in _flat(listed) if not isinstance(entry, PLAIN)), None)
        if wrong is not None:
            raise DataError(f"Attribute {name!r} holds {wrong!r}, which cannot be stored; use numbers or strings.")
        return listed


def _flat(listed: list[Any]) -> Iterable[Any]:
    return (entry for value in listed for entry in (value if isinstance(value, list) else [value]))


def _check_alike(part: Queries, first: Queries) -> None:
    for what, own, other in (
        ("features", part.n_features, first.n_features),
        ("the type of its features", part.features.dtype, first.features.dtype),
        ("being sparse", is_sparse(part.features), is_sparse(first.features)),
        ("having grades", part.relevance is not None, first.relevance is not None),
        ("names of attributes", sorted(part.attributes), sorted(first.attributes)),
    ):
        if own != other:
            raise DataError(f"A part differs from the first in {what} ({own}, not {other}); make them equal.")
    if part.feature_names is not None and part.feature_names != first.feature_names:
        raise DataError("A part names its features differently from the first; use the same names in the same order.")


def save_queries(parts: Queries | Iterable[Queries], folder: str | PathLike[str]) -> None:
    """Write queries to a new folder, one part in memory at a time.

    All parts need the same features of one type, and grades in all or none. Raises DataError otherwise, for a query in
    two parts, and for ids and attributes that are neither numbers nor strings. The folder appears when it is complete.
    """
    target = Path(as_path(folder, DataError, "folder"))
    if not isinstance(parts, Queries | Iterable) or is_sparse(parts) or getattr(parts, "ndim", 1) == 0:
        raise DataError(f"parts must be Queries, or a sequence of them; got a {type(parts).__name__}.")
    if target.exists():
        raise DataError(f"{target} cannot be written because it exists; remove it, or choose another folder.")
    unfinished = target.with_name(f".{target.name}.{token_hex(4)}.part")
    unfinished.mkdir(parents=True)
    try:
        with ExitStack() as files:
            writer = StoreWriter(unfinished, files)
            for part in (parts,) if isinstance(parts, Queries) else parts:
                check_type("a part", part, Queries, error=DataError)
                if part.has_gains:
                    raise DataError("gains are estimates and are not stored; store the grades, or the log of clicks.")
                writer.add(part)
            writer.finish()
        os.rename(unfinished, target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}; choose another folder, or free disk space.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def open_queries(folder: str | PathLike[str]) -> Queries:
    """Open queries written by `save_queries`. Features are memory-mapped read-only; for sparse features the values are,
    and their columns are read as 32-bit integers if these suffice.

    Raises DataError naming the file if the folder is not valid.
    """
    return StoredFolder(Path(as_path(folder, DataError, "folder"))).queries(CHEAP)


def verify_queries(folder: str | PathLike[str]) -> tuple[str, ...]:
    """Open the folder, compare all files with their checksums, and return their names.

    Raises DataError naming the file if one differs or the folder cannot be opened.
    """
    stored = StoredFolder(Path(as_path(folder, DataError, "folder")))
    stored.queries(np.inf)
    return (MANIFEST, *sorted(stored.checksums))


class StoredFolder:
    """Reader of a stored folder. Every method raises DataError naming the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = self._read_manifest()
        self.checksums: dict[str, str] = self.manifest["checksums"]

    def queries(self, cheap: float) -> Queries:
        """The stored queries; features of up to `cheap` bytes are checked against their checksums."""
        manifest = self.manifest
        offsets = self._small("offsets.npy", np.int64, len(manifest["query_ids"]) + 1)
        if offsets[0] != 0 or (offsets[1:] <= offsets[:-1]).any():
            raise self._damaged("offsets.npy", "its entries do not rise from 0")
        n = int(offsets[-1])
        rows = self._small("rows.npy", np.int64, n)
        if rows.min() < 0 or rows.max() >= n or (np.bincount(rows, minlength=n) != 1).any():
            raise self._damaged("rows.npy", f"it does not name each of {n} rows once")
        large, table = self._features(n)
        is_cheap = sum(array.nbytes for array in large.values()) <= cheap
        for name, array in large.items() if is_cheap else ():
            self._compare(name, array)
        attributes = {
            name: self._small(f"attribute{number}.npy", None, n) if listed is None else _to_column(listed)
            for number, (name, listed) in enumerate(manifest["attributes"])
        }
        relevance = self._small("relevance.npy", np.float64, n) if manifest["graded"] else None
        try:
            return Queries(
                features=table,
                offsets=offsets,
                relevance=relevance,
                query_ids=tuple(manifest["query_ids"]),
                document_ids=manifest["document_ids"],
                attributes=attributes,
                feature_names=manifest["feature_names"],
                rows=rows,
                lazy=not is_cheap,
            )
        except DataError as error:
            raise self._damaged("", f"of its content: {str(error).rstrip('.')}") from error

    def _features(self, n: int) -> tuple[dict[str, NDArray[Any]], Any]:
        """The mapped arrays by name, and the feature table."""
        d, values = self.manifest["features"], self._mapped("features.npy")
        if values.dtype not in (np.float32, np.float64):
            raise self._damaged("features.npy", f"its entries are {values.dtype}, not float64 or float32")
        if not self.manifest["sparse"]:
            self._check_shape("features.npy", values, (n, d))
            return {"features.npy": values}, values
        from scipy.sparse import csr_array

        bounds, columns = self._mapped("bounds.npy", np.int64), self._mapped("columns.npy", np.int64)
        self._check_shape("bounds.npy", bounds, (n + 1,))
        self._check_shape("columns.npy", columns, values.shape[:1])
        self._check_shape("features.npy", values, columns.shape)
        if bounds[0] != 0 or bounds[-1] != values.size or (bounds[1:] < bounds[:-1]).any():
            raise self._damaged("bounds.npy", f"its entries do not rise from 0 to {values.size}")
        if values.size and not (columns.min() >= 0 and columns.max() < d):
            raise self._damaged("columns.npy", f"it names others than {d} features")
        table = csr_array((values, columns, bounds), shape=(n, d), copy=False)
        if not table.has_canonical_format:
            raise self._damaged("columns.npy", "its entries do not rise within each row")
        return {"features.npy": values, "columns.npy": columns, "bounds.npy": bounds}, table

    def _small(self, name: str, dtype: type[np.generic] | None, n: int) -> NDArray[Any]:
        """Read a vector (n,) and compare its checksum; dtype None: any kind of an attribute."""
        mapped = self._mapped(name, dtype)
        self._check_shape(name, mapped, (n,))
        self._compare(name, mapped)
        array = np.array(mapped, subok=False)
        if array.dtype.kind == "U" and array.view(np.uint32).max() > LAST_CHARACTER:
            raise self._damaged(name, "it contains an invalid character")
        return array

    def _mapped(self, name: str, dtype: type[np.generic] | None = None) -> NDArray[Any]:
        try:
            array = map_array(self._regular(name), WORDS)
        except SerializationError as error:
            raise self._damaged(name, str(error)) from error
        wanted = array.dtype.newbyteorder("=") if dtype is None else np.dtype(dtype)
        if array.dtype != wanted:
            raise self._damaged(name, f"its entries are {array.dtype}, not {wanted}")
        return array

    def _check_shape(self, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
        if array.shape != shape:
            raise self._damaged(name, f"its shape is {array.shape}, not {shape}")

    def _compare(self, name: str, array: NDArray[Any]) -> None:
        if self.checksums.get(name) != checksum(array):
            raise self._damaged(name, f"its checksum differs from {MANIFEST}")

    def _regular(self, name: str) -> Path:
        file = self.path / name
        if not os.path.lexists(file):
            raise DataError(
                f"{self.path} holds no stored queries ({name} is missing), nor models; write it by `save_queries`, or "
                "fetch it again."
            )
        if not file.is_file():
            raise self._damaged(name, "it is no regular file")
        return file

    def _damaged(self, name: str, why: str) -> DataError:
        return DataError(
            f"{self.path / name} cannot be used because {why}. It was damaged, or not written by `save_queries`: "
            "fetch the folder again, or store its data again."
        )

    def _read_manifest(self) -> dict[str, Any]:
        file = self._regular(MANIFEST)
        try:
            if file.stat().st_size > STORE.json_limit:
                raise ValueError(f"it has more than {STORE.json_limit} bytes")
            content = file.read_bytes()
            begin = CHECKSUM.match(content)
            if begin is None or blake2b(content[begin.end() :]).hexdigest() != begin[1].decode():
                raise ValueError("its content does not match its checksum")
            manifest = STORE.parse(content)
            _check_manifest(manifest)
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            raise self._damaged(MANIFEST, str(error)[:300] or "it is too deep") from error
        return manifest


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Raise ValueError for fields that are missing or of other types than `save_queries` writes."""
    checks: dict[str, Callable[[Any], bool]] = {
        "features": lambda v: type(v) is int and 1 <= v <= MOST_FEATURES,
        "sparse": lambda v: isinstance(v, bool),
        "graded": lambda v: isinstance(v, bool),
        "query_ids": lambda v: _is_list(v, (str, int)) and len(set(v)) == len(v) > 0,
        "document_ids": lambda v: v is None or _is_list(v, (str, int, NoneType)),
        "feature_names": lambda v: v is None or _is_list(v, (str,)),
        "attributes": lambda v: isinstance(v, list) and all(map(_is_attribute, v)) and len(dict(v)) == len(v),
        "checksums": lambda v: isinstance(v, dict),
    }
    for name, is_valid in checks.items():
        if name not in manifest or not is_valid(manifest[name]):
            raise ValueError(f"its field {name!r} is missing or cannot be {manifest.get(name)!r:.80}")


def _is_list(values: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kinds) for value in values)


def _is_attribute(pair: Any) -> bool:
    """Whether it is a name and None, or a name and a list of plain values and lists of them."""
    if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
        return False
    return pair[1] is None or (isinstance(pair[1], list) and all(isinstance(one, PLAIN) for one in _flat(pair[1])))


def _to_column(listed: list[Any]) -> NDArray[Any]:
    values = (tuple(value) if isinstance(value, list) else value for value in listed)
    return np.fromiter(values, dtype=object, count=len(listed))
