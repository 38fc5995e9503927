"""What a prompt shows of a record of any size: at most `LINES` lines of at most `WIDE` columns.

A record that tells itself in words or as a table (its own `__str__`) is shown by the first lines of that, and `print`
shows all. Any other is shown by its fields: numbers and short texts as they are, arrays and long rows by their size.

What a notebook shows of an object: a title, facts in two columns, a table, a small drawing; all text escaped.

The colours are the notebook's own, so that light and dark both read.

Results as a data frame and as a drawing; both packages are loaded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from html import escape
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.errors import FormulationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES, WIDE = 10, 120

FEW = 6
"""Members of an array or a row that are shown one by one."""

SHORT = 60
"""Columns that one field may take."""

CUT = " ..."

BRACKETS = ((tuple, "(", ")"), (list, "[", "]"), (set, "{", "}"), (frozenset, "{", "}"))


class CompactReprMixin:
    """A record whose `repr` is short however large it is.

    It stands in each class itself, where `dataclass` leaves it: a subclass cannot get the long one by forgetting.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Run(CompactReprMixin):
    ...     scores: np.ndarray
    ...     names: tuple[str, ...]
    ...     queries: int
    >>> Run(np.zeros((500, 2)), ("a",) * 500, 20)
    Run(scores=float64 (500, 2), names=('a', 'a', 'a', ... 500 in all), queries=20)
    """

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        if type(self).__str__ is not object.__str__:
            framed = hasattr(self, "to_frame")
            return first_lines(str(self), "print() and to_frame() tell" if framed else "print() tells")
        return _lines_of(type(self).__name__, [*_facts(self)])


def wrapped(sentence: str) -> str:
    """A sentence in lines of at most `WIDE` columns."""
    return "\n".join(wrap(sentence, WIDE, subsequent_indent="    "))


def first_lines(text: str, whole: str = "print() tells") -> str:
    """The text, or its first lines and how many more there are; `whole`: who tells all, and a verb."""
    every = text.splitlines()
    every = wrapped(text).splitlines() if len(every) == 1 else every  # a sentence, or a row of names
    shown = every if len(every) <= LINES else every[: LINES - 1]
    more = [] if len(every) <= LINES else [f"... and {len(every) - len(shown)} more lines; {whole} all"]
    return "\n".join([line if len(line) <= WIDE else line[: WIDE - len(CUT)] + CUT for line in shown] + more)


def _lines_of(name: str, facts: list[str]) -> str:
    """The call `name(facts)` in lines, broken between facts; those for which there is no room are counted."""
    every, line, margin = list[str](), f"{name}(", " " * (len(name) + 1)
    for place, fact in enumerate(facts):
        piece = f"{fact}, " if place < len(facts) - 1 else fact
        if len(line) + len(piece) > WIDE and line.strip() and place:
            every.append(line.rstrip())
            line = margin
            if len(every) == LINES - 1:
                return "\n".join([*every, f"{margin}... {len(facts) - place} more)"])
        line += piece
    return "\n".join([*every, f"{line})"])


def _facts(record: Any) -> Iterator[str]:
    """Its fields with what is in them; a field whose name begins with _ is nobody else's."""
    for field in fields(record) if is_dataclass(record) else ():
        if field.repr and not field.name.startswith("_") and hasattr(record, field.name):
            yield f"{field.name}={_shortly(getattr(record, field.name))}"


def _shortly(value: Any) -> str:
    """The value, or of what kind and how large it is."""
    if isinstance(value, np.ndarray):
        return _numbers(value)
    if hasattr(value, "nnz") and hasattr(value, "shape"):
        return f"{value.dtype} {value.shape} of {value.nnz} nonzeros"
    if isinstance(value, Fraction) and len(repr(value)) > SHORT:
        return f"Fraction(about {float(value):.9g})"
    if isinstance(value, str):
        return repr(value if len(value) <= SHORT else value[: SHORT - len(CUT)] + CUT)
    if isinstance(value, Mapping):
        return _members((f"{_shortly(key)}: {_shortly(one)}" for key, one in value.items()), len(value), "{", "}")
    for kind, opened, closed in BRACKETS:
        if type(value) is kind:
            return _members(map(_shortly, value), len(value), opened, closed)
    if isinstance(value, CompactReprMixin) or not is_dataclass(value) or isinstance(value, type):
        return _named(repr(value), value)
    return _named(f"{type(value).__name__}({', '.join(_facts(value))})", value)


def _numbers(array: NDArray[Any]) -> str:
    """A few numbers as they are, of others type and shape."""
    if array.ndim == 1 and array.size <= FEW and array.dtype.kind in "biuf":
        told = f"[{', '.join(f'{one:.6g}' if array.dtype.kind == 'f' else str(one) for one in array.tolist())}]"
        if len(told) <= SHORT:
            return told
    return f"{array.dtype} {array.shape}"


def _members(told: Iterable[str], length: int, opened: str, closed: str) -> str:
    """All members if they are few and short, else the first and how many there are."""
    few = [*islice(told, FEW)]
    one = "," if opened == "(" and length == 1 else ""
    whole = f"{opened}{', '.join(few)}{one}{closed}"
    if length <= FEW and len(whole) <= SHORT:
        return whole
    first = [f"{opened}{', '.join([*few[:n], f'... {length} in all'])}{closed}" for n in (3, 2, 1, 0) if n < length]
    return next((text for text in first if len(text) <= SHORT), first[-1])


def _named(text: str, value: Any) -> str:
    """The text of a value if it is short, else its kind."""
    return text if len(text) <= SHORT and "\n" not in text else f"<{type(value).__name__}>"


MOST = 10
"""Rows of a table that are shown."""

WIDE_NOTEBOOK_VIEW, HIGH = 320, 96
"""The size of a drawing in pixels."""

DASHES = ("", "5 3", "1 3", "8 3 1 3")
"""What tells the lines of a drawing apart, in the notebook's own colour."""

FAINT = "border:none;border-bottom:1px solid rgba(128,128,128,.4);padding:.15em .8em .15em 0;text-align:left"

NAMING = f"{FAINT};font-weight:normal;opacity:.7"


def view(title: str, facts: Mapping[str, object] | None = None, *parts: str) -> str:
    """The view: a title, what each fact is, and parts that are markup already."""
    rows = "".join(
        f'<tr><th scope="row" style="{NAMING}">{escape(str(name))}</th>'
        f'<td style="{FAINT}">{escape(str(value))}</td></tr>'
        for name, value in (facts or {}).items()
    )
    body = f'<table style="border-collapse:collapse;margin:.3em 0">{rows}</table>' if rows else ""
    return f"<div><strong>{escape(title)}</strong>{body}{''.join(parts)}</div>"


def lines(text: str) -> str:
    """Text of several lines: the first is the title."""
    first, _, rest = text.partition("\n")
    return view(first, {}, f'<pre style="margin:.3em 0">{escape(rest)}</pre>' if rest else "")


def paragraph(text: str) -> str:
    """A sentence or some."""
    return f"<p>{escape(text)}</p>"


def table(header: Sequence[object], rows: Iterable[Sequence[object]], most: int = MOST) -> str:
    """A table of at most so many rows; how many more there are is said below it."""
    listed = list(rows)
    head = "".join(f'<th scope="col" style="{NAMING}">{escape(str(name))}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{FAINT}">{escape(str(cell))}</td>' for cell in row) + "</tr>"
        for row in listed[:most]
    )
    more = f"<p>and {len(listed) - most} more</p>" if len(listed) > most else ""
    return f'<table style="border-collapse:collapse;margin:.3em 0"><tr>{head}</tr>{body}</table>{more}'


def curves(drawn: Mapping[str, NDArray[np.float64]], against: str) -> str:
    """Lines over the same steps as one small drawing, their ends told in words; "" where there is nothing to draw."""
    known = {name: np.asarray(values, dtype=np.float64) for name, values in drawn.items()}
    finite = np.concatenate([values[np.isfinite(values)] for values in known.values()] or [np.empty(0)])
    if finite.size < 2:
        return ""
    low, high = float(finite.min()), float(finite.max())
    room = (high - low) or 1.0
    marks = []
    for dash, (name, values) in zip(DASHES * len(known), known.items(), strict=False):
        kept = np.flatnonzero(np.isfinite(values))
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(kept.size, WIDE_NOTEBOOK_VIEW)).astype(np.int64))]
        x, y = (
            2 + (WIDE_NOTEBOOK_VIEW - 4) * kept / max(values.size - 1, 1),
            2 + (HIGH - 4) * (high - values[kept]) / room,
        )
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        marks.append(
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-dasharray="{dash}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    last = {name: values[np.isfinite(values)][-1:] for name, values in known.items()}
    ends = [f"{name} {value:.6g}" for name, values in last.items() for value in values]
    said = f"against {against}, at the end: {', '.join(ends)}"
    return (
        f'<svg role="img" aria-label="{escape(said)}" width="{WIDE_NOTEBOOK_VIEW}" height="{HIGH}" '
        f'viewBox="0 0 {WIDE_NOTEBOOK_VIEW} {HIGH}">'
        f"{''.join(marks)}</svg><p>{escape(said)}</p>"
    )


MOST_TICKS = 30
"""Beyond so many places the ticks stand where matplotlib puts them: thousands take minutes to draw."""


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame of these columns. FormulationError where pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise FormulationError("to_frame needs pandas, which is not installed; pip install pandas") from error
    return pandas.DataFrame(dict(columns))


def axes_for(axes: Axes | None) -> Axes:
    """These axes, or new ones of a figure of their own. FormulationError where matplotlib is missing."""
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise FormulationError("plot needs matplotlib, which is not installed; pip install matplotlib") from error
    fresh: Axes = plt.subplots(layout="constrained")[1]
    return fresh


def tick_each(axes: Axes, places: Floats) -> None:
    """A tick at each of these places on the horizontal axis, if they are few."""
    if places.size <= MOST_TICKS:
        axes.set_xticks(places)
