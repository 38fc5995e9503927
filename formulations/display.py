"""Short `repr` and notebook views of records; results as data frames and plots.

A record with its own `__str__` is displayed by its first lines; `print` shows all lines. Any other record is displayed
by its fields: numbers and short strings in full, arrays and long sequences by their size.
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
from formulations.errors import FormulationError, InvalidProblemError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is loaded only where something is drawn

LINES, WIDE = 10, 120  # lines and columns at a prompt
NOTEBOOK_LINES, NOTEBOOK_WIDE = 40, 240  # lines and columns of text in a notebook
FEW = 6  # members of an array or a row that are shown one by one
SHORT = 60  # columns that one field may take

CUT = " ..."

BRACKETS = ((tuple, "(", ")"), (list, "[", "]"), (set, "{", "}"), (frozenset, "{", "}"))


class CompactReprMixin:
    """A record with a short `repr` and notebook view at any size.

    Each subclass gets `__repr__` as an attribute of its own, so that `dataclass` does not replace it.

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
            return first_lines(str(self), _show_all(self))
        return _lines_of(type(self).__name__, [f"{name}={value}" for name, value in _facts(self)])

    def _repr_html_(self) -> str:
        kind = type(self)
        if kind.__str__ is object.__str__ and kind.__repr__ is CompactReprMixin.__repr__:
            return view(kind.__name__, dict(_facts(self)))
        text = first_lines(str(self), _show_all(self), NOTEBOOK_LINES, NOTEBOOK_WIDE)
        return f'<div><pre style="margin:.3em 0">{escape(text)}</pre></div>'


def _show_all(record: object) -> str:
    """How to show the full record, as a phrase."""
    return "print() and to_frame() show" if hasattr(record, "to_frame") else "print() shows"


def wrapped(sentence: str) -> str:
    """A sentence wrapped to `WIDE` columns."""
    return "\n".join(wrap(sentence, WIDE, subsequent_indent="    "))


def plural(count: int, noun: str) -> str:
    """A number and its noun: "1 row", "2 rows"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]], left: bool | Sequence[bool] = False) -> list[str]:
    """Lines of cells in columns of one width each. left: whether cells are at the left of their column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [left] * len(widths) if isinstance(left, bool) else left
    return [
        "  ".join(
            cell.ljust(width) if side else cell.rjust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]


def first_lines(text: str, ending: str = "print() shows", most: int = LINES, wide: int = WIDE) -> str:
    """The text, or its first lines and the number of omitted ones. ending: how to show all of it."""
    every = text.splitlines()
    every = wrapped(text).splitlines() if len(every) == 1 else every  # a sentence, or a row of names
    shown = every if len(every) <= most else every[: most - 1]
    more = [] if len(every) <= most else [f"... and {len(every) - len(shown)} more lines; {ending} all"]
    return "\n".join([line if len(line) <= wide else line[: wide - len(CUT)] + CUT for line in shown] + more)


def _lines_of(name: str, facts: list[str]) -> str:
    """The call `name(facts)` in lines, broken between facts; omitted facts are counted."""
    every, line, margin = list[str](), f"{name}(", " " * (len(name) + 1)
    for index, fact in enumerate(facts):
        piece = f"{fact}, " if index < len(facts) - 1 else fact
        if len(line) + len(piece) > WIDE and line.strip() and index:
            every.append(line.rstrip())
            line = margin
            if len(every) == LINES - 1:
                return "\n".join([*every, f"{margin}... {len(facts) - index} more)"])
        line += piece
    return "\n".join([*every, f"{line})"])


def _facts(record: Any) -> Iterator[tuple[str, str]]:
    """The names of its public fields and their values, shortened."""
    for field in fields(record) if is_dataclass(record) else ():
        if field.repr and not field.name.startswith("_") and hasattr(record, field.name):
            yield field.name, _shortly(getattr(record, field.name))


def _shortly(value: Any) -> str:
    """The value, or its type and size."""
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
        return _value_text(repr(value), value)
    facts = ", ".join(f"{name}={shown}" for name, shown in _facts(value))
    return _value_text(f"{type(value).__name__}({facts})", value)


def _numbers(array: NDArray[Any]) -> str:
    """The values of a small array; dtype and shape of a large one."""
    if array.ndim == 1 and array.size <= FEW and array.dtype.kind in "biuf":
        text = f"[{', '.join(f'{one:.6g}' if array.dtype.kind == 'f' else str(one) for one in array.tolist())}]"
        if len(text) <= SHORT:
            return text
    return f"{array.dtype} {array.shape}"


def _members(items: Iterable[str], length: int, opened: str, closed: str) -> str:
    """All members if they are few and short, else the first ones and the number of members."""
    few = [*islice(items, FEW)]
    one = "," if opened == "(" and length == 1 else ""
    text = f"{opened}{', '.join(few)}{one}{closed}"
    if length <= FEW and len(text) <= SHORT:
        return text
    first = [f"{opened}{', '.join([*few[:n], f'... {length} in all'])}{closed}" for n in (3, 2, 1, 0) if n < length]
    return next((text for text in first if len(text) <= SHORT), first[-1])


def _value_text(text: str, value: Any) -> str:
    """The text of a value if it is short, else its type."""
    return text if len(text) <= SHORT and "\n" not in text else f"<{type(value).__name__}>"


STYLE = "border:none;border-bottom:1px solid rgba(128,128,128,.4);padding:.15em .8em .15em 0;text-align:left"
"""Of the cells of a notebook's table: no color of its own, so that light and dark notebooks both are readable."""


def view(title: str, facts: Mapping[str, object]) -> str:
    """HTML view: a title and a table of names and values; all text is escaped."""
    rows = "".join(
        f'<tr><th scope="row" style="{STYLE};font-weight:normal;opacity:.7">{escape(name)}</th>'
        f'<td style="{STYLE}">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    body = f'<table style="border-collapse:collapse;margin:.3em 0">{rows}</table>' if rows else ""
    return f"<div><strong>{escape(title)}</strong>{body}</div>"


MOST_TICKS = 30  # beyond so many positions matplotlib chooses the ticks: thousands take minutes to draw


def data_frame(data: Mapping[str, Any] | Sequence[Mapping[str, Any]], index: Sequence[Any] | None = None) -> Any:
    """A pandas data frame of these columns, or of one record a row. Raises FormulationError if pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise FormulationError("a data frame needs pandas, which is not installed; pip install pandas") from error
    return pandas.DataFrame(data, index=index)


def axes_for(axes: Axes | None) -> Axes:
    """These axes, or axes of a new figure. Raises FormulationError if matplotlib is missing."""
    if axes is not None:
        if not callable(getattr(axes, "fill_between", None)):
            raise InvalidProblemError(f"axes must be axes of matplotlib or None; got a {type(axes).__name__}.")
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise FormulationError("plot needs matplotlib, which is not installed; pip install matplotlib") from error
    fresh: Axes = plt.subplots(layout="constrained")[1]
    return fresh


def tick_each(axes: Axes, ticks: Floats) -> None:
    """Put a tick at each of these positions of the horizontal axis, if they are few."""
    if ticks.size <= MOST_TICKS:
        axes.set_xticks(ticks)
