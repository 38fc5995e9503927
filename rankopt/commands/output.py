"""What commands print: a table to read, or one JSON object; and the page that they write."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from rankopt.commands.target import OutputPath

__all__ = ["as_given", "as_json", "json_option", "report_option", "table", "waiting", "write_report"]

json_option = click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of text.")
report_option = click.option(
    "--report", metavar="FILE", type=OutputPath(made=True), help="Write the result as one HTML page, too."
)


def as_json(record: dict[str, Any]) -> None:
    """Print one JSON object; numbers that JSON does not know become null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    click.echo(json.dumps(plain(record), ensure_ascii=False, indent=2))


def as_given() -> str:
    """The command that runs, with the arguments that it was given."""
    context = click.get_current_context()
    words = ["rankopt", str(context.command.name)]
    for part in context.command.params:
        value = context.params.get(str(part.name))
        if context.get_parameter_source(str(part.name)) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(part, click.Option) and part.is_flag:
            words.append(part.opts[0] if value else (part.secondary_opts or part.opts)[0])
        else:
            for one in value if isinstance(value, tuple) else (value,):
                words += [*([part.opts[0]] if isinstance(part, click.Option) else []), str(one)]
    return shlex.join(words)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns, text to the left and all else to the right; bold head on a terminal."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells), 0) for i, name in enumerate(head)]
    left = [all(isinstance(row[i], str) and not _number(row[i]) for row in rows) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        parts = (
            cell.ljust(w) if is_text else cell.rjust(w) for cell, w, is_text in zip(row, widths, left, strict=True)
        )
        return "  ".join(parts).rstrip()

    click.secho(line(head), bold=True)
    for row in cells:
        click.echo(line(row))


def write_report(path: str, page: str) -> None:
    """Write a page and say so on standard error."""
    from rankopt.report import save

    click.echo(f"wrote {save(page, path)}", err=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show on a terminal that work is going on; show nothing in a pipe."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _number(text: object) -> bool:
    return isinstance(text, str) and text[:1] in "-0123456789" and text != "-"
