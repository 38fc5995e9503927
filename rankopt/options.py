"""Option checks of all estimators. An error names the option, the accepted values and the value that was received.

An estimator lists in `_rules` the values that each of its options may have, as a tuple of alternatives:

>>> check("tol", 1e-3, (Interval(0), None))
>>> check("tol", -1, (Interval(0), None))
Traceback (most recent call last):
    ...
rankopt.errors.OptionError: tol must be a number >= 0 or None; got -1
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import check_no_mask
from rankopt.errors import OptionError

Rules = Mapping[str, tuple[Any, ...]]


def load_package(name: str, extra: str) -> Any:
    """An optional package; OptionError that names the extra of rankopt where it cannot be loaded."""
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(f"{name} cannot be loaded ({error}); pip install 'rankopt[{extra}]'") from error


@dataclass(frozen=True)
class Interval:
    """Numbers (integers) from low to high, of which the ends that are named by `closed` are included."""

    low: float
    high: float = math.inf
    closed: Literal["left", "right", "both", "neither"] = "left"
    integer: bool = False

    def __contains__(self, value: Any) -> bool:
        x = number(value)
        above = x >= self.low if self.closed in ("left", "both") else x > self.low
        below = x <= self.high if self.closed in ("right", "both") else x < self.high
        return above and below and (not self.integer or x.is_integer())

    def __str__(self) -> str:
        text = f"{'an integer' if self.integer else 'a number'} {'>=' if self.closed in ('left', 'both') else '>'} "
        text += f"{self.low:g}"
        if self.high < math.inf:
            text += f" and {'<=' if self.closed in ('right', 'both') else '<'} {self.high:g}"
        return text


class _Functions:
    """A sequence of functions."""

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, list | tuple | set | frozenset) and all(map(callable, value))

    def __str__(self) -> str:
        return "a sequence of functions (step, state)"


class _NotANumber:
    def __contains__(self, value: Any) -> bool:
        return isinstance(value, float | np.floating) and bool(np.isnan(value))

    def __str__(self) -> str:
        return "nan"


FUNCTIONS, NAN = _Functions(), _NotANumber()
POSITIVE, NOT_NEGATIVE, COUNT = Interval(0, closed="neither"), Interval(0), Interval(1, integer=True)
SEED = Interval(0, 2**63, integer=True)

RUN: Rules = {
    "tol": (NOT_NEGATIVE,),
    "max_iter": (COUNT,),
    "time_limit": (Interval(0, closed="right"), None),
    "n_jobs": (COUNT, -1, None),
    "callbacks": (FUNCTIONS,),
    "verbose": (NOT_NEGATIVE, bool),
}
"""Rules of the options of a run, the same for all estimators."""


def check_options(estimator: Any) -> None:
    """Raise OptionError for an option that breaks a rule of the estimator."""
    for name, rule in estimator._rules.items():
        check(name, getattr(estimator, name), rule)
    engine = getattr(estimator, "engine", None)
    if isinstance(engine, str) and engine == "serial" and estimator.n_jobs not in (None, 1):
        raise OptionError(
            f"n_jobs must be None or 1 with engine='serial'; got {estimator.n_jobs}. Use engine='threads'."
        )


def check(name: str, value: Any, rule: tuple[Any, ...]) -> None:
    """Raise OptionError unless the value is one of the alternatives: an Interval, FUNCTIONS, `bool`, a name, None."""
    if not any(_is(value, one) for one in rule):
        words = ["True or False" if one is bool else repr(one) if isinstance(one, str) else str(one) for one in rule]
        listed = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
        raise OptionError(f"{name} must be {listed}; got {value!r:.80}")


def _is(value: Any, alternative: Any) -> bool:
    if alternative is bool:
        return isinstance(value, bool | np.bool_)
    if isinstance(alternative, Interval | _Functions | _NotANumber):
        return value in alternative
    if isinstance(alternative, int):
        return number(value) == alternative
    return isinstance(value, str) and value == alternative if isinstance(alternative, str) else value is alternative


def set_integers(record: Any, least: int, *names: str) -> None:
    """Store these fields of a frozen record as integers; OptionError unless they are integers of `least` or more."""
    for name in names:
        check(name, getattr(record, name), (Interval(least, integer=True),))
        object.__setattr__(record, name, int(getattr(record, name)))


def check_number(least: float, **settings: Any) -> None:
    """Raise OptionError unless each value is a finite number of `least` or more."""
    for name, value in settings.items():
        check(name, value, (Interval(least),))


def check_part(closed: bool, **settings: Any) -> None:
    """Raise OptionError unless each value is greater than 0 and less than 1 (or 1, if `closed`)."""
    for name, value in settings.items():
        check(name, value, (Interval(0, 1, "right" if closed else "neither"),))


def number(value: Any) -> float:
    """The value as a float; NaN where it is no real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats
        return math.nan


def as_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """An array of what an option holds; OptionError where that is no numbers."""
    check_no_mask(name, values, OptionError)
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{name} = {values!r:.80} is no array of numbers ({error}); give one") from error


def seed_from(random_state: Any, drawn: bool = True) -> int:
    """The seed of a `random_state`: 0 for None; a generator draws it, if it is to be `drawn`."""
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    if draw is not None:
        return int(draw(2**31 - 1)) if drawn else 0
    check("random_state", random_state, (SEED, None))
    return int(random_state or 0)
