"""Whether settings of a method can work: the error names the setting, its value, and what it may be.

>>> check_whole(1, groups=3)
>>> check_number(0.0, averaging=float("nan"))
Traceback (most recent call last):
    ...
rankopt.errors.OptionError: averaging = nan is no finite number; give one of 0 or more
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from rankopt.errors import OptionError

__all__ = ["check_number", "check_part", "check_whole"]


def check_whole(least: int, **settings: Any) -> None:
    """Raise OptionError where one is no whole number of `least` or more."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
            raise OptionError(f"{name} = {value!r} is no whole number of {least} or more; give one")


def check_number(least: float, **settings: Any) -> None:
    """Raise OptionError where one is no finite number of `least` or more."""
    for name, value in settings.items():
        if not (_is_finite(value) and value >= least):
            raise OptionError(f"{name} = {value!r} is no finite number; give one of {least:g} or more")


def check_part(whole: bool, **settings: Any) -> None:
    """Raise OptionError where one is not more than 0 and less than 1, or 1 itself where the `whole` is a part too."""
    for name, value in settings.items():
        if not (_is_finite(value) and value > 0 and (value < 1 or (whole and value == 1))):
            most = "at most" if whole else "less than"
            raise OptionError(f"{name} = {value!r} is no part of a whole; give a number of more than 0 and {most} 1")


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False
