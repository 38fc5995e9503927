"""Whether the options that all trained rankers share can work."""

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.rankers import STRENGTHS

__all__ = ["as_numbers", "check_options", "number"]

Floats = NDArray[np.float64]


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
    if isinstance(lam, str) and lam not in STRENGTHS:
        raise OptionError(f"lam = {lam!r} is no number; give a positive one, or {' or '.join(map(repr, STRENGTHS))}")
    given = {
        "lam": 1.0 if isinstance(lam, str) else lam,
        "C": C,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "n_jobs": n_jobs,
    }
    for name, value in given.items():
        optional = name in ("lam", "C", "time_limit", "n_jobs")
        if math.isnan(number(value)) and not (value is None and optional):
            raise OptionError(f"{name} = {value!r} is no number")
    if not all(map(callable, callbacks if isinstance(callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {callbacks!r} must be a sequence of functions (step, state)")
    if not 0 <= number(tol) < math.inf:
        raise OptionError(f"tol = {tol} is no relative gap; give 0 or more, such as 1e-3")
    if not (number(max_iter) >= 1 and number(max_iter).is_integer()):
        raise OptionError(f"max_iter = {max_iter} is no number of steps; give a whole number, 1 or more")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit = {time_limit} leaves no time; give seconds, or None")
    if n_jobs is not None and not (number(n_jobs).is_integer() and n_jobs >= -1 and n_jobs != 0):
        raise OptionError(f"n_jobs = {n_jobs!r} is no number of workers; give 1 or more, or None or -1 for all cores")
    if n_jobs not in (None, 1) and engine == "serial":
        raise OptionError(f"n_jobs = {n_jobs} needs an engine with workers, but engine is 'serial'; use 'threads'")


def number(value: Any) -> float:
    """The value as a float; NaN where it is no real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_numbers(name: str, values: Any) -> Floats:
    """An array of what an option holds; OptionError where that is no numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{name} = {values!r:.80} is no array of numbers ({error}); give one") from error
