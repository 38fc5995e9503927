"""`rankopt direct`: climb the measure itself on a file, say what is proved of the end, draw the lines through it."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.ascent import COMBINATIONS, ORDERS
from rankopt.commands.input_output import (
    OutputPath,
    as_given,
    as_json,
    json_option,
    queries_at,
    report_option,
    table,
    write_report,
)
from rankopt.data.normalisation import METHODS as NORMALISATIONS
from rankopt.engines import ENGINES

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.rankers.direct import DirectRanker

STARTS = ("smooth", "ridge", "zeros")
POINTS = ("window", "middle", "plackett-luce")


@click.command()
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True))
@click.option("--model", type=OutputPath(), help="Where the model is written.")
@click.option("--validate", type=click.Path(exists=True), help="Data on which each path takes its best round.")
@click.option("--measure", default="nDCG@10", show_default=True, help="The measure that is climbed.")
@click.option("--start", type=click.Choice(STARTS), default="smooth", show_default=True, help="Where it begins.")
@click.option(
    "--order", type=click.Choice(ORDERS), default="cyclic", show_default=True,
    help="Every direction in turn, or the best of all for each step.",
)  # fmt: skip
@click.option("--powell", is_flag=True, help="Try the sum of the last round's steps, too.")
@click.option(
    "--random", "drawn", type=int, default=0, show_default=True,
    help="Try so many directions drawn anew in each round, too.",
)  # fmt: skip
@click.option(
    "--point", type=click.Choice(POINTS), default="window", show_default=True, help="Where to stand on a line."
)
@click.option("--window", default=0.2, show_default=True, help="Half its width, as a part of the scores' deviation.")
@click.option("--restarts", default=1, show_default=True, help="Paths in all.")
@click.option(
    "--combine", type=click.Choice(COMBINATIONS), default="mean", show_default=True, help="What becomes of them."
)
@click.option("--lam", default=0.0, show_default=True, help="Strength of a pull to the start.")
@click.option("--normalize", type=click.Choice(NORMALISATIONS), help="Make features comparable within each query.")
@click.option("--tol", default=1e-6, show_default=True, help="What a step has to gain, at least.")
@click.option("--max-iter", default=100, show_default=True, help="Rounds after which it ends anyway.")
@click.option("--time-limit", type=float, help="Seconds after which it ends anyway.")
@click.option("--seed", "random_state", type=int, help="Of restarts and draws [0].")
@click.option("--engine", type=click.Choice([*ENGINES]), default="threads", show_default=True, help="Who computes.")
@click.option("--jobs", "n_jobs", type=int, help="Threads or workers [one a core].")
@click.option(
    "--checkpoint", type=OutputPath(folder=True, made=True),
    help="A folder that keeps where it stands: the same command goes on from there.",
)  # fmt: skip
@click.option(
    "--lines", default=4, show_default=True, help="Of --report: so many lines, of the features that move most."
)
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@report_option
@json_option
def direct(
    train_file: str,
    model: str | None,
    validate: str | None,
    powell: bool,
    drawn: int,
    lines: int,
    unjudged: float | None,
    report: str | None,
    json_: bool,
    **options: Any,
) -> None:
    """Climb the measure itself on the LETOR / SVMlight file TRAIN, or a folder that `rankopt store` wrote.

    Along each direction the measure is a step function whose jumping points are all found, so each step is the best of
    its line. At the end no direction of a list leads higher, each alone: that is proved, and no more. With --report the
    page draws the measure along the features that move the scores most. Ctrl-C ends it with the best weights so far.
    """
    if drawn < 0:
        raise click.UsageError(f"--random {drawn} is no number of directions; give 0 or more")
    if lines < 1:
        raise click.UsageError(f"--lines {lines} draws nothing; give 1 or more")
    if model is not None:
        folder = Path(os.path.abspath(model)).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise click.UsageError(f"--model {model}: the folder {folder} does not exist or cannot be written to")
    from rankopt.errors import Interrupted
    from rankopt.rankers import DirectRanker, Random

    directions = ("coordinates", *(["powell"] if powell else []), *([Random(drawn)] if drawn else []))
    ranker = DirectRanker(**options, directions=directions, verbose=int(not json_))
    ranker._check_params()  # before anything is read
    queries = queries_at(train_file, unjudged=unjudged)
    validation = None
    if validate is not None:
        validation = queries_at(validate, unjudged=unjudged, n_features=queries.n_features)
    began, interrupted = perf_counter(), False
    try:
        ranker = _fitted(ranker, queries, validation)
    except Interrupted:
        interrupted = True
    seconds = perf_counter() - began
    if model is not None:
        ranker.save(model)
    _say(ranker, seconds, model, json_)
    if report is not None:
        from rankopt.report.direct_page import page_of_direct

        write_report(report, page_of_direct(ranker, queries, lines, Path(train_file).name, as_given()))
    if interrupted:
        raise KeyboardInterrupt


def _fitted(ranker: DirectRanker, queries: Queries, validation: Queries | None) -> DirectRanker:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is printed says how it ended
        return ranker.fit(queries, eval_set=validation)


def _say(ranker: DirectRanker, seconds: float, model: str | None, json_: bool) -> None:
    proved, history = ranker.certificate_, ranker.history_
    judged = getattr(ranker, "eval_score_", None)
    paths = [
        {
            "path": number,
            "measure": float(value),
            "steps": int((history.path == number).sum()),
            "rounds": int(history.round[history.path == number].max(initial=0)),
        }
        for number, value in enumerate(ranker.path_values_)
    ]
    if json_:
        as_json(
            {
                "model": model, "measure": str(ranker.measure), "value": proved.value, "epsilon": proved.epsilon,
                "directions": len(proved), "stop": str(proved.stop), "validation": judged, "seconds": seconds,
                "paths": paths,
            }
        )  # fmt: skip
        return
    table(
        ["path", str(ranker.measure), "steps", "rounds that moved"],
        [[one["path"], f"{one['measure']:.4f}", one["steps"], one["rounds"]] for one in paths],
    )
    click.echo(str(proved))
    told = "" if judged is None else f", {ranker.measure} on validation {judged:.4f}"
    click.echo(f"{seconds:.1f} s{told}")
    if model is not None:
        click.echo(f"wrote {model}")
