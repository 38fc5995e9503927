"""A Dask cluster on this machine, in a process of its own: a scheduler and workers that end with their owner.

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
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rankopt.engines import signs
from rankopt.errors import EngineError

__all__ = ["LocalCluster", "serve"]

STARTS = 3
"""Times that a cluster is started, at most."""


class LocalCluster:
    """`workers` worker processes of one thread each, until `dismiss`; files of Dask are in `folder`."""

    def __init__(self, workers: int) -> None:
        self.owner = os.getpid()
        self.folder = tempfile.mkdtemp(prefix="rankopt-")
        code = (
            f"import sys; sys.path[:] = {list(map(str, sys.path))!r}; from rankopt.engines.dask_cluster import serve; "
        )
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
