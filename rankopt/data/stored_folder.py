"""Queries stored as a folder of plain arrays, which is mapped into memory and not read: for data of any size.

queries.json       format, version, counts, the type of the features, the ids and names
features           (N, d) numbers in a row; of sparse data the values, with `columns` and `bounds` beside them
offsets.npy, relevance.npy, row_order.npy, attributes/0.npy ...
B2SUMS             the digests of all these, as `b2sum` writes and checks them

What is checked, and when:

* on opening: that all are regular files of the right size, kinds and shapes; that offsets and bounds rise, that columns
  are features and `row_order` is a permutation; the digests of everything but `features`, `columns` and `bounds`, and
  of these too up to 64 MiB together, which takes a tenth of a second.
* by `verify_stored` (`rankopt convert --verify`): the digests of all files, which are read whole for it.
* never: a file that changes while it is mapped. Do not write into a folder that is in use.

Folders of earlier versions have no digests: their features are read once on opening if they have up to 64 MiB, to see
that they are finite, and `verify_stored` says that there is nothing to compare with.

A folder of queries that grows part by part.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from io import BytesIO
from os import PathLike
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.stored_files import FORMAT, PLAIN, SUMS, VERSION, WORDS, Manifest, StoredFiles, sums_of
from rankopt.data.validation import is_sparse
from rankopt.errors import DataError


class StoreWriter:
    """The files of a folder while queries are added; features are written at once, what is small is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first: Queries | None = None
        self.documents, self.entries = 0, 0
        self.queries: dict[Hashable, None] = {}
        self.ids: list[Any] = []
        self.named = False
        self.small: dict[str, list[NDArray[Any]]] = {"offsets": [], "relevance": [], "row_order": []}
        self.columns: dict[str, list[NDArray[Any]]] = {}
        self.files: dict[str, IO[bytes]] = {}
        self.digests: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            file.close()

    def add(self, part: Queries) -> None:
        """Write the features of further queries and keep the rest."""
        first = self.first = self.first or part
        self._check(part, first)
        part.check_features()
        for query in part.query_ids:
            if query in self.queries:
                raise DataError(f"Query {query!r} is in two parts; rename one, or bring its documents together.")
            if not isinstance(query, str | int):
                raise DataError(f"Query id {query!r} cannot be stored because it is no number or word; rename it.")
            self.queries[query] = None
        if is_sparse(part.features):
            self._write("features", part.features.data)
            self._write("columns", part.features.indices.astype(np.int64))
            starts = part.features.indptr.astype(np.int64) + self.entries
            self._write("bounds", starts if part is first else starts[1:])
            self.entries += int(part.features.nnz)
        else:
            self._write("features", part.features)
        self.small["offsets"].append(part.offsets[1:] + self.documents)
        self.small["row_order"].append(np.argsort(np.argsort(part.row_order)) + self.documents)
        if part.relevance is not None:
            self.small["relevance"].append(part.relevance)
        for name, values in part.attributes.items():
            self.columns.setdefault(name, []).append(values)
        self.named = self.named or part.document_ids is not None
        self.ids += part.document_ids if part.document_ids is not None else [None] * part.n_documents
        self.documents += part.n_documents

    def finished(self) -> dict[str, Any]:
        """What the manifest says of the folder, once the small arrays are written."""
        if self.first is None:
            raise DataError("There are no queries to store; give one part at least.")
        self._save("offsets.npy", np.concatenate([[0], *self.small["offsets"]]))
        self._save("row_order.npy", np.concatenate(self.small["row_order"]))
        if self.small["relevance"]:
            self._save("relevance.npy", np.concatenate(self.small["relevance"]))
        wrong = next((name for name in self.ids if self.named and not isinstance(name, str | int | None)), None)
        if wrong is not None:
            raise DataError(f"Document id {wrong!r} cannot be stored because it is no number or word; rename it.")
        return {
            "documents": self.documents,
            "features": self.first.n_features,
            "dtype": self.first.features.dtype.str,
            "entries": self.entries if is_sparse(self.first.features) else None,
            "graded": bool(self.small["relevance"]),
            "query_ids": list(self.queries),
            "document_ids": self.ids if self.named else None,
            "feature_names": self.first.feature_names,
            "attributes": [(name, self._column(n, name)) for n, name in enumerate(self.columns)],
        }

    def _column(self, number: int, name: str) -> list[Any] | None:
        """Write an attribute to a file of its own, or return it as a list where it is no plain array."""
        values = np.concatenate(self.columns[name])
        if values.dtype.kind in WORDS and values.dtype.itemsize:
            (self.folder / "attributes").mkdir(exist_ok=True)
            self._save(f"attributes/{number}.npy", values)
            return None
        if values.dtype != object:
            raise DataError(f"Attribute {name!r} is of {values.dtype}, no numbers or words; it cannot be stored.")
        listed = [list(v) if isinstance(v, tuple | list | set | frozenset) else v for v in values.tolist()]
        flat = (entry for value in listed for entry in (value if isinstance(value, list) else [value]))
        wrong = next((entry for entry in flat if entry is not None and not isinstance(entry, PLAIN)), None)
        if wrong is not None:
            raise DataError(f"Attribute {name!r} holds {wrong!r}, which is no number or word; it cannot be stored.")
        return listed

    def write(self, name: str, content: bytes) -> None:
        """Write a file and keep its digest."""
        (self.folder / name).write_bytes(content)
        self.digests[name] = blake2b(content)

    def write_sums(self) -> None:
        """Write the digests of all that was written: the last thing to do."""
        (self.folder / SUMS).write_bytes(sums_of({name: known.hexdigest() for name, known in self.digests.items()}))

    def _save(self, name: str, values: NDArray[Any]) -> None:
        buffer = BytesIO()
        np.save(buffer, values, allow_pickle=False)
        self.write(name, buffer.getvalue())

    def _write(self, name: str, values: NDArray[Any]) -> None:
        """Write further numbers to a file that grows."""
        if name not in self.files:
            self.files[name] = open(self.folder / name, "wb")  # noqa: SIM115 (closed at the end)
            self.digests[name] = blake2b()
        plain = np.ascontiguousarray(values)
        plain.tofile(self.files[name])
        self.digests[name].update(plain.data)

    def _check(self, part: Queries, first: Queries) -> None:
        """Raise DataError where a part does not go with the first."""
        for what, own, other in (
            ("features", part.n_features, first.n_features),
            ("the type of its features", part.features.dtype, first.features.dtype),
            ("being sparse", is_sparse(part.features), is_sparse(first.features)),
            ("having grades", part.relevance is not None, first.relevance is not None),
            ("names of attributes", sorted(part.attributes), sorted(first.attributes)),
        ):
            if own != other:
                raise DataError(f"A part differs from the first in {what} ({own}, not {other}); make them alike.")
        if part.feature_names is not None and part.feature_names != first.feature_names:
            raise DataError("A part names its features differently from the first; bring them into one naming.")


MANIFEST = "queries.json"

CHEAP = 1 << 26
"""Bytes of features that are read on opening, to compare them with their digest."""


def store(parts: Queries | Iterable[Queries], folder: str | PathLike[str]) -> None:
    """Write queries to a new folder, part after part, so that no more than one part is in memory at a time.

    All parts have the same features, of one type, and either all have grades or none. Raises DataError where they do
    not, where a query is in two parts, and for ids and attributes that are no numbers or words. The folder appears when
    everything is written.
    """
    target = Path(folder)
    if target.exists():
        raise DataError(f"{target} cannot be written because it exists; remove it, or choose another folder.")
    unfinished = target.with_name(f".{target.name}.{token_hex(4)}.part")
    unfinished.mkdir(parents=True)
    try:
        with StoreWriter(unfinished) as growing:
            for part in (parts,) if isinstance(parts, Queries) else parts:
                growing.add(part)
            manifest = {"format": FORMAT, "version": VERSION, **growing.finished()}
            growing.write(MANIFEST, _text(manifest))
            growing.write_sums()
        os.rename(unfinished, target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}; choose another folder, or make room.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _text(manifest: dict[str, Any]) -> bytes:
    try:
        return json.dumps(manifest, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise DataError(f"An id or a name cannot be written as text ({error}); rename it.") from error


def open_stored(folder: str | PathLike[str]) -> Queries:
    """The queries that `store` wrote. Features stay in their file and are mapped into memory, read-only; of sparse ones
    the values do, and their columns are kept as numbers of 32 bits where they fit.

    Raises DataError, which names the file, where the folder is not what `store` writes. The module says what is checked
    here and what by `verify_stored`.
    """
    return _opened(StoredFiles(Path(folder)))


def verify_stored(folder: str | PathLike[str]) -> tuple[str, ...]:
    """Read all files of the folder and compare them with their digests; which files these are.

    Raises DataError, which names the file, where one differs or the folder cannot be opened, and where an earlier
    version wrote it without digests.
    """
    files = StoredFiles(Path(folder))
    _opened(files)
    if files.sums is None:
        raise DataError(
            f"{files.path} opens, but cannot be verified because it has no digests ({SUMS}): an earlier version wrote "
            "it. Store its data again."
        )
    files.compare(sorted(files.sums))
    return tuple(sorted(files.sums))


def _opened(files: StoredFiles) -> Queries:
    said = _manifest(files)
    mapped = ["features"] if said.entries is None else ["features", "columns", "bounds"]
    small = ["offsets.npy", "row_order.npy", *(["relevance.npy"] if said.graded else [])]
    columns = {name: f"attributes/{n}.npy" for n, (name, held) in enumerate(said.attributes.items()) if held is None}
    files.check_listed([MANIFEST, *mapped, *small, *columns.values()])
    offsets, rows, relevance = _vectors(files, said)
    table = _table(files, said)
    cheap = sum(map(files.size, mapped)) <= CHEAP
    if cheap:
        files.compare(mapped)
    attributes = {
        name: files.array(columns[name], said.documents, WORDS) if held is None else _column(held)
        for name, held in said.attributes.items()
    }
    try:
        return Queries(
            features=table,
            offsets=offsets,
            relevance=relevance,
            query_ids=said.query_ids,
            document_ids=said.document_ids,
            attributes=attributes,
            feature_names=said.feature_names,
            row_order=rows,
            unread=not cheap,
        )
    except DataError as error:
        raise files.damaged("features", f"of what it holds: {str(error).rstrip('.')}") from error


def _manifest(files: StoredFiles) -> Manifest:
    content = files.content(MANIFEST)
    try:
        return Manifest.read(content)
    except ValueError as error:
        raise files.damaged(MANIFEST, str(error)) from error


def _vectors(files: StoredFiles, said: Manifest) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Offsets, the order of the rows and the grades, if there are any."""
    offsets = files.array("offsets.npy", len(said.query_ids) + 1, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != said.documents or (offsets[1:] <= offsets[:-1]).any():
        raise files.damaged("offsets.npy", f"its entries do not rise from 0 to {said.documents} documents")
    rows = files.array("row_order.npy", said.documents, dtype=np.int64)
    if not _is_permutation(rows):
        raise files.damaged("row_order.npy", f"it does not name each of {said.documents} rows once")
    if not said.graded:
        return offsets, rows, None
    relevance = files.array("relevance.npy", said.documents, dtype=np.float64)
    if not ((relevance >= 0) & (relevance < np.inf)).all():
        raise files.damaged("relevance.npy", "a grade in it is not finite and >= 0")
    return offsets, rows, relevance


def _table(files: StoredFiles, said: Manifest) -> Any:
    """The features, mapped; of a sparse table the columns and bounds are read, to see that they are such."""
    if said.entries is None:
        return files.mapped("features", said.dtype, said.documents * said.features).reshape(said.documents, -1)
    from scipy.sparse import csr_array

    values = files.mapped("features", said.dtype, said.entries)
    columns = files.mapped("columns", np.int64, said.entries)
    bounds = files.mapped("bounds", np.int64, said.documents + 1)
    if bounds[0] != 0 or bounds[-1] != said.entries or (bounds[1:] < bounds[:-1]).any():
        raise files.damaged("bounds", f"its entries do not rise from 0 to {said.entries}")
    if said.entries and not (columns.min() >= 0 and columns.max() < said.features):
        raise files.damaged("columns", f"it names others than {said.features} features")
    table = csr_array((values, columns, bounds), shape=(said.documents, said.features), copy=False)
    if not table.has_canonical_format:
        raise files.damaged("columns", "its entries do not rise within each row")
    return table


def _is_permutation(rows: NDArray[Any]) -> bool:
    if rows.min() < 0 or rows.max() >= rows.size:
        return False
    seen = np.zeros(rows.size, dtype=np.bool_)
    seen[rows] = True
    return bool(seen.all())


def _column(held: list[Any]) -> NDArray[Any]:
    """An attribute that is a list of words and lists of words in the manifest."""
    column = np.empty(len(held), dtype=object)
    column[:] = [tuple(value) if isinstance(value, list) else value for value in held]
    return column
