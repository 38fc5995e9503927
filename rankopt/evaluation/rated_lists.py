"""Ratings as lists that a measure judges: which of them tell one order from another, and what it cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.measure import Measure
from rankopt.measures.measure_mix import MeasureMix
from rankopt.measures.notation import parse
from rankopt.measures.novelty import BySubtopic
from rankopt.measures.pooled import Pooled

__all__ = ["check_judges", "from_which_on", "measured", "ordered_lists"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ordered_lists(bounds: Ints, values: Floats) -> NDArray[np.bool_]:
    """(n,) whether the ratings of list i, bounds[i]:bounds[i + 1], are not all equal: else every order is as good."""
    sizes = np.diff(bounds)
    found, starts = np.zeros(sizes.size, dtype=bool), bounds[:-1][sizes > 0]
    if starts.size:
        found[sizes > 0] = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
    return found


def check_judges(measure: str | Measure, bounds: Ints, values: Floats) -> None:
    """MeasureError, which names the cure, where a measure only asks what is relevant and all ratings of the lists that
    tell an order are: then every order is worth the same."""
    wanted = parse(measure)
    parts = _parts(wanted)
    if not all(isinstance(one, Binary) and not isinstance(one, BySubtopic | Pooled) for one in parts):
        return
    sizes, told = np.diff(bounds), ordered_lists(bounds, values)
    judged = values[np.repeat(told, sizes)]
    if judged.size and all(isinstance(one, Binary) and one.relevant(judged).all() for one in parts):
        ends = np.concatenate([[0], np.cumsum(sizes[told])])
        cure = from_which_on(wanted, ends, judged, _parted) or "give another measure, such as nDCG@10"
        raise MeasureError(
            f"measure {wanted!s} cannot judge these ratings because all orders of them are worth the same to it; {cure}"
        )


def from_which_on(
    measure: Any, bounds: Ints, values: Floats, tells: Callable[[Floats, Ints, Any], NDArray[np.bool_]]
) -> str:
    """What to say of a measure that asks what is relevant, of ratings that all are: from which on, where that helps,
    since a list then tells an order by it; else nothing. tells: from ratings, bounds and measure to which lists do."""
    if not values.size:
        return ""
    high = values[values > np.median(values)]
    least = float(high.min() if high.size else values.max())
    for one in _parts(measure):
        if isinstance(one, Binary) and one.relevant(values).all():
            better = one(rel=least)
            if tells(values, bounds, better).any():
                all_are = "above 0" if one.rel is None else f"{one.rel:g} or more"
                return f"all are {all_are} and count as relevant, so say from which one on one does: {better}"
    return ""


def _parts(measure: Any) -> list[Measure]:
    return [part.measure for part in measure.parts] if isinstance(measure, MeasureMix) else [measure]


def _parted(values: Floats, bounds: Ints, measure: Binary) -> NDArray[np.bool_]:
    return ordered_lists(bounds, measure.relevant(values))


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
            f"changes no order, or give another {name}, such as 'ERU(d=0)', whose gain is max(y - d, 0)"
        ) from error
