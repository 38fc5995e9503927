"""Columns as aligned lines: text to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real


def lines_of(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """A line of names and a line a row; columns are of one length.

    >>> print(*lines_of({"query": ["a", "bcd"], "regret": [0.5, 0.25]}), sep="\\n")
    query  regret
    a      0.5000
    bcd    0.2500
    """
    texts = {name: [text_of(value) for value in column] for name, column in columns.items()}
    widths = {name: max(len(name), *map(len, column), 0) for name, column in texts.items()}
    left = {name: any(isinstance(value, str) for value in column) for name, column in columns.items()}

    def line(cells: Sequence[str]) -> str:
        pairs = zip(columns, cells, strict=True)
        return "  ".join(
            cell.ljust(widths[name]) if left[name] else cell.rjust(widths[name]) for name, cell in pairs
        ).rstrip()

    return [line([*columns]), *(line(row) for row in zip(*texts.values(), strict=True))]


def text_of(value: object) -> str:
    """A number to four decimals, all else as it is."""
    if isinstance(value, Integral) or not isinstance(value, Real):
        return str(value)
    return f"{float(value):.4f}" if abs(float(value)) < 1e4 else f"{float(value):.4g}"
