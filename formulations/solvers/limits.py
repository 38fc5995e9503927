"""Whether what a solver is asked beside the problem can be asked of any: seconds, threads, a log, options.

Each package would say it in words of its own, read it as no limit, or fail in the midst of its work.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from formulations.errors import UnknownSolver

__all__ = ["check_limits"]


def check_limits(time_limit: Any = None, threads: Any = None, log: Any = None, options: Any = None) -> None:
    """Raise UnknownSolver for a time that is no positive number of seconds, threads that are no whole number from 1 on,
    a log that is neither True nor False, options that are no mapping of names; None is left to the solver."""
    if time_limit is not None and not (_plain(time_limit, Real) and time_limit > 0):
        raise UnknownSolver(f"time_limit = {time_limit!r} is no positive number of seconds; leave it out for no limit")
    if threads is not None and not (_plain(threads, Integral) and threads >= 1):
        raise UnknownSolver(f"threads = {threads!r} is no whole number from 1 on; leave it out for the usual ones")
    if log is not None and not isinstance(log, bool | np.bool_):
        raise UnknownSolver(f"log = {log!r} says neither yes nor no; write log=True")
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise UnknownSolver(f"options = {options!r} is no mapping of names; write options={{'name': value}}")


def _plain(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
