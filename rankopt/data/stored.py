"""Queries stored as a folder of plain arrays, which is mapped into memory and not read: for data of any size.

queries.json       format, version, counts, the type of the features, the ids and names
features           (N, d) numbers in a row; of sparse data the values, with `columns` and `bounds` beside them
offsets.npy, relevance.npy, row_order.npy, attributes/0.npy ...
B2SUMS             the digests of all these, as `b2sum` writes and checks them

What is checked, and when:

* on opening: that all are regular files of the right size, kinds and shapes; that offsets and bounds rise, that columns
  are features and `row_order` is a permutation; the digests of everything but `features`, `columns` and `bounds`, and
  of these too up to 64 MiB together, which takes a tenth of a second.
* by `verify_stored` (`rankopt store --verify`): the digests of all files, which are read whole for it.
* never: a file that changes while it is mapped. Do not write into a folder that is in use.

Folders of earlier versions have no digests: their features are read once on opening if they have up to 64 MiB, to see
that they are finite, and `verify_stored` says that there is nothing to compare with.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.stored_files import SUMS, WORDS, StoredFiles
from rankopt.data.stored_manifest import FORMAT, VERSION, Manifest
from rankopt.data.stored_parts import StoreWriter
from rankopt.errors import DataError

__all__ = ["open_stored", "store", "verify_stored"]

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
