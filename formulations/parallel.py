"""Threads for kernels that release the GIL: each part of a job is taken by the next free thread.

A job is split by its data, never by the number of threads, so results are bit-identical for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import count

import numpy as np

from formulations.arrays import Ints

_LIMIT: ContextVar[int | None] = ContextVar("threads", default=None)


def threads() -> int:
    """The number of threads that a job may use: the current limit, else the cores available to this process."""
    limit = _LIMIT.get()
    if limit is not None:
        return limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def at_most(limit: int | None) -> Iterator[None]:
    """Limit the threads of jobs within this block; None sets no limit."""
    token = _LIMIT.set(None if limit is None else max(1, limit))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def share(parts: int, compute: Callable[[int], object]) -> None:
    """Call compute(0) ... compute(parts - 1), in any order, on as many threads as are free.

    compute must release the GIL to run in parallel. The caller's thread computes too, so nested jobs cannot deadlock.
    The first error is raised after all started parts are done.
    """
    helpers = min(threads(), parts) - 1
    if helpers < 1:
        for part in range(parts):
            compute(part)
        return
    tickets = count()
    stopped = False

    def work() -> None:
        while not stopped and (part := next(tickets)) < parts:
            compute(part)

    pool = _pool(os.getpid(), helpers)
    helping = [pool.submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        stopped = True
        begun = [helper for helper in helping if not helper.cancel()]
        for helper in begun:
            helper.exception()
    for helper in begun:
        helper.result()


@lru_cache(maxsize=4)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has none of its parent's, hence the process id."""
    return ThreadPoolExecutor(workers, thread_name_prefix="rankopt")


def share_ranges(offsets: Ints, rows: int, compute: Callable[[int, int], object]) -> None:
    """compute(first, last) for ranges of queries first <= q < last of about `rows` rows."""
    if offsets[-1] <= rows:
        compute(0, offsets.size - 1)
        return
    marks = np.append(np.arange(0, offsets[-1], rows), offsets[-1])
    cuts = np.unique(np.searchsorted(offsets, marks)).tolist()
    share(len(cuts) - 1, lambda part: compute(cuts[part], cuts[part + 1]))
