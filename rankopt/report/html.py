"""Markup and data told apart: `Html` enters a page as it is, all else is escaped.

>>> element("p", "a < b", element("b", "c"), lang="en")
'<p lang="en">a &lt; b<b>c</b></p>'

A table that sorts by a click on the head of a column.

The colours of a page, light and dark, as CSS variables; figures are drawn in the light ones and name the variable.

The order of the eight series keeps neighbours apart for readers who do not tell red from green; further series repeat
the colours with dashes.

Figures of matplotlib as inline SVG: text stays text, and colours follow the page, light or dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VOID = frozenset({"meta"})
"""Elements that have no end tag."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element with this content, each piece of it escaped unless it is `Html`.

    An underscore in an attribute's name stands for a hyphen, one at its end for nothing (`class_`); True gives the bare
    name, None leaves the attribute out.
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            name = name.rstrip("_").replace("_", "-")
            words.append(name if value is True else f'{name}="{escape(str(value))}"')
    inside = "".join(piece if isinstance(piece, Html) else escape(str(piece)) for piece in content)
    return Html(f"<{' '.join(words)}>" if tag in VOID else f"<{' '.join(words)}>{inside}</{tag}>")


@dataclass(frozen=True)
class FormattedCell:
    """A number that is printed in a way of its own and sorted by its value."""

    value: float
    text: str


def brief(value: float | None) -> FormattedCell | None:
    """A measured number, such as seconds, with three digits."""
    return None if value is None else FormattedCell(value, f"{value:.3g}")


def table(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> Html:
    """Rows of text, numbers, `FormattedCell` numbers, and None for what is not known, which always sorts last.

    A column is set to the right where it holds numbers and what is not known only.
    """
    numeric = [all(_is_number(row[i]) or row[i] is None for row in rows) for i in range(len(head))]
    names = [
        element("th", element("button", name, type="button"), scope="col", class_="number" if number else None)
        for name, number in zip(head, numeric, strict=True)
    ]
    lines = [element("tr", *(_cell(value, number) for value, number in zip(row, numeric, strict=True))) for row in rows]
    body = element("table", element("thead", element("tr", *names)), element("tbody", *lines))
    wide = element("div", body, class_="wide", tabindex="0", role="region", aria_label=caption or "table")
    # A <caption> would be as narrow as its table.
    return Html(element("p", caption, class_="caption") + wide) if caption else wide


def _cell(value: object, numeric: bool) -> Html:
    if value is None:
        return element("td", "", class_="number" if numeric else None, data_value="" if numeric else None)
    if not _is_number(value):
        return element("td", value, class_="text")
    number, text = _plain(value)
    return element("td", text, class_="number" if numeric else None, data_value="" if math.isnan(number) else number)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | FormattedCell) and not isinstance(value, bool)


def _plain(value: object) -> tuple[float, str]:
    """A number and how it is printed: whole numbers whole, others with six digits."""
    if isinstance(value, FormattedCell):
        return value.value, value.text
    if isinstance(value, int):
        return value, str(value)
    assert isinstance(value, float)
    return value, f"{value:.6g}"


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
SHADES = [LIGHT[f"h{i}"] for i in range(4)]
"""From little to much, all of them grounds on which ink can be read."""

_NAMES = {colour: name for name, colour in LIGHT.items()}
_COLOUR = re.compile("|".join(_NAMES))


def rules() -> str:
    """The variables as CSS, chosen by the reader's own preference."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in colours.items()) for colours in (LIGHT, DARK)
    )  # fmt: skip
    return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


def named(svg: str) -> str:
    """The drawing with each colour of the light palette replaced by its variable."""
    return _COLOUR.sub(lambda found: f"var(--{_NAMES[found[0]]})", svg)


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
