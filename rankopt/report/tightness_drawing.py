"""Regret against its bounds, a point a query; and the share of queries that lie below each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankopt.report.figures import Drawing, line_style
from rankopt.report.palette import LIGHT

if TYPE_CHECKING:
    from rankopt.explanations.tightness import Tightness

__all__ = ["tightness_drawing"]

MOST = 2000
"""Points of the scatter; of more queries, evenly by looseness."""

POINTS = 300
"""Steps of a distribution."""


def tightness_drawing(found: Tightness) -> list[Drawing]:
    """The scatter of the trained bound, and the distributions of regret and of all bounds."""
    return [_scatter(found), _distributions(found)]


def _scatter(found: Tightness) -> Drawing:
    rows = np.argsort(found.looseness, kind="stable")
    few = rows.size > MOST
    if few:
        rows = rows[np.linspace(0, rows.size - 1, MOST).round().astype(np.int64)]
    regret, bound, silent = found.regret[rows], found.bound[rows], found.silent[rows]
    says = f"Each query's regret and {found.trained} bound; no point lies below the line, where they are equal."
    drawing = Drawing("regret against bound", says + (f" {MOST} of {len(found)} queries." if few else ""))
    with drawing as axes:
        top = float(max(bound.max(initial=0.0), regret.max(initial=0.0))) or 1.0
        far = float(max(regret.max(initial=0.0), found.most.max(initial=0.0))) or 1.0
        axes.plot([0.0, min(far, top)], [0.0, min(far, top)], color=LIGHT["soft"], linewidth=1.0)
        for place, (mask, label) in enumerate(((~silent, "says something"), (silent, "loose: says nothing"))):
            if mask.any():
                colour = line_style(place)["color"]
                axes.scatter(regret[mask], bound[mask], s=16, color=colour, alpha=0.7, linewidths=0, label=label)
        axes.set_xlim(-0.02 * far, 1.04 * far)
        axes.set_ylim(-0.02 * top, 1.06 * top)
        axes.set_xlabel(f"regret, {found.measure}")
        axes.set_ylabel(f"{found.trained} bound")
    return drawing


def _distributions(found: Tightness) -> Drawing:
    says = "The share of queries whose regret, or bound, is at most so much, up to what the worst ranking would lose."
    drawing = Drawing("share of queries", says)
    with drawing as axes:
        far = float(found.most.max(initial=0.0)) or 1.0
        kept = np.unique(np.linspace(0, len(found) - 1, POINTS).round().astype(np.int64))
        share = (kept + 1) / len(found)
        for place, (name, values) in enumerate({"regret": found.regret, **found.bounds}.items()):
            ends = np.concatenate([[0.0], np.sort(values)[kept], [max(far, values.max())]])
            axes.step(ends, np.concatenate([[0.0], share, [1.0]]), where="post", label=name, **line_style(place))
        axes.set_xlim(0.0, 1.02 * far)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(f"lost, {found.measure}")
        axes.set_ylabel("share of queries")
    return drawing
