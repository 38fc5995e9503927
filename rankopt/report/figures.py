"""Figures of matplotlib as inline SVG: text stays text, and colours follow the page, light or dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

from rankopt.report.markup import Html, element
from rankopt.report.palette import LIGHT, SERIES, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Drawing", "by_tens", "figures", "line_style", "shortened"]

WIDTH, HEIGHT = 5.2, 3.4
"""Inches; at this size a page of 400 pixels shows the letters nearly as large as its own."""

LEGEND_LINE = 0.19
"""Inches that a line of the legend adds to the height."""

DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)))
"""Of series 1 to 8, 9 to 16 and 17 to 24."""

STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "rankopt", "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5, "axes.titlesize": 11,
    "axes.edgecolor": LIGHT["soft"], "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": LIGHT["rule"], "grid.linewidth": 0.6, "axes.axisbelow": True,
    "xtick.color": LIGHT["soft"], "ytick.color": LIGHT["soft"], "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"], "axes.titlecolor": LIGHT["ink"], "legend.frameon": False, "legend.fontsize": 9.5,
    "lines.linewidth": 1.8, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "hatch.linewidth": 0.8, "text.parse_math": False,
}  # fmt: skip


class Drawing:
    """A figure being drawn in the page's style, by `with Drawing(title, says) as axes`; afterwards `.html` is it.

    title: printed above. says: its caption, which a reader who does not see it is told too. Labelled lines, where
    there are several, are named below the axes in `columns` columns.
    """

    def __init__(self, title: str, says: str, height: float = HEIGHT, columns: int = 2) -> None:
        self.title = title
        self.says = says
        self.height = height
        self.columns = columns
        self.html = Html("")

    def __enter__(self) -> Axes:
        import matplotlib
        from matplotlib.figure import Figure

        self._style = matplotlib.rc_context(STYLE)
        self._style.__enter__()
        self._figure: Figure = Figure(figsize=(WIDTH, self.height), layout="constrained")
        axes: Axes = self._figure.add_subplot()
        axes.set_title(shortened(self.title, 40), loc="left")
        return axes

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._name_lines()
                self.html = element("figure", _svg(self._figure, self.says), element("figcaption", self.says))
        finally:
            self._style.__exit__(None, None, None)

    def _name_lines(self) -> None:
        handles, labels = self._figure.axes[0].get_legend_handles_labels()
        if len(labels) > 1:
            lines = -(-len(labels) // self.columns)
            self._figure.set_figheight(self.height + LEGEND_LINE * lines)
            labels = [shortened(label) for label in labels]
            self._figure.legend(handles, labels, loc="outside lower left", ncols=self.columns, handlelength=2.2)


def figures(drawings: Sequence[Drawing]) -> Html:
    """Figures side by side where there is room, else one below the other."""
    return element("div", *(drawing.html for drawing in drawings), class_="figures")


def by_tens(axes: Axes, which: str) -> None:
    """Axis "x" or "y" logarithmic, with plain numbers, 0.01 or 1e-06; called when all is drawn."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100.0 * low else (1.0, 2.0, 5.0), numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def line_style(place: int) -> dict[str, Any]:
    """The colour and dashes of series `place`, from 0."""
    return {"color": SERIES[place % len(SERIES)], "linestyle": DASHES[place // len(SERIES) % len(DASHES)]}


def shortened(name: str, most: int = 24) -> str:
    """A name that leaves room for what it names; tables have it whole."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _svg(figure: Figure, says: str) -> Html:
    """The figure as an <svg> element that fills its place; its ids are apart from those of all other figures."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :].rstrip()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = _slim(drawn)
    own = f"f{crc32(drawn.encode()):08x}-"
    drawn = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{own}", drawn)
    # The size is the page's to choose; the view box keeps the proportions.
    label = element("svg", role="img", aria_label=says)[len("<svg") : -len("></svg>")]
    drawn = re.sub(r'^<svg\b([^>]*?) width="[^"]*"', rf"<svg{label}\1", drawn.replace("\n", " ", 1), count=1)
    drawn = re.sub(r'^(<svg\b[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    return Html(named(drawn))


def _slim(drawn: str) -> str:
    """The drawing without indentation, ids that nothing refers to, and groups that hold nothing."""
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in asked else "", drawn)
    drawn = re.sub(r"\s*\n\s*", "\n", drawn)
    return re.sub(r"<g/>\n", "", drawn)
