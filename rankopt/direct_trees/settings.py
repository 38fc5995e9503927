"""Whether the options of `DirectBoostedRanker` can work."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rankopt.direct_trees import GROWERS, STRATEGIES
from rankopt.errors import OptionError
from rankopt.rankers.options import number

__all__ = ["check_settings", "seed_of"]

LARGEST = 2**31 - 1

WHOLE = {"n_estimators": 1, "num_leaves": 2, "min_child_samples": 1, "early_stopping": 1, "passes": 1}
"""Options that are whole numbers, and the least that each may be."""


def check_settings(
    *, trees: Any, strategy: Any, engine: Any, n_jobs: Any, time_limit: Any, callbacks: Any, **options: Any
) -> None:
    """Raise OptionError for a value that cannot work; options that are not listed here are checked where they are
    used."""
    for name, least in WHOLE.items():
        if name == "n_estimators" and options[name] is None:
            continue
        if not (least <= number(options[name]) <= LARGEST and number(options[name]).is_integer()):
            raise OptionError(f"{name} = {options[name]!r} is no such number; give a whole number, {least} or more")
    for name, value, known in (("trees", trees, GROWERS), ("strategy", strategy, STRATEGIES)):
        if value not in list(known):
            raise OptionError(f"{name} = {value!r} is unknown; known are {', '.join(known)}")
    if engine not in ("threads", "serial"):
        raise OptionError(
            f"engine = {engine!r} cannot grow trees, because a split is chosen on all documents at once; use 'threads' "
            "or 'serial'"
        )
    if n_jobs is not None and not (number(n_jobs).is_integer() and n_jobs >= -1 and n_jobs != 0):
        raise OptionError(f"n_jobs = {n_jobs!r} is no number of threads; give 1 or more, or None or -1 for all cores")
    if time_limit is not None and not number(time_limit) > 0:
        raise OptionError(f"time_limit = {time_limit!r} leaves no time; give seconds, or None")
    if not all(map(callable, callbacks if isinstance(callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {callbacks!r} must be a sequence of functions (step, standing)")


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, 0 for None; a generator draws one."""
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    seed = (0 if random_state is None else random_state) if draw is None else int(draw(LARGEST))
    if not (0 <= number(seed) < math.inf and number(seed).is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return int(seed) % LARGEST
