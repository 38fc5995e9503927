"""Pictures of evaluations: means with their intervals, differences query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankopt.measures.segments import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bars_of_differences", "dots_of_means"]


def dots_of_means(
    measures: Sequence[str], runs: Mapping[str, tuple[Floats, Floats]], told: str, axes: Axes | None = None
) -> Axes:
    """A dot a mean and a bar its interval: measures down, runs side by side.

    runs: name -> means (M,), intervals (M, 2). told: what the axis says.
    """
    import matplotlib.pyplot as plt

    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    places = np.arange(len(measures), dtype=np.float64)
    for number, (name, (means, intervals)) in enumerate(runs.items()):
        y = places + (number - (len(runs) - 1) / 2) * 0.6 / max(len(runs), 1)
        reach = np.abs(intervals.T - means)
        axes.errorbar(means, y, xerr=np.nan_to_num(reach), fmt="o", markersize=4, capsize=2, label=name)
    axes.set(yticks=places, yticklabels=list(measures), xlabel=told)
    axes.invert_yaxis()
    if len(runs) > 1:  # above: inside it would lie on some interval
        axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return axes


def bars_of_differences(
    differences: Floats, mean: float, interval: tuple[float, float], measure: str, axes: Axes | None = None
) -> Axes:
    """Sorted differences as bars, their mean as a line with its interval as a band."""
    import matplotlib.pyplot as plt

    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    axes.bar(np.arange(1, len(differences) + 1), np.sort(differences)[::-1], width=1.0, color="C0", alpha=0.6)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.axhspan(*interval, color="C1", alpha=0.25, linewidth=0)
    axes.axhline(mean, color="C1", label=f"mean {mean:+.4f}")
    axes.set(xlabel="queries", ylabel=f"difference in {measure}")
    axes.legend(frameon=False)
    return axes
