"""`rankopt train`: fit a ranker on a file, choose λ on another, save it. `rankopt resume`: continue such a training."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rankopt.commands import options as common
from rankopt.commands.training_run import Training, destination


@click.command(cls=common.EstimatorCommand)
@click.argument("train_file", metavar="TRAIN", type=common.EXISTING)
@common.column_options
@click.option("--model", required=True, type=common.OutputPath(), help="File of the model.")
@click.option(
    "--ranker", type=click.Choice([*common.RANKERS]), default="margin",
    help="What is trained: a bound of the regret of the measure, a loss of scores, pairs, the smoothed measure, the "
    "measure itself by weights or by trees, least squares, or trees on the bound. The "
    "options below are those of this ranker: `rankopt train --ranker NAME --help` lists them.",
)  # fmt: skip
@common.quota_options
@click.option(
    "--validate", type=common.EXISTING, help="Data on which repeated options are chosen, and the number of trees."
)
@common.unjudged_option
@common.report_option
@common.json_option
def train(
    train_file: str,
    model: str,
    validate: str | None,
    unjudged: float | None,
    report: str | None,
    json_: bool,
    quotas: common.Quotas,
    columns: common.Columns,
    **_options: Any,
) -> None:
    """Train a ranker on TRAIN and save the model.

    \b
    rankopt train train.parquet --model model.rankopt --relevance click_grade

    TRAIN is a table (parquet, CSV, Feather), a LETOR / SVMlight file, or a folder that `rankopt convert` wrote.

    Under quotas --ranker margin is trained for the lists that these admit. Other rankers are trained for lists without
    quotas; theirs apply to --validate and to `rank`. The attributes are columns of TRAIN.

    Each value of --lam and of --position-weights is a separate fit, so that each can be interrupted and resumed; in
    Python, `path` of a ranker reuses work for a convex bound. The best on --validate is saved.

    The report has one line per fit: the certificate of the ranker, the seconds, the measure on --validate.
    Ctrl-C ends training and saves the best weights so far; with --checkpoint, `rankopt resume` continues a training
    that was interrupted or killed and ends at the same weights.
    """
    context = click.get_current_context()
    ranker = common.chosen_ranker(context)
    estimator = common.RANKERS[ranker]
    parameters, options = common.parameters_of(estimator), common.given_options(context, estimator)
    quotas.check_k(alone=False)
    checkpoint, every = options.pop("checkpoint", None), options.pop("every", None)
    if checkpoint is None and every is not None:
        raise click.UsageError("--checkpoint-every needs --checkpoint DIR")
    tried = {name: tuple(dict.fromkeys(options.pop(name, ()))) for name in common.TRIED}
    for name, values in tried.items():
        if len(values) > 1 and validate is None:
            option = common.options_of(estimator)[name].opts[0]
            raise click.UsageError(f"several {option} need --validate FILE to choose on")
    if "lam" in parameters and not tried["lam"]:
        tried["lam"] = (parameters["lam"].default,)
    if len(tried["position_weights"]) == 1:
        (options["position_weights"],) = tried.pop("position_weights")
    options.setdefault("measure", parameters["measure"].default)
    files = (
        os.path.abspath(train_file),
        os.path.abspath(model),
        None if validate is None else os.path.abspath(validate),
    )
    training = Training(
        *files,
        tried["lam"],
        unjudged,
        10.0 if every is None else every,
        options,
        tried.get("position_weights", ()),
        ranker,
        columns,
        quotas,
    )
    training.run(json_, None if checkpoint is None else Path(checkpoint), report)


@click.command(cls=common.Command)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--model",
    type=common.OutputPath(),
    help="File of the model [that of the training, if it is in the parent folder of DIR].",
)
@click.option("--max-iter", type=int, help="Another limit of steps; steps before the interruption count.")
@click.option("--time-limit", type=float, help="Another limit of seconds for each fit; earlier seconds count.")
@click.option("--engine", help="Another engine.")
@click.option("--n-jobs", type=int, help="Another number of threads or workers.")
@click.option("--yes", is_flag=True, help="Replace a file that this training did not write without asking.")
@common.json_option
def resume(folder: str, model: str | None, yes: bool, json_: bool, **options: Any) -> None:
    """Continue the training that `rankopt train --checkpoint DIR` began, with the same result as without interruption.

    \b
    rankopt resume checkpoints

    DIR holds the files and the options. Finished fits are not repeated.

    DIR may be someone else's, so the model is written to the path in DIR only if that is in the parent folder of DIR;
    else it is written to that folder under the same name, or to --model. An existing file is replaced if this training
    wrote it, or if it was there when training began; else the command asks.
    """
    training = Training.from_folder(Path(folder))
    training = replace(training, model=destination(Path(folder), training.model, model, yes))
    training.with_options(**options).run(json_, Path(folder))
