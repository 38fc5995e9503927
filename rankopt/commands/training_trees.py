"""`rankopt train --trees` and `--mcrank`: trees on the bound, or on the grades, in place of a linear ranker."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from rankopt.commands.output import as_json
from rankopt.commands.reading import queries_at

__all__ = ["train_trees"]


class Kind(NamedTuple):
    """A ranker of trees: its name in `rankopt.rankers`, and the options that it takes; each keeps the ranker's own
    default unless it is given."""

    ranker: str
    taken: tuple[str, ...]


KINDS = {
    "trees": Kind("BoostedRanker", ("measure", "map", "bound", "decay", "normalize", "n_jobs")),
    "mcrank": Kind("McRanker", ("measure", "expected", "normalize")),
}
"""By their flags."""

BESIDE = ("train_file", "model", "validate", "unjudged", "json_", *KINDS)
"""Options that are about files and output, whatever is trained."""


def train_trees(context: click.Context, flag: str) -> None:
    """Fit the ranker of this flag on the files of this call of `train`, save it and report.

    A usage error for an option that it does not have.
    """
    kind = KINDS[flag]
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if set(KINDS) <= given.keys():
        raise click.UsageError("--trees and --mcrank are two rankers; give one of them")
    for option in context.command.params:
        if option.name in given and option.name not in (*kind.taken, *BESIDE):
            raise click.UsageError(f"{option.opts[0]} is an option of {_others(option.name)}, not of --{flag}")
    if len(given.get("decay", ())) > 1:
        raise click.UsageError("several --decay are tried for linear rankers, not for --trees; give one")
    files = context.params
    folder = Path(os.path.abspath(files["model"])).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.UsageError(f"--model {files['model']}: the folder {folder} does not exist or cannot be written to")
    import rankopt.rankers

    queries = queries_at(files["train_file"], unjudged=files["unjudged"])
    validation = None
    if files["validate"] is not None:
        validation = queries_at(files["validate"], unjudged=files["unjudged"], n_features=queries.n_features)
    options: dict[str, Any] = {name: given[name] for name in kind.taken if given.get(name) is not None}
    if "decay" in options:
        (options["decay"],) = options["decay"]
    made = getattr(rankopt.rankers, kind.ranker)
    ranker, began = made(**options, verbose=int(not files["json_"])), perf_counter()
    ranker.fit(queries, eval_set=validation)
    seconds = perf_counter() - began
    ranker.save(files["model"])
    found = getattr(ranker, "eval_score_", None)
    if flag == "trees":
        models: dict[str, Any] = {"models": len(ranker.trees_)}
        what = f"{len(ranker.trees_)} models of {ranker.n_rounds_} trees"
    else:
        models = {"grades": ranker.classes_.tolist()}
        what = f"{ranker.n_rounds_} rounds on {ranker.classes_.size} grades"
    if files["json_"]:
        told = {"model": files["model"], "rounds": ranker.n_rounds_, **models, "seconds": seconds, "validation": found}
        as_json(told)
        return
    judged = "" if found is None else f", {files['measure']} on validation {found:.4f}"
    click.echo(f"{what} in {seconds:.1f} s{judged}")
    click.echo(f"wrote {files['model']}")


def _others(option: str) -> str:
    """Whose option it is."""
    others = [f"--{flag}" for flag, kind in KINDS.items() if option in kind.taken]
    return others[0] if option == "expected" else " and ".join(["linear rankers", *others])
