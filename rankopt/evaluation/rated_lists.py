"""Ratings as lists that a measure judges: which of them tell one order from another, and what it cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError

__all__ = ["measured", "ordered_lists"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ordered_lists(bounds: Ints, values: Floats) -> NDArray[np.bool_]:
    """(n,) whether the ratings of list i, bounds[i]:bounds[i + 1], are not all equal: else every order is as good."""
    sizes = np.diff(bounds)
    found, starts = np.zeros(sizes.size, dtype=bool), bounds[:-1][sizes > 0]
    if starts.size:
        found[sizes > 0] = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
    return found


@contextmanager
def measured(measure: Any, values: Floats, name: str = "measure") -> Iterator[None]:
    """Within this block MeasureError names ratings below 0 and their cure where these are what a measure refuses."""
    try:
        yield
    except MeasureError as error:
        least = float(values.min(initial=0.0))
        if least >= 0:
            raise
        why = error.args[0].partition(";")[0]
        raise MeasureError(
            f"{name} {measure!s} cannot judge ratings below 0 ({why}); add {-least:g} to all ratings, which "
            f" changes no order, or give another {name}, such as 'ERU(d=0)', whose gain is max(y - d, 0)"
        ) from error
