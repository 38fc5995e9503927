"""Input and output of the commands: text tables, JSON, HTML reports and data files."""

from __future__ import annotations

import json
import math
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import click
from click.core import ParameterSource

from formulations.display import aligned
from rankopt.commands.options import Columns, cures_as_options
from rankopt.errors import DataError, ModelError

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


DROP = r", or drop columns: --drop .*?(?=; \d+ columns have|$)|, or the column: --drop COLUMN"
"""Cures of data that do not help a model, which needs all its features."""


def queries_at(
    path: str, unjudged: float | None = None, n_features: int | None = None, columns: Columns | None = None,
    features: Sequence[str] | None = None, graded: bool = True, labels: Sequence[str] = (), keep_missing: bool = False,
    trained: Mapping[str, str] | None = None,
) -> Queries:  # fmt: skip
    """The queries at a path: a folder that `rankopt convert` wrote, a table (parquet, CSV), else a LETOR file.

    columns: of a table; prints on standard error which are used for what. trained: a model's columns, used where they
    exist and `columns` names no others. features: columns of a table that are the features unless `columns` names
    others. graded: whether grades are required. labels: columns that quotas count by, which are attributes even if they
    hold numbers. keep_missing: whether features may lack values."""
    from rankopt.data.tables import is_table

    columns, missing = columns or Columns(), math.nan if keep_missing else None
    if is_table(path):
        with cures_as_options():
            queries = _queries_of_table(path, unjudged, columns, features, graded, labels, missing, trained or {})
            return _as_wide(queries, path, n_features)
    columns.check_unused(f"{path} is no table (parquet, CSV, Feather)")
    if not Path(path).is_dir():
        from rankopt.data.svmlight.reader import read_svmlight

        with cures_as_options():
            return read_svmlight(path, missing=missing, unjudged=unjudged, n_features=n_features)
    from rankopt.data.stored_folder import open_queries

    return _as_wide(open_queries(path), path, n_features)


LISTED = 20  # most features that are printed by name


def _queries_of_table(
    path: str, unjudged: float | None, columns: Columns, features: Sequence[str] | None, graded: bool,
    labels: Sequence[str], missing: float | None, trained: Mapping[str, str],
) -> Queries:  # fmt: skip
    from rankopt.data.queries import attributes_text
    from rankopt.data.tables import find_column, queries_of_frame, table_at

    table = table_at(path)
    table = table.drop_columns(columns.listed("drop", table.column_names, path))
    names = list(table.column_names)
    known = {role: name for role, name in trained.items() if name in names and (graded or role != "relevance")}
    wanted = {"qid": None, "relevance": None, "document": None, **known, **columns.named}
    if no_grades := wanted["relevance"] == "none" and "none" not in names:
        wanted["relevance"] = None
    roles = {role: find_column(role, name, names, path) for role, name in wanted.items()}
    grades = None if no_grades else roles["relevance"] or ("auto" if graded else None)
    if not graded and features is not None and wanted["relevance"] is None:  # a model needs no grades to predict
        grades = None
    features = columns.listed("features", names, path) or features
    queries = queries_of_frame(
        table, path, roles["qid"], grades, roles["document"], features, None, unjudged, labels, missing
    )
    listed = queries.feature_names if queries.n_features <= LISTED else None
    named = "" if listed is None else f" ({', '.join(map(str, listed))})"
    as_attributes = [f"no features but {text}" for text in attributes_text([*queries.attributes])]
    used = {**roles, "relevance": grades, "features": f"{queries.n_features}{named}"}
    shown = ", ".join([*(f"{role}: {name or 'none'}" for role, name in used.items()), *as_attributes])
    click.echo(f"read {path}; {shown}", err=True)
    return queries


def _as_wide(queries: Queries, path: str, n_features: int | None) -> Queries:
    """The queries. Raises DataError unless they have `n_features` features."""
    if n_features is not None and queries.n_features != n_features:
        raise DataError(f"{path} has {queries.n_features} features and needs {n_features}; store it with {n_features}.")
    return queries


def model_and_queries(
    model: str, data: str, unjudged: float | None, columns: Columns, attributes: str | None = None,
    graded: bool = False, labels: Sequence[str] = (),
) -> tuple[Any, Queries]:  # fmt: skip
    """A saved model, and queries with its features. attributes: a CSV file of further attributes of the documents.
    labels: columns that quotas count by, besides those of the model's own constraints."""
    from rankopt.data.tables import is_table
    from rankopt.rankers import load_model
    from rankopt.rankers.missing import takes_missing

    try:
        ranker = load_model(model)
    except ModelError as error:
        if not is_zipfile(data):
            raise
        raise ModelError(f"{error} {data} may be the model and {model} the data: swap them.") from error
    if hasattr(ranker, "recommend"):
        raise click.UsageError(f"{model} recommends items to users and ranks no queries; use rankopt recommend {model}")
    labels = [*labels, *getattr(getattr(ranker, "constraints", None), "attributes", ())]
    names, categories = getattr(ranker, "feature_names_in_", None), getattr(ranker, "categories_", {})
    texts = [name for name, known in categories.items() if any(isinstance(one, str) for one in known)]
    features = None if names is None else [str(name) for name in names]
    width = ranker.n_features_in_ - (len(texts) if is_table(data) else 0)
    needed = [one for text in columns.drop for one in (text, *text.split(",")) if one in (features or ())]
    if needed and not columns.features:
        raise click.UsageError(
            f"--drop {needed[0]}: {model} was trained on the feature {needed[0]!r} and needs it; leave --drop out"
        )
    try:
        keep, trained = takes_missing(ranker, fitted=True), getattr(ranker, "columns_", {})
        numbers = None if features is None else [name for name in features if name not in texts]
        queries = queries_at(data, unjudged, width, columns, numbers, graded, [*labels, *texts], keep, trained)
    except DataError as error:  # the model needs all its features
        raise DataError(re.sub(DROP, "", str(error))) from error
    return ranker, with_attributes(queries, attributes, trained | columns.named)


def with_attributes(queries: Queries, path: str | None, columns: Mapping[str, str]) -> Queries:
    """The queries with the attributes of a CSV file. The columns of ids are those of the data, or qid and docid."""
    from rankopt.data import read_attributes

    with cures_as_options():
        own: dict[str, Any] = {role: columns[role] for role in ("qid", "document") if role in columns}
        return queries if path is None else read_attributes(path, queries, **own)


def check_attributes(queries: Queries, constraints: Any) -> None:
    """Raise a usage error where constraints use an attribute that the queries lack."""
    from formulations.constraints.constraint import unlabeled
    from rankopt.data.validation import did_you_mean

    missing = [name for name in getattr(constraints, "attributes", ()) if name not in queries.attributes]
    if missing:
        near = did_you_mean(missing[0], queries.attributes)
        cure = f"{near} Else give" if near else ": give"
        raise click.UsageError(f"no attribute {missing[0]!r} is known{cure} --attributes FILE with such a column")
    for name in getattr(constraints, "attributes", ()):
        values = queries.attributes[name].tolist()
        without = sum(map(unlabeled, values))
        if without:
            click.echo(f"{without} of {len(values)} documents have no {name!r}: no quota by it counts them", err=True)


def shortened(lengths: Any, queries: Queries, k: int) -> str:
    """How many lists have fewer than k documents though their query has more; empty if none has."""
    import numpy as np

    short = lengths < np.minimum(np.diff(queries.offsets), k)
    if not short.any():
        return ""
    return (
        f"{short.sum()} of {len(queries)} lists are shorter than {k} (shortest: {lengths[short].min()}): "
        "the constraints admit no longer list there"
    )


def write_output(path: str, content: bytes) -> None:
    """Write a file atomically; write directly to "-" (standard output), a device or a pipe."""
    replaced = path != "-" and (Path(path).is_file() or not Path(path).exists())
    with click.open_file(path, "wb", atomic=replaced) as file:
        file.write(content)


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
    left = [all(isinstance(row[i], str) and not _number(row[i]) for row in rows) for i in range(len(head))]
    first, *lines = aligned([head, *([str(cell) for cell in row] for row in rows)], left)
    click.secho(first, bold=True)
    for line in lines:
        click.echo(line)


def write_report(path: str, page: str) -> None:
    """Write a page and print its path on standard error."""
    from rankopt.report import save

    click.echo(f"wrote {save(page, path)}", err=True)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the text of each warning of this block on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught):
                click.echo(f"warning: {text}", err=True)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show a status line on a terminal, else print it every ten seconds. Yields a function that changes the text."""
    from rich.console import Console

    from rankopt.rankers.run import PERIOD

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text) as status:
            yield status.update
        return
    began, over, latest = perf_counter(), Event(), [text]

    def report() -> None:
        while not over.wait(PERIOD):
            click.echo(f"{latest[0]} ({perf_counter() - began:.0f} s)", err=True)

    thread = Thread(target=report, daemon=True)
    thread.start()
    try:
        yield lambda changed: latest.__setitem__(0, changed)
    finally:
        over.set()
        thread.join()


def _number(text: object) -> bool:
    return isinstance(text, str) and text[:1] in "-0123456789" and text != "-"
