"""`rankopt rank`: the best admissible ranking of each query of a file. `rankopt predict`: scores of its documents."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands import options as common
from rankopt.commands.input_output import as_json, check_attributes, model_and_queries, shortened, write_output

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


class _Named(str):
    """The id of a document, with its row in the file."""

    row: int

    def __new__(cls, name: Any, row: int) -> _Named:
        made = super().__new__(cls, name)
        made.row = row
        return made


@click.command(cls=common.Command)
@click.argument("model", type=common.FILE)
@click.argument("data", type=common.EXISTING)
@common.column_options
@common.attributes_option
@common.quota_options
@click.option(
    "--format", "format_", type=click.Choice(["tab", "trec"]), default="tab",
    help="Tab-separated columns, or a TREC run: query Q0 document rank score tag.",
)  # fmt: skip
@click.option("--tag", help="The name of a TREC run.  [default: rankopt]")
@click.option(
    "--scores", type=click.Choice(["rank", "model"]),
    help="What a TREC run has as scores: decreasing numbers that reproduce the order, or the model's.  [default: rank]",
)  # fmt: skip
@click.option("--output", default="-", type=common.OutputPath(dash=True), help="A file, or - for standard output.")
@common.json_option
def rank(
    model: str,
    data: str,
    attributes: str | None,
    format_: str,
    tag: str | None,
    scores: str | None,
    output: str,
    json_: bool,
    quotas: common.Quotas,
    columns: common.Columns,
) -> None:
    """Rank each query of DATA by MODEL, optimally under quotas.

    \b
    rankopt rank model.rankopt test.parquet --k 10 --at-most 1:site

    Each line of the output holds query, rank, document and score, without a header line.
    Without quotas, the constraints that the model was trained under apply.
    """
    import numpy as np

    quotas.check_k(alone=True)
    if format_ == "tab" and not (tag is None and scores is None):
        raise click.UsageError("--tag and --scores are options of a TREC run; add --format trec")
    if format_ == "trec" and json_:
        raise click.UsageError("--format trec and --json exclude each other; give one of them")
    ranker, queries = model_and_queries(model, data, 0, columns, attributes, labels=quotas.labels)
    admissible = quotas.admissible(queries, getattr(ranker, "constraints", None))
    check_attributes(queries, admissible)
    by_row = queries.replace(document_ids=None)  # documents are rows of the file
    named = by_row
    if queries.document_ids is not None:  # ties fall by id, as in Python
        named = queries.replace(document_ids=tuple(map(_Named, queries.document_ids, queries.input_order.tolist())))
    with common.cures_as_options():
        orders = ranker.rank(named, k=quotas.k, constraints=admissible)
    if len(queries) == 1:
        orders = {queries.query_ids[0]: orders}
    orders = {query: np.array([getattr(one, "row", one) for one in order]) for query, order in orders.items()}
    if admissible is not None:
        k = min(admissible.k, quotas.k or admissible.k)
        short = shortened(np.array([orders[query].size for query in queries.query_ids]), queries, k)
        click.echo(short, err=True, nl=bool(short))
    predicted = ranker.predict(by_row)
    ids = (
        {}
        if queries.document_ids is None
        else dict(zip(queries.input_order.tolist(), queries.document_ids, strict=True))
    )
    if format_ == "trec":
        content = _trec_run(data, queries, ids, orders, predicted, tag, scores).encode()
        write_output(output, gzip.compress(content, mtime=0) if output.endswith(".gz") else content)
        return
    if queries.document_ids is None:
        click.echo(f"documents are row numbers of {data}, from 0; for ids {ids_cure(data, queries)}", err=True)
    lines = [
        {"qid": query, "rank": position, "document": ids.get(row, row), "score": float(predicted[row])}
        for query, rows in orders.items()
        for position, row in enumerate(rows.tolist(), 1)
    ]
    if json_:
        as_json({"model": model, "constraints": None if admissible is None else repr(admissible), "ranking": lines})
        return
    text = "".join(f"{line['qid']}\t{line['rank']}\t{line['document']}\t{line['score']!r}\n" for line in lines)
    write_output(output, text.encode())


def _trec_run(
    data: str, queries: Queries, ids: dict[int, Any], orders: Any, predicted: Any, tag: str | None, scores: str | None
) -> str:
    from rankopt.errors import DataError
    from rankopt.evaluation.trec import run_text

    if queries.document_ids is None:
        raise DataError(f"a TREC run names documents, but these have no ids: {ids_cure(data, queries)}")
    shown = {query: [ids[row] for row in rows.tolist()] for query, rows in orders.items()}
    wanted: Any = scores or "rank"
    try:
        return run_text(queries, predicted, tag=tag or "rankopt", scores=wanted, orders=shown)
    except DataError as error:
        raise DataError(str(error).replace("scores='rank'", "--scores rank")) from error


def ids_cure(data: str, queries: Queries) -> str:
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


@click.command(cls=common.Command)
@click.argument("model", type=common.FILE)
@click.argument("data", type=common.EXISTING)
@common.column_options
@click.option("--output", required=True, type=common.OutputPath(dash=True), help="A file, or - for standard output.")
@common.unjudged_option
@common.json_option
def predict(model: str, data: str, output: str, unjudged: float | None, json_: bool, columns: common.Columns) -> None:
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
