"""`rankopt train` of a ranker that is fitted once and not taken up again: least squares, trees, grades as classes."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from rankopt.commands.output import as_json
from rankopt.commands.reading import queries_at
from rankopt.commands.training_rankers import RANKERS, given_options

__all__ = ["train_once"]


def train_once(context: click.Context, name: str) -> None:
    """Fit the ranker of this name on the files of this call of `train`, save it and report."""
    options, files = given_options(context, name), context.params
    if len(options.get("decay", ())) > 1:
        raise click.UsageError(f"several --decay are tried for --ranker margin, not for {name}; give one")
    if "decay" in options:
        (options["decay"],) = options["decay"]
    folder = Path(os.path.abspath(files["model"])).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.UsageError(f"--model {files['model']}: the folder {folder} does not exist or cannot be written to")
    import rankopt.rankers

    queries = queries_at(files["train_file"], unjudged=files["unjudged"])
    validation = None
    if files["validate"] is not None:
        validation = queries_at(files["validate"], unjudged=files["unjudged"], n_features=queries.n_features)
    made = getattr(rankopt.rankers, RANKERS[name].ranker)
    shown = {"verbose": int(not files["json_"])} if "verbose" in made._get_param_names() else {}
    ranker, began = made(**options, **shown), perf_counter()
    ranker.fit(queries, eval_set=validation)
    seconds = perf_counter() - began
    ranker.save(files["model"])
    found, (numbers, what) = getattr(ranker, "eval_score_", None), learned(ranker)
    if files["json_"]:
        as_json({"model": files["model"], **numbers, "seconds": seconds, "validation": found})
        return
    judged = "" if found is None else f", {files['measure']} on validation {found:.4f}"
    click.echo(f"{what} in {seconds:.1f} s{judged}")
    click.echo(f"wrote {files['model']}")


def learned(ranker: Any) -> tuple[dict[str, Any], str]:
    """What was learned, in numbers and in words."""
    if hasattr(ranker, "weights_"):
        return {"trees": ranker.weights_.size}, f"{ranker.weights_.size} trees"
    if hasattr(ranker, "trees_"):
        trees = len(ranker.trees_)
        return {"rounds": ranker.n_rounds_, "models": trees}, f"{trees} models of {ranker.n_rounds_} trees"
    if hasattr(ranker, "classes_"):
        grades = ranker.classes_.tolist()
        return {"rounds": ranker.n_rounds_, "grades": grades}, f"{ranker.n_rounds_} rounds on {len(grades)} grades"
    return {"features": ranker.n_features_in_}, f"{ranker.n_features_in_} weights"
