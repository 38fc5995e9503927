"""Whether the options that all trained rankers share can work."""

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankopt.errors import OptionError


def check_options(
    *,
    lam: Any,
    C: Any,
    tol: Any,
    max_iter: Any,
    time_limit: Any,
    n_jobs: Any,
    callbacks: Any,
    engine: Any,
    **_others: Any,
) -> None:
    """Raise OptionError for a value that cannot work; the parameters of a ranker that are not named are its own."""
    given = {"lam": lam, "C": C, "tol": tol, "max_iter": max_iter, "time_limit": time_limit, "n_jobs": n_jobs}
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            raise OptionError(f"{name} = {value!r} is no number")
    if not all(map(callable, callbacks if isinstance(callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {callbacks!r} must be a sequence of functions (step, state)")
    if not (np.isfinite(tol) and tol >= 0):
        raise OptionError(f"tol = {tol} is no relative gap; give 0 or more, such as 1e-3")
    if int(max_iter) < 1 or int(max_iter) != max_iter:
        raise OptionError(f"max_iter = {max_iter} is no number of steps; give a whole number, 1 or more")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit = {time_limit} leaves no time; give seconds, or None")
    if n_jobs is not None and (isinstance(n_jobs, bool) or int(n_jobs) != n_jobs or n_jobs < -1 or n_jobs == 0):
        raise OptionError(f"n_jobs = {n_jobs!r} is no number of workers; give 1 or more, or None or -1 for all cores")
    if n_jobs not in (None, 1) and engine == "serial":
        raise OptionError(f"n_jobs = {n_jobs} needs an engine with workers, but engine is 'serial'; use 'threads'")
