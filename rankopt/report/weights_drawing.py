"""What the features move scores by, as bars from the largest down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankopt.report.figures import Drawing, line_style, shortened
from rankopt.report.palette import LIGHT

if TYPE_CHECKING:
    from rankopt.explanations.weights import Weights

__all__ = ["weights_drawing"]

MOST = 15
"""Bars that are drawn."""


def weights_drawing(weights: Weights, about: str) -> Drawing:
    """The features of the largest effect: weight × deviation within queries, up or down."""
    count = min(MOST, len(weights))
    says = f"What one deviation of a feature moves the {about} by"
    says += f", the largest {count} of {len(weights)} features." if count < len(weights) else "."
    drawing = Drawing("weight × deviation", says, height=1.0 + 0.22 * count)
    with drawing as axes:
        effect = weights.effect[:count]
        colours = [line_style(0 if value >= 0 else 1)["color"] for value in effect]
        axes.barh(np.arange(count), effect, color=colours, height=0.7)
        axes.axvline(0.0, color=LIGHT["soft"], linewidth=0.8)
        axes.set_yticks(np.arange(count), [shortened(name) for name in weights.features[:count]])
        axes.set_ylim(count - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    return drawing
