"""The time limit of a call, for everything that the call does: solvers, bounds, the search for a conflict; and Ctrl-C.

>>> seconds_left() is None
True
>>> with limited_time(60.0):
...     with limited_time(None):
...         59.0 < seconds_left() <= 60.0
True
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

LEAST = 1e-3  # seconds; solvers refuse a limit of 0

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def limited_time(seconds: float | None) -> Iterator[None]:
    """Within it `seconds_left` counts down from `seconds`, or from what an outer limit leaves."""
    outer = _deadline.get()
    inner = None if seconds is None else perf_counter() + seconds
    known = [moment for moment in (outer, inner) if moment is not None]
    token = _deadline.set(min(known, default=None))
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """The seconds until the time limit, at least 1e-3; None without a limit."""
    deadline = _deadline.get()
    return None if deadline is None else max(deadline - perf_counter(), LEAST)


def is_used_up(limit: float | None, seconds: float) -> bool:
    """Whether a solver that took these seconds was cut by its time limit; the clocks of some end a little earlier."""
    return limit is not None and seconds >= 0.9 * limit


def is_out_of_time() -> bool:
    """Whether the time limit has passed."""
    deadline = _deadline.get()
    return deadline is not None and perf_counter() >= deadline


@contextmanager
def restored_interruptions() -> Iterator[None]:
    """Afterwards Ctrl-C raises KeyboardInterrupt as before: libraries that handle it, such as CP-SAT, leave the handler
    of the operating system, which ends the process."""
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
