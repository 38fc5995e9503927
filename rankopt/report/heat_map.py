"""A matrix of shares between named things as squares, the darker the larger."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankopt.report.figures import Drawing, shortened
from rankopt.report.palette import LIGHT, SHADES

__all__ = ["heat_map"]

Floats = NDArray[np.float64]

LIMITS = (0.25, 0.75, 1.0)
"""Shares below the first have the lightest shade, those from the last on the darkest."""

WRITTEN = 9
"""Most columns in which a square still has room for its number."""


def heat_map(names: Sequence[str], shares: Floats, title: str, says: str) -> Drawing:
    """shares (r, r) in [0, 1]; NaN where there is nothing to compare. A share below 1 is ringed in red."""
    from matplotlib.patches import Rectangle

    r = len(names)
    drawing = Drawing(title, says, height=1.2 + 3.2 * min(1.0, 0.3 + r / 12))
    with drawing as axes:
        for i in range(r):
            for j in range(r):
                share = shares[i, j]
                known = bool(np.isfinite(share))
                shade = SHADES[int(np.searchsorted(LIMITS, share, side="right"))] if known else LIGHT["none"]
                differs = known and share < 1
                square = Rectangle((j + 0.06, i + 0.06), 0.88, 0.88, facecolor=shade)
                square.set_edgecolor(LIGHT["s8"] if differs else "none")
                axes.add_patch(square)
                if r <= WRITTEN:
                    text = _percent(share) if known else "–"
                    axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=9)
        axes.set_xlim(0, r)
        axes.set_ylim(r, 0)
        short = [shortened(name, 18) for name in names]
        axes.set_xticks(np.arange(r) + 0.5, short, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(np.arange(r) + 0.5, short)
        axes.tick_params(length=0)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return drawing


def _percent(share: float) -> str:
    """A share in whole percent; 100 means all, so nearly all is 99."""
    return str(min(99, round(100 * share)) if share < 1 else 100)
