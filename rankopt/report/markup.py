"""Markup and data told apart: `Html` enters a page as it is, all else is escaped.

>>> element("p", "a < b", element("b", "c"), lang="en")
'<p lang="en">a &lt; b<b>c</b></p>'
"""

from __future__ import annotations

from html import escape

__all__ = ["Html", "element"]

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
