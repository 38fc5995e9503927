"""Plot of a step function: every open interval at its height, the current point, and the chosen interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankopt.sweeps.step_function import LinePoint, StepFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


AROUND = 0.9
"""Fraction of the jumps that is shown; the others are far out and small."""

MOST = 4000
"""Intervals that are drawn, at most: the widest there, since no eye sees the others."""


def draw_line(
    steps: StepFunction,
    line: LinePoint,
    at: float,
    measure: str,
    about: str,
    axes: Axes | None = None,
    colours: Sequence[str] = ("C0", "C1", "C2"),
    legend: bool = True,
) -> Axes:
    """Plot the steps of M(t) against at + t. `line` is the point chosen by a search, `at` the current one. colours: of
    the steps, the chosen point and the current point. Returns the matplotlib axes."""
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1]
    low, high = shown_range(steps, line)
    lows, highs = np.clip(steps.lows, low, high), np.clip(steps.highs, low, high)
    inside = np.flatnonzero(highs > lows)
    inside = np.sort(inside[np.argsort(lows[inside] - highs[inside], kind="stable")[:MOST]])
    x = np.column_stack([lows[inside], highs[inside]]).ravel() + at
    axes.plot(x, np.repeat(steps.values[inside], 2), linewidth=1.2, color=colours[0], label=measure)
    begin, end = max(line.low, low), min(line.high, high)
    axes.axvspan(begin + at, end + at, alpha=0.25, linewidth=0, color=colours[1])
    axes.plot([line.t + at], [line.value], marker="o", linestyle="none", color=colours[1], label="a search stands here")
    axes.axvline(at, linestyle="--", linewidth=1.0, color=colours[2], label="now")
    axes.set(xlabel=about, ylabel=f"mean {measure}", xlim=(low + at, high + at))
    if legend:
        axes.legend(frameon=False)
    return axes


def shown_range(steps: StepFunction, line: LinePoint) -> tuple[float, float]:
    """The t worth seeing: most jumping points, 0, and the point that was chosen."""
    jumps = steps.highs[:-1]
    if not jumps.size:
        return -1.0, 1.0
    low, high = np.quantile(jumps, [(1 - AROUND) / 2, (1 + AROUND) / 2])
    low, high = min(low, 0.0, line.t), max(high, 0.0, line.t)
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)
