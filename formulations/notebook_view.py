"""What a notebook shows of an object: a title, facts in two columns, a table, a small drawing; all text escaped.

The colours are the notebook's own, so that light and dark both read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["curves", "lines", "paragraph", "table", "view"]

MOST = 10
"""Rows of a table that are shown."""

WIDE, HIGH = 320, 96
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
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(kept.size, WIDE)).astype(np.int64))]
        x, y = 2 + (WIDE - 4) * kept / max(values.size - 1, 1), 2 + (HIGH - 4) * (high - values[kept]) / room
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        marks.append(
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-dasharray="{dash}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    last = {name: values[np.isfinite(values)][-1:] for name, values in known.items()}
    ends = [f"{name} {value:.6g}" for name, values in last.items() for value in values]
    said = f"against {against}, at the end: {', '.join(ends)}"
    return (
        f'<svg role="img" aria-label="{escape(said)}" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}">'
        f"{''.join(marks)}</svg><p>{escape(said)}</p>"
    )
