"""Pages of one file: jinja2 templates with autoescape, tables that sort, figures of matplotlib as inline SVG.

`LIGHT` and `DARK` are the colors of a page as CSS variables. Figures are drawn in the light ones and refer to the
variables. The order of the series keeps neighbors apart without red and green; after eight the colors are dashed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from io import StringIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from formulations.display import Axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@cache
def environment() -> Environment:
    """The templates of `rankopt/report/templates`; every value that is not `Markup` is escaped."""
    made = Environment(
        loader=PackageLoader("rankopt.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    light, dark = ("".join(f"--{name}:{color};" for name, color in colors.items()) for colors in (LIGHT, DARK))
    palette = f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    made.globals |= {"cells": cells, "columns_of": columns_of}
    made.globals |= {"palette": Markup(palette), "version": version("rankopt")}
    return made


def render(template: str, **data: Any) -> str:
    """The page of a template. `finding` is its first sentence and `made_by` the command at its foot; "" omits them."""
    return environment().get_template(template).render(data)


@dataclass(frozen=True)
class FormattedCell:
    """A number of a table with a text of its own; the table sorts by the number, and NaN comes last."""

    value: float
    text: str

    @property
    def sort_key(self) -> float | str:
        return "" if math.isnan(self.value) else self.value


def brief(value: float | None) -> FormattedCell | None:
    """A measured number, such as seconds, with three digits."""
    return None if value is None else FormattedCell(value, f"{value:.3g}")


def cells(head: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[bool], list[list[Any]]]:
    """Which columns hold only numbers and None, and the rows as `FormattedCell`, text and None (unknown)."""
    lines = [[_cell(value) for value in row] for row in rows]
    return [not any(isinstance(line[i], str) for line in lines) for i in range(len(head))], lines


def _cell(value: object) -> FormattedCell | str | None:
    if value is None or isinstance(value, FormattedCell):
        return value
    if isinstance(value, float):
        return FormattedCell(value, f"{value:.6g}")
    return FormattedCell(value, str(value)) if type(value) is int else str(value)


def columns_of(drawings: Sequence[Drawing]) -> int:
    """How many of these figures a wide page shows side by side; those with panels have lines of their own."""
    return {0: 1, 1: 1, 2: 2, 4: 2}.get(sum(drawing.panels == 1 for drawing in drawings), 3)


LIGHT = {
    "paper": "#fcfcfb", "ink": "#0b0b0b", "soft": "#52514e", "rule": "#dddcd8",
    "s1": "#2a78d6", "s2": "#eb6834", "s3": "#1baf7a", "s4": "#eda100",
    "s5": "#e87ba4", "s6": "#008300", "s7": "#4a3aa7", "s8": "#e34948",
    "h0": "#edf4fd", "h1": "#cde2fb", "h2": "#9ec5f4", "h3": "#6da7ec", "bad": "#f7b3ab", "none": "#eeedea",
}  # fmt: skip
DARK = {
    "paper": "#1a1a19", "ink": "#ffffff", "soft": "#c3c2b7", "rule": "#3d3d3a",
    "s1": "#3987e5", "s2": "#d95926", "s3": "#199e70", "s4": "#c98500",
    "s5": "#d55181", "s6": "#2f9e2f", "s7": "#9085e9", "s8": "#e66767",
    "h0": "#16263b", "h1": "#0d366b", "h2": "#184f95", "h3": "#256abf", "bad": "#8f3128", "none": "#2c2c2a",
}  # fmt: skip

SERIES = [LIGHT[f"s{i}"] for i in range(1, 9)]
SHADES = [LIGHT[f"h{i}"] for i in range(4)]  # from little to much; ink is readable on all of them
_NAMES = {color: name for name, color in LIGHT.items()}
_COLOR = re.compile("|".join(_NAMES))
WIDTHS = {1: 13.0, 2: 6.4, 3: 4.3}  # inches of a figure by the number of columns: letters are equal at 1300 pixels
HEIGHT, PANEL_COLUMNS, PANEL_HEIGHT = 3.4, 4, 1.6  # inches, number, inches of a row
LEGEND_LINE = 0.19  # inches that a line of the legend adds to the height
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)))  # of series 1 to 8, 9 to 16 and 17 to 24

STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "rankopt", "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5, "axes.titlesize": 11,
    "axes.edgecolor": LIGHT["soft"], "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": LIGHT["rule"], "grid.linewidth": 0.6, "axes.axisbelow": True,
    "xtick.color": LIGHT["soft"], "ytick.color": LIGHT["soft"], "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"], "axes.titlecolor": LIGHT["ink"], "legend.frameon": False, "legend.fontsize": 9.5,
    "axes.prop_cycle": f"cycler('color', {SERIES})",
    "lines.linewidth": 1.8, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "hatch.linewidth": 0.8, "text.parse_math": False,
}  # fmt: skip


class Drawing:
    """A figure in the style of the page: draw within `with Drawing(...) as axes`; then `svg` returns it. title: above
    the figure. caption: the text and the label for screen readers. x, y: labels of the axes. panels: number of `axes`
    with common scales. Two or more labeled lines of one panel get a legend below the axes."""

    def __init__(
        self, title: str, caption: str, x: str = "", y: str = "", height: float = HEIGHT, panels: int = 1
    ) -> None:
        self.title, self.caption, self.x, self.y, self.height, self.panels = title, caption, x, y, height, panels

    def __enter__(self) -> Axes:
        import matplotlib
        from matplotlib.figure import Figure

        self._style = matplotlib.rc_context(STYLE)
        self._style.__enter__()
        columns = min(self.panels, PANEL_COLUMNS)
        rows = -(-self.panels // columns)
        self._figure: Figure = Figure(layout="constrained")
        grid = self._figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        self.axes: list[Axes] = grid.ravel().tolist()
        for axes in self.axes[self.panels :]:
            axes.set_visible(False)
        first: Axes = self.axes[0]
        if self.panels == 1:
            first.set_title(shortened(self.title, 40), loc="left")
            first.set(xlabel=self.x, ylabel=shortened(self.y))
        else:
            self.height = 0.7 + PANEL_HEIGHT * rows
            self._figure.suptitle(self.title, x=0.0, ha="left", fontsize=STYLE["axes.titlesize"])
            self._figure.supxlabel(self.x, fontsize=STYLE["font.size"])
            self._figure.supylabel(self.y, fontsize=STYLE["font.size"])
        return first

    def __exit__(self, *_: object) -> None:
        self._style.__exit__(None, None, None)

    def svg(self, columns: int = 3) -> Markup:
        """The figure for a page that shows this many of them side by side."""
        import matplotlib

        columns = columns if self.panels == 1 else 1
        handles, labels = self._figure.axes[0].get_legend_handles_labels()
        lines = 0
        with matplotlib.rc_context(STYLE):
            if len(labels) > 1:
                across = 2 if columns > 2 else 3
                lines = -(-len(labels) // across) + any("\n" in label for label in labels)
                labels = [shortened(label, 60 if columns == 1 else 24) for label in labels]
                self._figure.legend(handles, labels, loc="outside lower left", ncols=across, handlelength=2.2)
            self._figure.set_size_inches(WIDTHS[columns], self.height + LEGEND_LINE * lines)
            return _svg(self._figure, self.caption)


def log_scale(axes: Axes, which: str) -> None:
    """Make axis "x" or "y" logarithmic, with plain numbers (0.01 or 1e-06); call it when everything is drawn."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100.0 * low else (1.0, 2.0, 5.0), numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def line_style(index: int) -> dict[str, Any]:
    """The color and dashes of series `index`, from 0."""
    return {"color": SERIES[index % len(SERIES)], "linestyle": DASHES[index // len(SERIES) % len(DASHES)]}


def shortened(name: str, most: int = 24) -> str:
    """The name, cut to `most` characters; tables show the full name."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _svg(figure: Figure, caption: str) -> Markup:
    """The figure as an <svg> element that fills its container; its ids differ from those of all other figures."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn = text.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :].rstrip(), flags=re.DOTALL)
    # Without indentation, ids that nothing refers to, and empty groups.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", drawn)
    drawn = re.sub(r"<g/>\n", "", re.sub(r"\s*\n\s*", "\n", drawn))
    prefix = f"f{crc32(drawn.encode()):08x}-"
    drawn = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", drawn)
    # The page chooses the size; the view box keeps the proportions.
    head, tag, rest = drawn.partition(">")
    head = re.sub(r' (width|height)="[^"]*"', "", head.replace("\n", " ")).removeprefix("<svg")
    label = Markup('<svg role="img" aria-label="{}"').format(caption)
    return label + Markup(_COLOR.sub(lambda match: f"var(--{_NAMES[match[0]]})", head + tag + rest))
