"""`rankopt train --trees`: trees on the bound in place of a linear ranker."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from click.core import ParameterSource

from rankopt.commands.output import as_json
from rankopt.commands.reading import queries_at

__all__ = ["train_trees"]

TAKEN = ("measure", "bound", "decay", "normalize", "n_jobs")
"""Options that trees have too; each keeps the ranker's own default unless it is given."""

BESIDE = ("train_file", "model", "validate", "unjudged", "json_", "trees")
"""Options that are about files and output, whatever is trained."""


def train_trees(context: click.Context) -> None:
    """Fit a `BoostedRanker` on the files of this call of `train`, save it and report.

    A usage error for an option that only linear rankers have.
    """
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    for option in context.command.params:
        if option.name in given and option.name not in (*TAKEN, *BESIDE):
            raise click.UsageError(f"{option.opts[0]} is an option of linear rankers, not of --trees")
    if len(given.get("decay", ())) > 1:
        raise click.UsageError("several --decay are tried for linear rankers, not for --trees; give one")
    files = context.params
    folder = Path(os.path.abspath(files["model"])).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.UsageError(f"--model {files['model']}: the folder {folder} does not exist or cannot be written to")
    from rankopt.boosting import BoostedRanker

    queries = queries_at(files["train_file"], unjudged=files["unjudged"])
    validation = None
    if files["validate"] is not None:
        validation = queries_at(files["validate"], unjudged=files["unjudged"], n_features=queries.n_features)
    options: dict[str, Any] = {name: given[name] for name in TAKEN if given.get(name) is not None}
    if "decay" in options:
        (options["decay"],) = options["decay"]
    ranker, began = BoostedRanker(**options, verbose=int(not files["json_"])), perf_counter()
    ranker.fit(queries, eval_set=validation)
    seconds = perf_counter() - began
    ranker.save(files["model"])
    found = getattr(ranker, "eval_score_", None)
    if files["json_"]:
        told = {
            "model": files["model"],
            "rounds": ranker.n_rounds_,
            "models": len(ranker.trees_),
            "seconds": seconds,
            "validation": found,
        }
        as_json(told)
        return
    judged = "" if found is None else f", {files['measure']} on validation {found:.4f}"
    click.echo(f"{len(ranker.trees_)} models of {ranker.n_rounds_} trees in {seconds:.1f} s{judged}")
    click.echo(f"wrote {files['model']}")
