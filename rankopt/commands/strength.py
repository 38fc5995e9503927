"""The weight of the regulariser on the command line: a number, or the name of how it is chosen."""

from __future__ import annotations

from typing import Any

import click

from rankopt.rankers import STRENGTHS

__all__ = ["Strength"]


class Strength(click.ParamType[float | str]):
    """A number, or one of `STRENGTHS`."""

    name = "number or " + " or ".join(STRENGTHS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if isinstance(value, str) and value in STRENGTHS:
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is no number; give one, or {' or '.join(STRENGTHS)}", param, ctx)
