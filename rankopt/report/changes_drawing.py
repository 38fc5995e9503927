"""Factors of time problem by problem, each with its interval, from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankopt.experiments.changes import Changed, Kind
from rankopt.report.figures import Drawing, by_tens, line_style
from rankopt.report.palette import LIGHT

__all__ = ["changes_drawing"]

MOST = 120
"""Problems of the figure; of more, evenly by factor."""

PLACES = {Kind.FASTER: 1, Kind.SLOWER: 2, Kind.SAME: 0, Kind.UNDECIDED: 3}


def changes_drawing(solver: str, changed: Sequence[Changed], margin: float) -> Drawing:
    """The figure of one solver; problems without a factor are left out."""
    told = sorted((one for one in changed if one.factor), key=lambda one: one.factor or 0.0)
    shown = told
    if len(told) > MOST:
        shown = [told[place] for place in np.linspace(0, len(told) - 1, MOST).round().astype(int)]
    few = "" if shown is told else f" {MOST} of {len(told)} problems."
    says = f"{solver}: seconds now / before of each problem, with its interval; grey: the margin, {margin:g}.{few}"
    drawing = Drawing(f"{solver}: time, now / before", says)
    with drawing as axes:
        axes.axvspan(1.0 / margin, margin, color=LIGHT["rule"], linewidth=0)
        axes.axvline(1.0, color=LIGHT["soft"], linewidth=1.0)
        for kind, place in PLACES.items():
            own = [(row, one) for row, one in enumerate(shown) if one.kind is kind]
            if not own:
                continue
            rows = np.array([row for row, _ in own])
            low, high = np.array([one.interval or (np.nan, np.nan) for _, one in own]).T
            colour = line_style(place)["color"]
            axes.hlines(rows, low, high, color=colour, linewidth=1.4)
            axes.scatter(
                [one.factor or np.nan for _, one in own], rows, s=14, color=colour, linewidths=0, label=kind.words
            )
        axes.set_yticks([])
        axes.set_ylabel("problems")
        axes.set_xlabel("factor")
        ends = np.array([one.interval or (1.0, 1.0) for one in shown])
        axes.set_xlim(min(0.7, 0.9 * float(ends.min())), max(1.4, 1.1 * float(ends.max())))
        by_tens(axes, "x")
    return drawing
