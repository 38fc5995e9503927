"""`rankopt resume`: go on with a training that was killed, interrupted or out of time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from rankopt.commands.input_output import OutputPath, json_option
from rankopt.commands.training_run import Training, destination
from rankopt.engines import ENGINES


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--model", type=OutputPath(), help="Where the model is written [as begun, if that is beside DIR].")
@click.option("--max-iter", type=int, help="Another limit of steps, those before counted.")
@click.option("--time-limit", type=float, help="Another limit of seconds for each λ, those before counted.")
@click.option("--engine", type=click.Choice([*ENGINES]), help="Another engine.")
@click.option("--jobs", "n_jobs", type=int, help="Another number of threads or workers.")
@click.option("--yes", is_flag=True, help="Replace a file there that this training did not write, without asking.")
@json_option
def resume(
    folder: str,
    model: str | None,
    max_iter: int | None,
    time_limit: float | None,
    engine: str | None,
    n_jobs: int | None,
    yes: bool,
    json_: bool,
) -> None:
    """Go on with the training that `rankopt train --checkpoint DIR` began, to the weights that it would have ended at.

    DIR knows the files and the options. Values of λ that were finished are not trained again.

    DIR may be of somebody else, so the model is written where DIR says only if that is in the folder that holds DIR;
    else it is written there under the same name, or where --model says. A file that is there already is replaced if
    this training wrote it, or if it was there when training began; else you are asked.
    """
    training = Training.kept(Path(folder))
    training = replace(training, model=destination(Path(folder), training.model, model, yes))
    training = training.with_options(max_iter=max_iter, time_limit=time_limit, engine=engine, n_jobs=n_jobs)
    training.run(json_, Path(folder))
