"""Whether the options that all trained rankers share can work."""

import numbers
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.rankers.optimized import OptimizedRanker


def check_options(ranker: "OptimizedRanker") -> None:
    """Raise OptionError for a value that cannot work."""
    for name in ("lam", "C", "tol", "max_iter", "time_limit", "n_jobs"):
        value = getattr(ranker, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            raise OptionError(f"{name} = {value!r} is no number")
    if not all(map(callable, ranker.callbacks if isinstance(ranker.callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {ranker.callbacks!r} must be a sequence of functions (step, state)")
    if not (np.isfinite(ranker.tol) and ranker.tol >= 0):
        raise OptionError(f"tol = {ranker.tol} is no relative gap; give 0 or more, such as 1e-3")
    if int(ranker.max_iter) < 1 or int(ranker.max_iter) != ranker.max_iter:
        raise OptionError(f"max_iter = {ranker.max_iter} is no number of steps; give a whole number, 1 or more")
    if ranker.time_limit is not None and not ranker.time_limit > 0:
        raise OptionError(f"time_limit = {ranker.time_limit} leaves no time; give seconds, or None")
    jobs = ranker.n_jobs
    if jobs is not None and (isinstance(jobs, bool) or int(jobs) != jobs or jobs < -1 or jobs == 0):
        raise OptionError(f"n_jobs = {jobs!r} is no number of workers; give 1 or more, or None or -1 for all cores")
    if jobs not in (None, 1) and ranker.engine == "serial":
        raise OptionError(f"n_jobs = {jobs} needs an engine with workers, but engine is 'serial'; use 'threads'")
