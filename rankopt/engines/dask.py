"""Shards on the workers of a local or distributed Dask cluster.

Features are written to files once and memory-mapped by the workers. Each shard is a future that a worker loads from its
file; a step sends the function alone. Dask reloads the shards of a lost worker elsewhere and repeats its tasks.

Dask starts workers by `multiprocessing`, which imports the main module again: a script without
`if __name__ == "__main__"` would start itself recursively. So a local cluster runs in a separate process.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import is_sparse
from formulations.parallel import at_most, threads
from rankopt.errors import EngineError, OptionError
from rankopt.options import load_package
from rankopt.risk.risk import Answer, Shard, ShardFunction


@dataclass
class Dask:
    """Evaluates shards on a Dask cluster.

    workers: number of single-threaded processes of a local cluster; None is one for each core.
    client: alternatively, a `distributed.Client`, or the address of a scheduler.
    folder: for shards and features, readable by all workers; memory-mapped features are not copied. Loading a shard
        executes code in its file, so restrict write access to users that may run code on the workers. None is a
        temporary folder of this machine.

    Dask repeats the tasks of a lost worker with identical results. Its settings under `distributed.scheduler` define
    when a worker counts as lost (`worker-ttl`) and how many may be lost on one task (`allowed-failures`).
    """

    workers: int | None = None
    client: Any = None
    folder: str | None = None
    _connection: Connection | None = field(default=None, init=False, repr=False, compare=False)

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        if self._connection is None:
            self._connection = Connection(self)
        try:
            return self._connection.compute(question, shards)
        except EngineError:
            self.close()  # the next `map` starts anew
            raise

    def close(self) -> None:
        """Remove files and futures, and the cluster if it was started here; the next `map` starts anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Dask:
        return Dask(self.workers, self.client, self.folder)  # the same client: it is a connection, not data


class Connection:
    """A client and the shards that its workers hold."""

    def __init__(self, engine: Dask) -> None:
        distributed = load_package("distributed", "distributed")
        stack = ExitStack()
        self.close = weakref.finalize(self, stack.close)
        self.folder = tempfile.mkdtemp(prefix="rankopt-", dir=engine.folder)
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.client = engine.client
        if engine.client is None:
            process, self.client = start_cluster(engine.workers or threads(), self.folder)
            stack.callback(end_cluster, process)
        if isinstance(self.client, str):
            try:
                self.client = distributed.Client(self.client, set_as_default=False)
            except (OSError, ValueError) as error:
                self.close()
                raise EngineError(
                    f"no Dask scheduler responds at {engine.client!r} ({error}); start one, or pass its address"
                ) from error
            stack.callback(self.client.close)
        self.shards: Sequence[Shard] | None = None
        self.loaded: list[Any] = []
        self.stored = tempfile.mkdtemp(dir=self.folder)

    def compute(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        """The answers of all shards, in their order."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            if self.shards is not shards:
                self.shards, self.loaded = None, []
                shutil.rmtree(self.stored, ignore_errors=True)
                self.stored = tempfile.mkdtemp(dir=self.folder)
                self.loaded = self.client.map(LoadedShard, store_shards(shards, self.stored), pure=False)
                self.shards = shards
            answers = self.client.map(_answer, self.loaded, question=question, pure=False)
            return list(self.client.gather(answers))
        except KilledWorker as error:
            raise EngineError(
                f"Dask workers died repeatedly on the same shard ({error}); use fewer workers if memory ran out, "
                "else run with engine='serial' to see the error"
            ) from error
        except (FutureCancelledError, OSError) as error:
            raise EngineError(f"the Dask scheduler was lost ({error}); restart the cluster and fit again") from error


def _answer(loaded: LoadedShard, question: ShardFunction[Answer]) -> Answer:
    with at_most(1):
        return question(loaded.shard)


def start_cluster(workers: int, folder: str) -> tuple[subprocess.Popen[bytes], str]:
    """The process of a cluster on this machine, which keeps its files in `folder`, and the address of the scheduler."""
    code = f"import sys; sys.path[:] = {list(map(str, sys.path))!r}; from rankopt.engines.dask import run_cluster; "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}run_cluster({workers}, {folder!r})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "DASK_TEMPORARY_DIRECTORY": folder},
        process_group=0,  # Ctrl-C in a terminal reaches the parent alone
    )
    assert process.stdout is not None
    address = process.stdout.readline().decode().strip()
    if not address:
        end_cluster(process)
        raise EngineError("the Dask cluster could not be started, see above; use engine='threads'")
    return process, address


def end_cluster(process: subprocess.Popen[bytes]) -> None:
    """Close the cluster's standard input, which ends it; kill it after 20 seconds."""
    with process:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def run_cluster(workers: int, folder: str) -> None:
    """Run a cluster and print its address, until the other end of standard input is closed or its process is gone."""
    import logging

    from distributed import LocalCluster

    # memory_limit: features are mapped, so that resident memory is no sign of need.
    options = {
        "n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
    }  # fmt: skip
    with LocalCluster(**options) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)  # nobody else removes the files of a parent that was killed


@dataclass(frozen=True)
class MappedArray:
    """An array in a file, C-contiguous, from byte `offset` on."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    @classmethod
    def from_array(cls, array: NDArray[Any], path: Path) -> MappedArray:
        """The file region that the array is mapped from, if it still holds the array; else a new file at `path`."""
        array = root = np.ascontiguousarray(array)
        while isinstance(root.base, np.ndarray):
            root = root.base
        if isinstance(root, np.memmap) and root.filename is not None and root.mode != "c":
            offset = array.ctypes.data - root.ctypes.data + root.offset
            known = cls(str(root.filename), array.dtype.str, array.shape, offset)
            if known._holds(array):
                return known
        array.tofile(path)
        return cls(str(path), array.dtype.str, array.shape)

    def _holds(self, array: NDArray[Any]) -> bool:
        """Whether the first and the last row are those of the array: another file may have taken the name."""
        try:
            there = self.open()
        except (OSError, ValueError):
            return False
        return np.array_equal(there[:1], array[:1]) and np.array_equal(there[-1:], array[-1:])

    def open(self) -> NDArray[Any]:
        if 0 in self.shape:
            return np.zeros(self.shape, dtype=self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", self.offset, self.shape))


class LoadedShard:
    """A shard loaded from its file. Sent to another worker it is the path alone, and is loaded there again."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            try:
                parts, shape, shard = pickle.load(file)
            except (AttributeError, ImportError) as error:
                raise OptionError(
                    f"a worker cannot load its shard ({error}): workers import custom solvers and losses by module "
                    "name; define them in an importable file, or use engine='threads'"
                ) from error
        arrays = tuple(part.open() for part in parts)
        if len(arrays) > 1:
            from scipy.sparse import csr_array

            features = csr_array(arrays, shape=shape, copy=False)
        else:
            (features,) = arrays
        self.shard: Shard = replace(shard, scorer=shard.scorer.with_features(features))

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedShard, (self.path,)

    def __sizeof__(self) -> int:
        """What it costs to load the shard on another worker: the scheduler weighs it."""
        return os.path.getsize(self.path)


def store_shards(shards: Sequence[Shard], folder: str) -> list[str]:
    """Write the shards into a folder, tables of features that they share once; the paths of the shards.

    Raises OptionError for what cannot be pickled.
    """
    tables: dict[int, tuple[list[MappedArray], tuple[int, ...]]] = {}
    paths = []
    for number, shard in enumerate(shards):
        features = shard.scorer.features
        if id(features) not in tables:
            arrays = (features.data, features.indices, features.indptr) if is_sparse(features) else (features,)
            files = (Path(folder, f"table{len(tables)}.{part}") for part in range(len(arrays)))
            parts = [MappedArray.from_array(array, file) for array, file in zip(arrays, files, strict=False)]
            tables[id(features)] = parts, features.shape
        bare = replace(shard, scorer=shard.scorer.with_features(None), remembered={})
        paths.append(os.path.join(folder, f"shard{number}.pickle"))
        try:
            with open(paths[-1], "wb") as file:
                pickle.dump((*tables[id(features)], bare), file, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise OptionError(
                f"the loss cannot be sent to other processes ({error}): custom solvers and losses must be "
                "picklable; use engine='threads'"
            ) from error
    return paths
