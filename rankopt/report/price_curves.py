"""What limits cost, drawn: the best value against the limit, the program's above it, and the pairs that none beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.solving.price_curve import PriceCurve
from formulations.views import tick_each
from rankopt.report.figures import Drawing, figures, line_style
from rankopt.report.markup import Html
from rankopt.report.tables import table

if TYPE_CHECKING:
    from formulations.solving.pareto import Pareto

__all__ = ["price_curves"]


def price_curves(swept: Sequence[Any]) -> list[Html]:
    """A drawing and a table for each curve of `price_of`; a table for a front of `pareto`."""
    parts: list[Html] = []
    for one in swept:
        parts += [_drawn(one), _told(one)] if isinstance(one, PriceCurve) else [_front(one)]
    return parts


def _drawn(curve: PriceCurve) -> Html:
    drawing = Drawing(curve.name, f"The value of the best ranking against the limit: {curve.name}.")
    there = ~curve.empty
    with drawing as axes:
        axes.plot(curve.limits[there], curve.relaxed[there], marker="s", markersize=4, label="linear program",
                  **line_style(1))  # fmt: skip
        axes.plot(curve.limits[there], curve.value[there], marker="o", markersize=4, label="best ranking",
                  **line_style(0))  # fmt: skip
        axes.set_xlabel(curve.name)
        axes.set_ylabel("value")
        tick_each(axes, curve.limits)
    return figures([drawing])


def _told(curve: PriceCurve) -> Html:
    rows: list[list[object]] = []
    numbers = np.column_stack([curve.limits, curve.value, curve.bound, curve.relaxed, curve.price + 0.0])
    for (limit, *held), empty, whole in zip(numbers.tolist(), curve.empty, curve.whole, strict=True):
        rows.append([limit, "no ranking", "", "", "", ""] if empty else [limit, *held, "yes" if whole else "no"])
    head = ["limit", "value", "proven bound", "linear program", "price of a unit", "whole"]
    return table(head, rows, f"What each limit costs: {curve.name}")


def _front(front: Pareto) -> Html:
    rows = [[float(part) for part in point] for point in front.front]
    left = int(np.isnan(front.value).sum())
    return table([*front.names, "value"], rows, f"Pairs of limits that none beats ({left} pairs leave no ranking)")
