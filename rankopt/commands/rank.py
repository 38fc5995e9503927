"""`rankopt rank`: the best admissible ranking of each query of a file. `rankopt predict`: scores of its documents."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rankopt.commands.input_output import as_json, check_attributes, model_and_queries, write_output
from rankopt.commands.options import Columns, Command, OutputPath, column_options, json_option, unjudged_option

if TYPE_CHECKING:
    from rankopt.constraints import Admissible
    from rankopt.data.queries import Queries

QUOTA = re.compile(r"(?P<count>\d+):(?P<attribute>[^=@:]+)(?:=(?P<value>[^@]*))?(?:@(?P<first>\d+))?")
"""COUNT:ATTRIBUTE, COUNT:ATTRIBUTE=VALUE, either with @P for the first P positions."""


@click.command(cls=Command)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True))
@column_options
@click.option("--k", type=click.IntRange(1), help="Number of documents per query; required with quotas [all].")
@click.option("--attributes", type=click.Path(exists=True, dir_okay=False), help="CSV: qid, docid and one column each.")
@click.option(
    "--at-most", multiple=True, metavar="N:ATTR", help="1:site: one per site. 2:kind=ad@5: 2 ads in the first 5 (of k)."
)
@click.option("--at-least", multiple=True, metavar="N:ATTR", help="3:gender=f: three documents with this value.")
@click.option("--exactly", multiple=True, metavar="N:ATTR", help="1:kind=ad@1: the first one is an ad.")
@click.option("--on-infeasible", type=click.Choice(["error", "truncate"]), default="error", show_default=True,
              help="For a query without an admissible ranking of k: fail, or shorten its ranking.")  # fmt: skip
@click.option(
    "--format",
    "format_",
    type=click.Choice(["tab", "trec"]),
    default="tab",
    show_default=True,
    help="Tab-separated columns, or a TREC run: query Q0 document rank score tag.",
)
@click.option("--tag", help="The name of a TREC run.  [default: rankopt]")
@click.option(
    "--scores",
    type=click.Choice(["rank", "model"]),
    help="Scores of a TREC run: decreasing numbers that reproduce the order, or the model's.  [default: rank]",
)
@click.option(
    "--output", default="-", show_default=True, type=OutputPath(dash=True), help="A file, or - for standard output."
)
@json_option
def rank(
    model: str,
    data: str,
    k: int | None,
    attributes: str | None,
    at_most: tuple[str, ...],
    at_least: tuple[str, ...],
    exactly: tuple[str, ...],
    on_infeasible: Literal["error", "truncate"],
    format_: str,
    tag: str | None,
    scores: str | None,
    output: str,
    json_: bool,
    columns: Columns,
) -> None:
    """Rank each query of DATA by MODEL, optimally under quotas.

    \b
    rankopt rank model.rankopt test.parquet --k 10 --at-most 1:site

    Columns of the output: query, rank, document, score.
    Without quotas, the constraints that the model was trained under apply.
    """
    quotas = {"at_most": at_most, "at_least": at_least, "exactly": exactly}
    if any(quotas.values()) and k is None:
        raise click.UsageError("quotas need --k, the number of documents per query; add --k K")
    if format_ == "tab" and not (tag is None and scores is None):
        raise click.UsageError("--tag and --scores are options of a TREC run; add --format trec")
    if format_ == "trec" and json_:
        raise click.UsageError("--format trec and --json exclude each other; give one of them")
    from rankopt.errors import DataError

    ranker, queries = model_and_queries(model, data, 0, columns, attributes)
    admissible = _admissible(queries, k or 1, quotas, on_infeasible) if any(quotas.values()) else None
    check_attributes(queries, admissible or getattr(ranker, "constraints", None))
    try:
        orders = ranker.rank(_by_row(queries), k=k, constraints=admissible)
    except DataError as error:
        raise DataError(str(error).replace("on_infeasible='truncate'", "--on-infeasible truncate")) from error
    if len(queries) == 1:
        orders = {queries.query_ids[0]: orders}
    predicted = ranker.predict(_by_row(queries))
    if format_ == "trec":
        content = _trec_run(data, queries, orders, predicted, tag, scores).encode()
        write_output(output, gzip.compress(content, mtime=0) if output.endswith(".gz") else content)
        return
    if queries.document_ids is None:
        click.echo(f"documents are row numbers of {data}, from 0; for ids {_ids_cure(data, queries)}", err=True)
    lines = [
        {"qid": query, "rank": position, "document": _document(queries, row), "score": float(predicted[row])}
        for query, rows in orders.items()
        for position, row in enumerate(rows.tolist(), 1)
    ]
    if json_:
        as_json({"model": model, "constraints": None if admissible is None else repr(admissible), "ranking": lines})
        return
    text = "".join(f"{line['qid']}\t{line['rank']}\t{line['document']}\t{line['score']!r}\n" for line in lines)
    write_output(output, text.encode())


def _trec_run(data: str, queries: Queries, orders: Any, predicted: Any, tag: str | None, scores: str | None) -> str:
    """The rankings as a TREC run."""
    from rankopt.errors import DataError
    from rankopt.evaluation.trec import run_text

    if queries.document_ids is None:
        raise DataError(f"a TREC run names documents, but these have no ids: {_ids_cure(data, queries)}")
    name = {row: queries.document_ids[index] for index, row in enumerate(queries.input_order.tolist())}
    shown = {query: [name[row] for row in rows.tolist()] for query, rows in orders.items()}
    wanted: Any = scores or "rank"
    try:
        return run_text(queries, predicted, tag=tag or "rankopt", scores=wanted, orders=shown)
    except DataError as error:
        raise DataError(str(error).replace("scores='rank'", "--scores rank")) from error


def _ids_cure(data: str, queries: Queries) -> str:
    """How documents without ids get them: by the only column of text that differs within queries, if there is one."""
    import numpy as np

    from rankopt.data.tables import USUAL, is_table

    if is_table(data):
        query = queries.query_of(np.arange(queries.n_documents)).tolist()
        words = {name: [*zip(query, map(str, values), strict=True)] for name, values in queries.attributes.items()}
        ids = [name for name, pairs in words.items() if len(set(pairs)) == len(pairs)]
        return f"name their column: --document {shlex.quote(ids[0]) if len(ids) == 1 else 'COLUMN'}"
    cure = "write '#docid = NAME' behind each line"
    usual = ", ".join(USUAL["document"][:3])
    return (
        f"{cure} of the file, or give the table a column ({usual}), and store it again" if Path(data).is_dir() else cure
    )


def _by_row(queries: Queries) -> Queries:
    """The same queries without document ids: documents are rows of the file."""
    return queries.replace(document_ids=None)


def _document(queries: Queries, row: int) -> Any:
    return row if queries.document_ids is None else queries.document_ids[int((queries.input_order == row).argmax())]


def _admissible(
    queries: Queries, k: int, quotas: dict[str, tuple[str, ...]], on_infeasible: Literal["error", "truncate"]
) -> Admissible:
    """The constraints of the options."""
    from rankopt.constraints import Admissible

    admissible = Admissible(k, on_infeasible=on_infeasible)
    for kind, texts in quotas.items():
        for text in texts:
            option = f"--{kind.replace('_', '-')}"
            found = QUOTA.fullmatch(text)
            if found is None:
                raise click.UsageError(f"{option} {text!r}: write N:ATTRIBUTE or N:ATTRIBUTE=VALUE, @P for the first P")
            name, value, first = found["attribute"], found["value"], found["first"]
            selection: dict[str, Any] = (
                {"by": name} if value is None else {"documents": {name: _convert_value(queries, name, value)}}
            )
            if first is not None:
                if not 1 <= int(first) <= k:
                    raise click.UsageError(f"{option} {text!r}: @{first} is beyond --k {k}")
                selection["positions"] = range(int(first))
            admissible = admissible.add(kind, int(found["count"]), **selection)
    return admissible


def _convert_value(queries: Queries, name: str, value: str) -> Any:
    """The value with the attribute's type."""
    kind = queries.attributes[name].dtype.kind if name in queries.attributes else "U"
    try:
        return int(value) if kind in "iu" else float(value) if kind == "f" else value
    except ValueError:
        raise click.UsageError(f"the attribute {name!r} holds numbers; got {value!r}; give a number") from None


@click.command(cls=Command)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True))
@column_options
@click.option("--output", required=True, type=OutputPath(dash=True), help="A file, or - for standard output.")
@unjudged_option
@json_option
def predict(model: str, data: str, output: str, unjudged: float | None, json_: bool, columns: Columns) -> None:
    """Score the documents of DATA with MODEL: one score a line, in the order of the file.

    \b
    rankopt predict model.rankopt test.parquet --output scores.txt
    """
    if json_ and output == "-":
        raise click.UsageError("--json and --output - both print to standard output; write the scores to a file")
    ranker, queries = model_and_queries(model, data, unjudged, columns)
    scores = ranker.predict(queries)
    write_output(output, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    if json_:
        as_json({"output": output, "documents": len(scores), "queries": len(queries)})
