"""Results as a data frame and as a drawing; both packages are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from formulations.arrays import Floats
from formulations.errors import FormulationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_for", "data_frame", "tick_each"]

MOST_TICKS = 30
"""Beyond so many places the ticks stand where matplotlib puts them: thousands take minutes to draw."""


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame of these columns. FormulationError where pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise FormulationError("to_frame needs pandas, which is not installed; pip install pandas") from error
    return pandas.DataFrame(dict(columns))


def axes_for(axes: Axes | None) -> Axes:
    """These axes, or new ones of a figure of their own. FormulationError where matplotlib is missing."""
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise FormulationError("plot needs matplotlib, which is not installed; pip install matplotlib") from error
    fresh: Axes = plt.subplots(layout="constrained")[1]
    return fresh


def tick_each(axes: Axes, places: Floats) -> None:
    """A tick at each of these places on the horizontal axis, if they are few."""
    if places.size <= MOST_TICKS:
        axes.set_xticks(places)
