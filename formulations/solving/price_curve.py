"""What a quota costs, as a curve of values and prices against the limit: of one problem, or of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats
from formulations.brevity import CompactReprMixin
from formulations.notebook_view import curves, paragraph, table, view
from formulations.views import axes_for, data_frame, tick_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PriceCurve", "PriceCurves"]

MOST = 10
"""Limits that a sentence names."""

HEAD = ["mean", "spread", "lost", "spread of it", "price", "whole", "empty"]


@dataclass(frozen=True, eq=False)
class PriceCurve(CompactReprMixin):
    """limits (m,); value: of the best ranking at each, NaN where there is none; bound: proven for it; relaxed: what the
    linear program is worth; price: the sum of the constraint's prices, per unit of the limit; whole: whether the
    program's optimum is a ranking, to 1e-7 of the largest profit. name: of the constraint, with its side."""

    name: str
    limits: Floats
    value: Floats
    bound: Floats
    relaxed: Floats
    price: Floats
    whole: Bools

    @property
    def empty(self) -> Bools:
        """At which limits no ranking is left."""
        return np.isnan(self.value)

    def above(self, limit: ArrayLike) -> Floats:
        """What the prices of all points prove that no ranking under this limit is worth more than; inf where no point
        has a ranking, for then nothing is proved."""
        at = np.asarray(limit, dtype=np.float64)
        held = ~self.empty
        lines = self.relaxed[held] + self.price[held] * (at[..., None] - self.limits[held])
        return np.asarray(lines.min(axis=-1, initial=np.inf))

    def to_frame(self) -> Any:
        """A pandas data frame, a row a limit; FormulationError where pandas is missing."""
        names = ["limits", "value", "bound", "relaxed", "price", "whole"]
        return data_frame({name.removesuffix("s"): getattr(self, name) for name in names})

    def plot(self, axes: Axes | None = None) -> Axes:
        """The best value against the limit, and the linear program's above it; a gap where there is no ranking."""
        axes = axes_for(axes)
        axes.plot(self.limits, np.where(self.empty, np.nan, self.relaxed), "--s", markersize=4, label="linear program")
        axes.plot(self.limits, self.value, "-o", markersize=4, label="best ranking")
        axes.set(xlabel=self.name, ylabel="value")
        tick_each(axes, self.limits)
        axes.legend(frameon=False)
        return axes

    def _repr_html_(self) -> str:
        rows = [[f"{limit:g}", *row] for limit, row in zip(self.limits, self._cells, strict=True)]
        drawn = curves({"best ranking": self.value, "linear program": self.relaxed}, self.name)
        return view(
            "What a limit costs", {}, table([self.name, "value", "price", "whole"], rows, most=len(rows)), drawn
        )

    @property
    def _cells(self) -> list[list[str]]:
        columns = zip(self.empty, self.value, self.price, self.whole, strict=True)
        return [
            ["empty", "", ""] if nothing else [f"{value:.6g}", f"{price + 0.0:.4g}", "yes" if whole else "no"]
            for nothing, value, price, whole in columns
        ]

    def __str__(self) -> str:
        return _table(self.name, self.limits, ["value", "price", "whole"], self._cells)


@dataclass(frozen=True, eq=False)
class PriceCurves(CompactReprMixin):
    """The curves of several problems (queries) at the same limits. mean, spread: of the values over the problems that
    have a ranking at every limit, `shared` in number; spread is their standard deviation. price: their mean price;
    whole, empty: of all problems, in how many the program is whole, and how many have no ranking."""

    curves: tuple[PriceCurve, ...]

    @property
    def limits(self) -> Floats:
        return self.curves[0].limits

    @property
    def name(self) -> str:
        return self.curves[0].name

    def _kept(self, field: str) -> Floats:
        kept = [getattr(one, field) for one in self.curves if not one.empty.any()]
        return np.array(kept, dtype=np.float64).reshape(len(kept), self.limits.size)

    @property
    def shared(self) -> int:
        return len(self._kept("value"))

    @property
    def unshared(self) -> str:
        """Why there is no mean, and the cure, where no problem has a ranking at every limit; else ""."""
        if self.shared:
            return ""
        empty = np.array([one.empty for one in self.curves])
        if empty.all():
            return "No problem has a ranking at any limit, so there is no mean: loosen what else they require."
        drop = empty[int(np.argmin(empty.sum(axis=1)))]  # of a problem that has fewest, so that it is left
        left = int((~empty[:, ~drop].any(axis=1)).sum())
        named = list(dict.fromkeys(f"{limit:g}" for limit in self.limits[drop]))
        more = f" and {len(named) - MOST} more" if len(named) > MOST else ""
        none = ", at which none has one" if empty[:, drop].all() else ""
        return (
            f"No problem has a ranking at every limit, so there is no mean. Drop "
            f"{'limit' if len(named) == 1 else 'limits'} {', '.join(named[:MOST])}"
            f"{more}{none}: then {left} of {len(empty)} {'has' if left == 1 else 'have'} one at every limit."
        )

    @property
    def mean(self) -> Floats:
        values = self._kept("value")
        return values.mean(axis=0) if len(values) else np.full(self.limits.size, np.nan)

    @property
    def spread(self) -> Floats:
        values = self._kept("value")
        return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(self.limits.size, np.nan)

    @property
    def lost(self) -> tuple[Floats, Floats]:
        """Mean and spread of what each problem loses against the best of its own curve."""
        values = self._kept("value")
        if len(values) < 2:
            return np.full(self.limits.size, np.nan), np.full(self.limits.size, np.nan)
        off = values.max(axis=1, keepdims=True) - values
        return off.mean(axis=0), off.std(axis=0, ddof=1)

    @property
    def price(self) -> Floats:
        prices = self._kept("price")
        return prices.mean(axis=0) if len(prices) else np.full(self.limits.size, np.nan)

    @property
    def whole(self) -> Floats:
        return np.asarray(np.sum([one.whole & ~one.empty for one in self.curves], axis=0, dtype=np.float64))

    @property
    def empty(self) -> Floats:
        return np.asarray(np.sum([one.empty for one in self.curves], axis=0, dtype=np.float64))

    def to_frame(self) -> Any:
        """A pandas data frame, a row a limit; FormulationError where pandas is missing."""
        lost, off = self.lost
        columns = {"limit": self.limits, "mean": self.mean, "spread": self.spread, "lost": lost, "spread of it": off}
        return data_frame({**columns, "price": self.price, "whole": self.whole, "empty": self.empty})

    def plot(self, axes: Axes | None = None) -> Axes:
        """What is lost on average against the loosest limit, with the spread over the problems as a band."""
        axes = axes_for(axes)
        lost, off = self.lost
        (line,) = axes.plot(self.limits, lost, "-o", markersize=4, label=f"mean of {self.shared}")
        axes.fill_between(self.limits, np.maximum(lost - off, 0.0), lost + off, color=line.get_color(), alpha=0.2,
                          linewidth=0, label="spread")  # fmt: skip
        axes.set(xlabel=self.name, ylabel="lost of the best value")
        tick_each(axes, self.limits)
        axes.legend(frameon=False)
        return axes

    def _repr_html_(self) -> str:
        facts = {"problems": len(self.curves), "with a ranking at every limit": self.shared}
        rows = [[f"{limit:g}", *row] for limit, row in zip(self.limits, self._cells, strict=True)]
        drawn = curves({"lost": self.lost[0]}, self.name)
        below = [paragraph(self.unshared)] if self.unshared else []
        return view("What a limit costs", facts, table([self.name, *HEAD], rows, most=len(rows)), *below, drawn)

    @property
    def _cells(self) -> list[list[str]]:
        there = len(self.curves) - self.empty
        columns = zip(self.mean, self.spread, *self.lost, self.price, self.whole, there, self.empty, strict=True)
        return [
            [f"{mean:.5g}", f"{spread:.3g}", f"{lost:.4g}", f"{off:.3g}", f"{price + 0.0:.4g}", f"{whole:.0f}/{of:.0f}",
             f"{none:.0f}"]
            for mean, spread, lost, off, price, whole, of, none in columns
        ]  # fmt: skip

    def __str__(self) -> str:
        shown = _table(self.name, self.limits, HEAD, self._cells)
        return f"{shown}\n{self.unshared}" if self.unshared else shown


def _table(name: str, limits: Floats, head: list[str], rows: list[list[str]]) -> str:
    cells = [[name, *head], *([f"{limit:g}", *row] for limit, row in zip(limits, rows, strict=True))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)
