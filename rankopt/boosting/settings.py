"""Whether the options of boosting can work, and the seeds of the members."""

from __future__ import annotations

import math
from typing import Any

from rankopt.errors import OptionError
from rankopt.rankers.options import number

__all__ = ["check_settings", "seeds_of"]

LARGEST = 2**31 - 1
"""Of what LightGBM takes as a whole number."""

WHOLE = {"n_estimators": 1, "num_leaves": 2, "min_child_samples": 1, "n_members": 1, "early_stopping": 1}
"""Options that are whole numbers, and the least that each may be."""

PARTS = {"learning_rate": math.inf, "colsample_bytree": 1.0}
"""Options that are positive, and the most that each may be."""


def check_settings(*, engine: Any, n_jobs: Any, **options: Any) -> None:
    """Raise OptionError for a value that cannot work; options that are not listed here are checked where they are
    used."""
    for name, least in WHOLE.items():
        value = number(options[name])
        if name == "n_estimators" and options[name] is None:
            continue
        if not (least <= value <= LARGEST and value.is_integer()):
            raise OptionError(f"{name} = {options[name]!r} is no such number; give a whole number, {least} or more")
    for name, most in PARTS.items():
        value = number(options[name])
        if not (0 < value <= most and value < math.inf):
            upper = "" if most == math.inf else f" and at most {most:g}"
            raise OptionError(f"{name} = {options[name]!r} cannot work; give a number above 0{upper}")
    if engine not in ("threads", "serial"):
        raise OptionError(
            f"engine = {engine!r} cannot grow trees, because the objective measures all queries at once, and a worker "
            "has its own alone; use 'threads' or 'serial', or DaskLGBMRanker(objective=boosting_objective()) "
            "of LightGBM with chunks of whole queries, which takes each part for the whole"
        )
    if n_jobs is not None and not (number(n_jobs).is_integer() and n_jobs >= -1 and n_jobs != 0):
        raise OptionError(f"n_jobs = {n_jobs!r} is no number of threads; give 1 or more, or None or -1 for all cores")


def seeds_of(random_state: Any, members: int) -> list[int]:
    """A seed for each member: following numbers, from 0 for None; a generator draws the first."""
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    first = (0 if random_state is None else random_state) if draw is None else int(draw(LARGEST))
    if not (number(first) >= 0 and number(first).is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return [(int(first) * members + member) % LARGEST for member in range(members)]
