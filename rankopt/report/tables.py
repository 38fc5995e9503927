"""A table that sorts by a click on the head of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rankopt.report.markup import Html, element

__all__ = ["FormattedCell", "brief", "table"]


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
