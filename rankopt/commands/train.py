"""`rankopt train`: fit a ranker on a file, choose λ on another, save it.

`rankopt train` of a ranker that is fitted once and not taken up again: least squares, trees.

The weight of the regulariser on the command line: a number, or the name of how it is chosen.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from click.core import ParameterSource

from formulations.registry import load
from rankopt.commands.input_output import OutputPath, as_json, json_option, queries_at
from rankopt.commands.training_run import MARGIN, RANKERS, Training, check_taken, given_options
from rankopt.data.normalisation import METHODS as NORMALISATIONS
from rankopt.engines import ENGINES
from rankopt.losses import BOUNDS, LOSSES, MAPS
from rankopt.optimize import METHODS, PENALTIES
from rankopt.rankers import MODEL_CLASSES, STARTS, STRENGTHS


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
    queries = queries_at(files["train_file"], unjudged=files["unjudged"])
    validation = None
    if files["validate"] is not None:
        validation = queries_at(files["validate"], unjudged=files["unjudged"], n_features=queries.n_features)
    made = load(MODEL_CLASSES[RANKERS[name].ranker])
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
    return {"features": ranker.n_features_in_}, f"{ranker.n_features_in_} weights"


class Strength(click.ParamType[float | str]):
    """A number, or one of `STRENGTHS`."""

    name = "number or " + " or ".join(STRENGTHS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if isinstance(value, str) and value in STRENGTHS:
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is no number; give one, or {' or '.join(STRENGTHS)}", param, ctx)


@click.command()
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True))
@click.option("--model", required=True, type=OutputPath(), help="Where the model is written.")
@click.option(
    "--ranker", type=click.Choice([*RANKERS]), default="margin", show_default=True,
    help="What is trained: a bound of the measure's regret, pairs, the measure smoothed, the measure itself by weights "
    "or by trees (experimental), least squares, or trees on the bound. Defaults below are those of margin; the others "
    "keep their own.",
)  # fmt: skip
@click.option("--validate", type=click.Path(exists=True), help="Data on which λ and decay are chosen.")
@click.option(
    "--measure", default="nDCG@10", show_default=True,
    help="The measure that is optimized; several as a sum, 'AP + nDCG@10 + 2 RR'.",
)  # fmt: skip
@click.option(
    "--map", type=click.Choice([*MAPS]), default="positional", show_default=True,
    help="The feature map: what an order makes of the scores.",
)  # fmt: skip
@click.option(
    "--bound", type=click.Choice([*BOUNDS]), default="nonconvex", show_default=True,
    help="Which upper bound of the measure's regret.",
)  # fmt: skip
@click.option(
    "--loss", type=click.Choice([*LOSSES]),
    help="Train this loss in place of a bound: validation judges by --measure; --map, --bound, --decay, --argmax are "
    "not for it.",
)  # fmt: skip
@click.option(
    "--sigma", "sigmas", type=float, multiple=True,
    help="Of smooth: a width of its annealing, in deviations of the scores; repeat it, the largest first.",
)  # fmt: skip
@click.option(
    "--decay", multiple=True,
    help="linear, power(0.5), log, loglog, discount; @k cuts [power(0.5)]; repeat it to choose on --validate.",
)  # fmt: skip
@click.option(
    "--penalty", type=click.Choice([*PENALTIES]), default="l2", show_default=True,
    help="l1 leaves features out.",
)  # fmt: skip
@click.option(
    "--normalize", type=click.Choice(NORMALISATIONS),
    help="Make features comparable within each query; the model keeps it, and every command applies it.",
)  # fmt: skip
@click.option("--w0", type=click.Choice([*STARTS]), help="What the regulariser pulls to, and training starts from.")
@click.option(
    "--lam", type=Strength(), multiple=True,
    help="Weight of the regulariser: a number, scale (natural to the data) or auto (by cross-validation) [scale; of "
    "--loss and pairwise 0.01]; repeat it to choose on --validate.",
)  # fmt: skip
@click.option("--argmax", default="exact", show_default=True, help="Solver of the loss-augmented ranking.")
@click.option("--master", default="auto", show_default=True, help="Solver of the master program.")
@click.option("--method", type=click.Choice([*METHODS]), default="bundle", show_default=True)
@click.option("--tol", default=1e-3, show_default=True, help="Relative gap at which training ends.")
@click.option("--max-iter", default=2000, show_default=True, help="Steps after which it ends anyway.")
@click.option("--time-limit", type=float, help="Seconds after which it ends anyway, for each λ.")
@click.option(
    "--engine", type=click.Choice([*ENGINES]), default="threads", show_default=True,
    help="Who computes; every engine gives the same bits.",
)  # fmt: skip
@click.option("--jobs", "n_jobs", type=int, help="Threads or workers [one a core].")
@click.option(
    "--checkpoint", type=OutputPath(folder=True, made=True),
    help="A folder that keeps where training stands: `rankopt resume` goes on from there.",
)  # fmt: skip
@click.option(
    "--checkpoint-every", "every", default=10.0, show_default=True, help="Seconds, at least, between two checkpoints."
)
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@json_option
def train(
    train_file: str,
    model: str,
    validate: str | None,
    lam: tuple[float | str, ...],
    decay: tuple[str, ...],
    unjudged: float | None,
    checkpoint: str | None,
    every: float,
    ranker: str,
    sigmas: tuple[float, ...],
    json_: bool,
    **options: Any,
) -> None:
    """Train on the LETOR / SVMlight file TRAIN, or a folder that `rankopt store` wrote, and save the model.

    Each --decay with each --lam is fitted by itself, from w0, so that each can be interrupted and resumed; in Python,
    `path` of a ranker goes from λ to λ with the planes found so far, which is several times as fast. The best on
    --validate is saved.

    Prints for each λ the objective J, the proven bound below it, and the gap: to the optimum for the convex bound, to
    what one more step could gain for the others; of --ranker smooth, which has no bound, the gradient of J and the
    measure on TRAIN. Ctrl-C ends training and saves the best weights so far; with
    --checkpoint, a run that was interrupted or killed goes on to the same weights.
    """
    context = click.get_current_context()
    check_taken(context, ranker)
    if RANKERS[ranker].told is None:
        train_once(context, ranker)
        return
    if ranker != "margin":
        own = {"lam", "checkpoint", "every"}
        options = {name: value for name, value in given_options(context, ranker).items() if name not in own}
        options["measure"] = context.params["measure"]
        if sigmas:
            options["sigmas"] = list(sigmas)
    elif options["loss"] is not None:
        _only_of_the_loss()
        options = {name: value for name, value in options.items() if name not in MARGIN}
    elif len(set(decay)) < 2:
        options["decay"] = decay[0] if decay else "power(0.5)"
    given = context.get_parameter_source("every") is ParameterSource.COMMANDLINE
    if checkpoint is None and given:
        raise click.UsageError("--checkpoint-every is about --checkpoint DIR; give both, or neither")
    for name, values in (("--lam", lam), ("--decay", decay)):
        if len(values) > 1 and validate is None:
            raise click.UsageError(f"several {name} need --validate FILE to choose on")
    whole = None if validate is None else os.path.abspath(validate)
    files = (os.path.abspath(train_file), os.path.abspath(model), whole)
    several = tuple(dict.fromkeys(decay)) if len(set(decay)) > 1 else ()
    usual = RANKERS["pairwise" if options.get("loss") else ranker].lam
    training = Training(*files, lam or (usual,), unjudged, every, options, decay=several, ranker=ranker)
    training.run(json_, None if checkpoint is None else Path(checkpoint))


def _only_of_the_loss() -> None:
    """A usage error for an option that a loss of its own does not have."""
    context = click.get_current_context()
    for name in MARGIN:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is an option of the bounds of a measure's regret, not of --loss")
