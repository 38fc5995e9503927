"""Shards as files, written once and loaded where they are used: features are mapped into memory, never copied there."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.validation import is_sparse
from rankopt.errors import OptionError
from rankopt.risk.shard import Shard


@dataclass(frozen=True)
class Mapped:
    """A C-contiguous array in a file, from byte `offset` on."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    def opened(self) -> NDArray[Any]:
        if 0 in self.shape:
            return np.zeros(self.shape, dtype=self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", self.offset, self.shape))


@dataclass(frozen=True)
class MappedTable:
    """Features in files: one array, or values, columns and bounds of rows of a CSR table."""

    parts: tuple[Mapped, ...]
    shape: tuple[int, int]

    def opened(self) -> Any:
        if len(self.parts) == 1:
            return self.parts[0].opened()
        from scipy.sparse import csr_array

        return csr_array(tuple(part.opened() for part in self.parts), shape=self.shape, copy=False)


@dataclass(frozen=True)
class StoredShard:
    """A shard in a file. Sent elsewhere it is no more than the file's name; the shard is loaded when it is first used.

    Whoever can write to the file decides what is run where it is loaded: it belongs in a folder of one's own.
    """

    path: str

    @cached_property
    def shard(self) -> Shard:
        with open(self.path, "rb") as file:
            try:
                table, shard = pickle.load(file)
            except (AttributeError, ImportError) as error:
                raise OptionError(
                    f"a worker cannot load its shard ({error}): solvers and losses of your own are found there by the "
                    "name of their module; define them in a file that can be imported, or use engine='threads'"
                ) from error
        loaded: Shard = replace(shard, scorer=shard.scorer.with_features(table.opened()))
        return loaded

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredShard, (self.path,)

    def __sizeof__(self) -> int:
        """What it costs to load the shard elsewhere: schedulers ask for it."""
        return os.path.getsize(self.path)


def store_shard(shards: Sequence[Shard], folder: str | os.PathLike[str]) -> list[StoredShard]:
    """Write the shards into a folder; features that are in a file already stay in that one.

    Raises OptionError for what cannot be sent to another process.
    """
    tables: dict[int, MappedTable] = {}
    stowed = []
    for number, shard in enumerate(shards):
        features = shard.scorer.features
        if id(features) not in tables:
            tables[id(features)] = _table(features, Path(folder) / f"table{len(tables)}")
        path = Path(folder) / f"shard{number}.pickle"
        bare = replace(shard, scorer=shard.scorer.with_features(None), remembered={})
        try:
            with open(path, "wb") as file:
                pickle.dump((tables[id(features)], bare), file, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise OptionError(
                f"the loss cannot be sent to other processes ({error}): solvers and losses of your own must be data "
                "that can be pickled; use engine='threads'"
            ) from error
        stowed.append(StoredShard(str(path)))
    return stowed


def _table(features: Any, name: Path) -> MappedTable:
    arrays = (features.data, features.indices, features.indptr) if is_sparse(features) else (features,)
    parts = [_mapped(np.ascontiguousarray(array), name.with_suffix(f".{i}")) for i, array in enumerate(arrays)]
    return MappedTable(tuple(parts), features.shape)


def _mapped(array: NDArray[Any], path: Path) -> Mapped:
    """The array in the file that it is mapped from, else in a new file."""
    return _known(array) or _written(array, path)


def _written(array: NDArray[Any], path: Path) -> Mapped:
    array.tofile(path)
    return Mapped(str(path), array.dtype.str, array.shape)


def _known(array: NDArray[Any]) -> Mapped | None:
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c" or not array.size:
        return None  # not in a file, or changed in memory alone
    address = [one.__array_interface__["data"][0] for one in (array, root)]
    found = Mapped(str(root.filename), array.dtype.str, array.shape, address[0] - address[1] + root.offset)
    try:
        there = found.opened()
    except (OSError, ValueError):
        return None
    same = np.array_equal(there[:1], array[:1]) and np.array_equal(there[-1:], array[-1:])
    return found if same else None  # another file may have taken the name
