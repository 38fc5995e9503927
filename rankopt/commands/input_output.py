"""Input and output of the commands: text tables, JSON, HTML reports, data files and output paths.

Output paths are checked before the work begins, so that no run ends at a path that cannot be written.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankopt.errors import DataError

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


def queries_at(path: str, unjudged: float | None = None, n_features: int | None = None, ranker: Any = None) -> Queries:
    """The queries at a path: a folder that `rankopt convert` wrote, a table (parquet, CSV), else a LETOR file.

    ranker: its features are read from a table, by name if it knows names; grades are then optional."""
    from rankopt.data.tables import find_column, is_table, queries_of_frame, read_table, table_at

    if is_table(path) and ranker is None:
        try:
            return _as_wide(read_table(path, unjudged=unjudged), path, n_features)
        except DataError as error:
            cure = "rename the column of grades to 'relevance'"
            raise DataError(re.sub("pass relevance='.*", cure, str(error))) from error
    if is_table(path):
        table, names = table_at(path), getattr(ranker, "feature_names_in_", None)
        relevance = find_column("relevance", None, [str(name) for name in table.column_names], path)
        features = None if names is None else [str(name) for name in names]
        queries = queries_of_frame(table, path, None, relevance, None, features, None, unjudged)
        return _as_wide(queries, path, n_features)
    if not Path(path).is_dir():
        from rankopt.data.svmlight.reader import read_svmlight

        return read_svmlight(path, unjudged=unjudged, n_features=n_features)
    from rankopt.data.stored_folder import open_queries

    return _as_wide(open_queries(path), path, n_features)


def _as_wide(queries: Queries, path: str, n_features: int | None) -> Queries:
    """The queries. Raises DataError unless they have `n_features` features."""
    if n_features is not None and queries.n_features != n_features:
        raise DataError(
            f"{path} has {queries.n_features} features but {n_features} are needed; store it with {n_features}."
        )
    return queries


def model_and_queries(
    model: str, data: str, unjudged: float | None, attributes: str | None = None
) -> tuple[Any, Queries]:
    """A saved model, and queries with its features. attributes: a CSV file of further attributes of the documents."""
    from rankopt.data import read_attributes
    from rankopt.rankers import load_model

    ranker = load_model(model)
    queries = queries_at(data, unjudged=unjudged, n_features=ranker.n_features_in_, ranker=ranker)
    return ranker, queries if attributes is None else read_attributes(attributes, queries)


def check_attributes(queries: Queries, constraints: Any) -> None:
    """Raise a usage error where constraints use an attribute that the queries lack."""
    missing = [name for name in getattr(constraints, "attributes", ()) if name not in queries.attributes]
    if missing:
        raise click.UsageError(f"no attribute {missing[0]!r} is known: give --attributes FILE with such a column")


class OutputPath(click.Path):
    """A parameter type: a file (or folder) that can be written; else a usage error.

    made: whether missing parent folders are created. dash: whether "-", standard output, is allowed.
    """

    def __init__(self, *, folder: bool = False, made: bool = False, dash: bool = False) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, allow_dash=dash)
        self.made = made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not (path == "-" and self.allow_dash):
            try:
                reason = self._why_not_writable(os.fsdecode(path))
            except OSError as error:
                reason = f"{str(path)[:60]!r}: {error.strerror}; choose another path"
            if reason is not None:
                self.fail(reason, param, ctx)
        return path

    def _why_not_writable(self, path: str) -> str | None:
        """The reason why the path cannot be written; None if it can. OSError for names that the system refuses."""
        if not path:
            return "the name is empty; give a path"
        target = Path(path)
        if not _present(target):
            target = target.parent
            while not _present(target) and self.made:
                target = target.parent
            if not _present(target):
                return f"{path!r}: there is no folder '{target}'; make it first, or choose another"
            if not target.is_dir():
                return f"{path!r}: '{target}' is a file, not a folder; choose another path"
        if not os.access(target, os.W_OK):
            return f"{path!r}: '{target}' cannot be written to; choose another path"
        return None


def _present(target: Path) -> bool:
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def write_output(path: str, content: bytes) -> None:
    """Write a file atomically; write directly to "-" (standard output), a device or a pipe."""
    replaced = path != "-" and (Path(path).is_file() or not Path(path).exists())
    with click.open_file(path, "wb", atomic=replaced) as file:
        file.write(content)


json_option = click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of text.")
report_option = click.option("--report", metavar="FILE", type=OutputPath(made=True), help="Also write an HTML report.")


unjudged_option = click.option(
    "--unjudged-grade", "unjudged", type=float, help="The grade of documents with a negative label."
)


def as_json(record: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become null."""

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
    """The command line of this call."""
    context = click.get_current_context()
    words = ["rankopt", str(context.command.name)]
    for part in context.command.get_params(context):
        value: Any = context.params.get(str(part.name))
        if context.get_parameter_source(str(part.name)) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(part, click.Option) and part.is_flag:
            words.append(part.opts[0] if value else (part.secondary_opts or part.opts)[0])
        else:
            for one in value if part.multiple or part.nargs == -1 else (value,):
                name = [part.opts[0]] if isinstance(part, click.Option) else []
                words += [*name, *map(str, one if isinstance(one, tuple) else (one,))]
    return shlex.join(words)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns: text to the left, numbers to the right, a bold head on a terminal."""
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
    """Write a page and print its path on standard error."""
    from rankopt.report import save

    click.echo(f"wrote {save(page, path)}", err=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a status line on a terminal; nothing in a pipe."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _number(text: object) -> bool:
    return isinstance(text, str) and text[:1] in "-0123456789" and text != "-"
