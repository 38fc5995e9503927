"""Shards on the workers of a Dask cluster: this machine's, or many machines'.

A Dask cluster on this machine, in a process of its own: a scheduler and workers that end with their owner.

Dask starts workers by `multiprocessing`, which runs the main module of whoever starts them once more: a script without
`if __name__ == "__main__"` would start itself without end. So the cluster is not started in the user's process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from formulations.parallel import at_most, threads
from rankopt.engines import messages as signs
from rankopt.engines.mapped_shards import StoredShard, store_shard
from rankopt.errors import EngineError, OptionError
from rankopt.risk.shard import Answer, Shard, ShardFunction

STARTS = 3
"""Times that a cluster is started, at most."""


class LocalCluster:
    """`workers` worker processes of one thread each, until `dismiss`; files of Dask are in `folder`."""

    def __init__(self, workers: int) -> None:
        self.owner = os.getpid()
        self.folder = tempfile.mkdtemp(prefix="rankopt-")
        code = f"import sys; sys.path[:] = {list(map(str, sys.path))!r}; from rankopt.engines.dask import serve; "
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{code}serve({workers}, {self.folder!r}, {signs.SILENT})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C in a terminal reaches the owner alone
        )
        self.dismiss = weakref.finalize(self, _dismissed, self.process, self.folder, self.owner)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip()
        if not self.address:
            self.dismiss()
            raise EngineError("the Dask cluster could not be started, see above; use engine='processes'")


def _begun(start: Callable[[], Any]) -> Any:
    """A cluster that has come up: Dask gives up where a worker is killed while it starts, so it is started again."""
    for _ in range(STARTS - 1):
        try:
            return start()
        except RuntimeError:
            continue
    return start()


def serve(workers: int, folder: str, silent: float = signs.SILENT) -> None:
    """Run the cluster, print its address, and end it when nobody holds the other end of standard input any more.

    silent: seconds without a sign of life after which a worker is killed; Dask then puts another one in its place.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import logging

    import dask
    import distributed

    # Dask would give up workers that do not beat, were they only slow; who watches here looks at their clocks, too.
    settings = {"distributed.scheduler.worker-ttl": None, "temporary-directory": folder}
    # memory_limit: features are mapped, so that resident memory is no sign of need.
    options = {
        "n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0,
        "silence_logs": logging.CRITICAL, "local_directory": folder,
    }  # fmt: skip
    with dask.config.set(settings), _begun(lambda: distributed.LocalCluster(**options)) as cluster:
        threading.Thread(target=_watch, args=(cluster, silent), daemon=True).start()
        print(cluster.scheduler_address, flush=True)
        sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)


def _watch(cluster: Any, silent: float) -> None:
    """Kill workers that are silent."""
    known: dict[int, signs.Heartbeat] = {}
    while True:
        time.sleep(signs.LOOK)
        heard = {address: worker.last_seen for address, worker in list(cluster.scheduler.workers.items())}
        own = {nanny.pid: heard.get(nanny.worker_address) for nanny in list(cluster.workers.values()) if nanny.process}
        known = {pid: known.get(pid) or signs.Heartbeat(pid) for pid in own if pid is not None}
        for pid, watched in known.items():
            if watched.look(own[pid]) > silent:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _dismissed(process: subprocess.Popen[bytes], folder: str, owner: int) -> None:
    if os.getpid() != owner:  # in a fork of the owner
        return
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.send_signal(signal.SIGCONT)  # one that was stopped must notice
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


LOOK, GRACE = 2, 30
"""Seconds between two looks at whether there are workers, and for which there may be none in a cluster of ours."""

CURES = "if memory ran out use fewer workers, else see what engine='serial' says"


@dataclass
class Dask:
    """Computes shards on a Dask cluster.

    workers: of a cluster that is started on this machine; None takes one a core.
    client: instead, a `distributed.Client`, or the address of a scheduler.
    folder: where shards are written, and features that are not mapped from a file; all workers must see it, and only
        those who may run code on them should be able to write there. None is a temporary folder of this machine.
    patience: of a cluster of your own, the seconds for which no worker may be there, or no shard be done while a worker
        is silent; then that is an error. Its setting `distributed.scheduler.worker-ttl` says when Dask itself asks
        others in place of a silent worker.

    A shard is a future of its loader, known by its file; w is sent along. A worker that dies loses nothing: its shards
    are loaded elsewhere and asked again, which changes no bit. In a cluster that is started here, so it is with a
    worker that was stopped.
    """

    workers: int | None = None
    client: Any = None
    folder: str | None = None
    patience: float = 600.0
    _contact: Contact | None = field(default=None, init=False, repr=False, compare=False)

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        if self._contact is None or self._contact.owner != os.getpid():
            self._contact = Contact(self)
        try:
            return self._contact.ask(question, shards)
        except EngineError:
            self.close()  # the next `map` starts anew
            raise

    def close(self) -> None:
        """Remove files and futures, and the cluster if it was started here; the next `map` starts anew."""
        contact, self._contact = self._contact, None
        if contact is not None:
            contact.end()

    def __deepcopy__(self, memo: dict[int, Any]) -> Dask:
        # The same client: it is a connection, not data.
        return Dask(self.workers, self.client, self.folder, self.patience)


class Contact:
    """A client and the shards that its workers hold."""

    def __init__(self, engine: Dask) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise OptionError(
                f"engine 'dask' needs the package distributed ({error}); pip install 'rankopt[distributed]'"
            ) from error
        self.owner = os.getpid()
        self.cluster = LocalCluster(engine.workers or threads()) if engine.client is None else None
        given = engine.client if self.cluster is None else self.cluster.address
        try:
            self.client = Client(given, set_as_default=False) if isinstance(given, str) else given
        except (OSError, ValueError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {given!r} ({error}); start one, or give its address"
            ) from error
        self.ours = isinstance(given, str)
        self.patience = GRACE if engine.client is None else engine.patience
        place = self.cluster.folder if self.cluster is not None and engine.folder is None else engine.folder
        self.folder = tempfile.mkdtemp(prefix="rankopt-", dir=place)  # our cluster's folder goes when its owner is gone
        self.clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.shards: Sequence[Shard] | None = None
        self.held: list[Any] = []
        self.asked = 0

    def ask(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
        """The answers of all shards, in their order."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        if self.shards is not shards:
            self._take(shards)
        self.asked += 1
        keys = [f"{one.key}-{self.asked}" for one in self.held]
        asked = self.client.map(_answer, self.held, question=question, key=keys, pure=False)
        try:
            return list(self._awaited(_in_background(lambda: self.client.gather(asked)), asked))
        except KilledWorker as error:
            raise EngineError(f"Dask workers died again and again on the same shard ({error}); {CURES}") from error
        except (FutureCancelledError, OSError) as error:
            raise EngineError(f"the Dask scheduler was lost ({error}); start the cluster again and fit anew") from error
        finally:
            late = [one for one in asked if not one.done()]
            if late:  # an error or an interruption: nobody waits for them
                _given_time(lambda: self.client.cancel(late))

    def _awaited(self, answers: Future[Any], asked: Sequence[Any]) -> Any:
        """The answers, once they have come; EngineError where nothing can come any more."""
        silence: dict[str, tuple[object, float]] = {}  # who → the last sign, and seconds since then
        while True:
            try:
                return answers.result(timeout=LOOK)
            except TimeoutError:
                if answers.done():  # it was theirs
                    raise
            done = sum(one.done() for one in asked)
            silent: dict[str, tuple[object, float]] = {}
            for name, sign in self._signs(done).items():
                last, seconds = silence.get(name, (sign, 0.0))
                silent[name] = sign, seconds + LOOK if last == sign else 0.0
                if silent[name][1] > self.patience:
                    raise EngineError(f"{name} since {silent[name][1]:.0f} s; {CURES}")
            silence = silent

    def _signs(self, done: int) -> dict[str, object]:
        """What must not stay as it is for ever: who → another value with every sign. A worker of ours that is silent is
        somebody else's affair; one of others may be silent as long as shards get done."""
        try:
            told = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=LOOK)
        except (TimeoutError, OSError):
            return {"the Dask scheduler is silent": None}
        if not told["workers"]:
            return {"there are no Dask workers": None}
        if self.cluster is not None:
            return {}
        return {f"the Dask worker {name} is silent": (done, of["last_seen"]) for name, of in told["workers"].items()}

    def _take(self, shards: Sequence[Shard]) -> None:
        """Stow these shards in place of those before; workers load them."""
        self.shards, self.held = None, []
        folder = tempfile.mkdtemp(dir=self.folder)
        paths = [one.path for one in store_shard(shards, folder)]
        name = f"rankopt-{token_hex(6)}"
        # All at once, so that the scheduler spreads them. It is not told where: where restrictions name a worker that
        # died, Dask never asks another one, even if it may.
        self.held = self.client.map(_loaded, paths, key=[f"{name}-{i}" for i in range(len(paths))], pure=False)
        self.shards = shards

    def end(self) -> None:
        self.held = []
        if self.ours:
            _given_time(self.client.close)
        if self.cluster is not None:
            self.cluster.dismiss()
        self.clean()


def _in_background(call: Callable[[], Any]) -> Future[Any]:
    """What the call returns or raises; it may never do, and holds up nobody."""
    told: Future[Any] = Future()

    def run() -> None:
        try:
            told.set_result(call())
        except BaseException as error:
            told.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return told


def _given_time(call: Callable[[], Any]) -> None:
    """Do what a scheduler that is silent would hold up."""
    with suppress(TimeoutError):
        _in_background(call).result(timeout=GRACE)


def _loaded(path: str) -> StoredShard:
    stowed = StoredShard(path)
    assert stowed.shard is not None
    return stowed


def _answer(stowed: StoredShard, question: ShardFunction[Answer]) -> Answer:
    with at_most(1):
        return question(stowed.shard)
