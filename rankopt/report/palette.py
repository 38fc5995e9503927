"""The colours of a page, light and dark, as CSS variables; figures are drawn in the light ones and name the variable.

The order of the eight series keeps neighbours apart for readers who do not tell red from green; further series repeat
the colours with dashes.
"""

from __future__ import annotations

import re

__all__ = ["LIGHT", "SERIES", "SHADES", "named", "rules"]

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
