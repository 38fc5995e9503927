"""Performance profiles: which share of the problems each solver had solved within t times the time of the fastest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankopt.report.figures import Drawing, by_tens, line_style

__all__ = ["profile_drawing"]

Floats = NDArray[np.float64]


def profile_drawing(curves: Mapping[str, tuple[Floats, Floats]], about: str) -> Drawing:
    """curves[solver]: factors t >= 1 in rising order, and the share of problems solved within each."""
    says = f"{about}: share of the problems solved within t times the seconds of the fastest solver [Dolan and Moré]."
    drawing = Drawing("performance profile", says)
    with drawing as axes:
        most = max((factors[-1] for factors, _ in curves.values() if len(factors)), default=1.0)
        for place, (solver, (factors, shares)) in enumerate(curves.items()):
            t = np.concatenate([[1.0], factors, [1.3 * most]])
            share = np.concatenate([[0.0], shares, shares[-1:] if len(shares) else [0.0]])
            axes.step(t, share, where="post", label=solver, **line_style(place))
        axes.set_ylim(-0.02, 1.02)
        by_tens(axes, "x")
        axes.set_xlabel("t")
        axes.set_ylabel("share solved")
    return drawing
