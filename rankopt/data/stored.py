"""Queries stored as a folder of plain arrays, which is mapped into memory and not read: for data of any size.

queries.json       format, version, counts, the type of the features, the ids and names
features           (N, d) numbers in a row; of sparse data the values, with `columns` and `bounds` beside them
offsets.npy, relevance.npy, row_order.npy, attributes/0.npy ...
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
from rankopt.data.stored_parts import Growing
from rankopt.errors import DataError

__all__ = ["open_stored", "store"]

FORMAT, VERSION = "rankopt queries", 1
MANIFEST = "queries.json"


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
        with Growing(unfinished) as growing:
            for part in (parts,) if isinstance(parts, Queries) else parts:
                growing.add(part)
            manifest = {"format": FORMAT, "version": VERSION, **growing.finished()}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False), encoding="utf-8")
        os.rename(unfinished, target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}; choose another folder, or make room.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def open_stored(folder: str | PathLike[str]) -> Queries:
    """The queries that `store` wrote. Features stay in their file and are mapped into memory, read-only.

    Raises DataError where the folder is not what `store` writes.
    """
    path = Path(folder)
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise ValueError(f"format {manifest['format']!r}, version {manifest['version']!r}")
        return _opened(path, manifest)
    except FileNotFoundError as error:
        raise DataError(f"{path} holds no stored queries: {error.filename} is missing; write it by `store`.") from None
    except (ValueError, KeyError, TypeError, OSError, EOFError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be opened: {error}; it is damaged, or not written by `store`.") from error


def _opened(path: Path, manifest: dict[str, Any]) -> Queries:
    documents, features = int(manifest["documents"]), int(manifest["features"])
    entries, kind = manifest["entries"], np.dtype(manifest["dtype"])
    table: Any
    if entries is None:
        table = _mapped(path / "features", kind, documents * features).reshape(documents, features)
    else:
        from scipy.sparse import csr_array

        values = _mapped(path / "features", kind, entries)
        columns = _mapped(path / "columns", np.dtype(np.int64), entries)
        bounds = _mapped(path / "bounds", np.dtype(np.int64), documents + 1)
        table = csr_array((values, columns, bounds), shape=(documents, features), copy=False)
    names, listed = manifest["feature_names"], manifest["document_ids"]
    return Queries(
        features=table,
        offsets=_array(path / "offsets.npy"),
        relevance=_array(path / "relevance.npy") if manifest["graded"] else None,
        query_ids=tuple(manifest["query_ids"]),
        document_ids=None if listed is None else tuple(listed),
        attributes={name: _column(path, number, held) for number, (name, held) in enumerate(manifest["attributes"])},
        feature_names=None if names is None else tuple(names),
        row_order=_array(path / "row_order.npy"),
    )


def _mapped(file: Path, kind: np.dtype[Any], count: int) -> NDArray[Any]:
    size = file.stat().st_size
    if size != count * kind.itemsize:
        raise ValueError(f"{file.name} has {size} bytes instead of {count * kind.itemsize}")
    return np.memmap(file, dtype=kind, mode="r", shape=(count,)) if count else np.zeros(0, dtype=kind)


def _array(file: Path) -> NDArray[Any]:
    loaded: NDArray[Any] = np.load(file, allow_pickle=False)
    return loaded


def _column(path: Path, number: int, held: list[Any] | None) -> NDArray[Any]:
    """An attribute: an array of its own, or a list of words and lists of words in the manifest."""
    if held is None:
        return _array(path / "attributes" / f"{number}.npy")
    column = np.empty(len(held), dtype=object)
    column[:] = [tuple(value) if isinstance(value, list) else value for value in held]
    return column
