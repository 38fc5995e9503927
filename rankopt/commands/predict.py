"""`rankopt predict`: scores of the documents of a file."""

from __future__ import annotations

import click

from rankopt.commands.input_output import OutputPath, as_json, json_option, queries_at, unjudged_option, write_output


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True))
@click.option("--output", required=True, type=OutputPath(dash=True), help="A file, or - .")
@unjudged_option
@json_option
def predict(model: str, data: str, output: str, unjudged: float | None, json_: bool) -> None:
    """Score the documents of DATA with MODEL: one score a line, in the order of the file."""
    if json_ and output == "-":
        raise click.UsageError("--json and --output - both print to standard output; write the scores to a file")
    from rankopt.rankers import load_model

    ranker = load_model(model)
    queries = queries_at(data, n_features=ranker.n_features_in_, unjudged=unjudged)
    scores = ranker.predict(queries)
    write_output(output, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    if json_:
        as_json({"output": output, "documents": len(scores), "queries": len(queries)})
