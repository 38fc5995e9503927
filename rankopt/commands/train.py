"""`rankopt train`: fit a ranker on a file, choose λ on another, save it."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.output import as_json, json_option, table
from rankopt.commands.reading import queries_at

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.rankers.large_margin import LargeMarginRanker


@click.command()
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True))
@click.option("--model", required=True, type=click.Path(dir_okay=False), help="Where the model is written.")
@click.option("--validate", type=click.Path(exists=True), help="Data on which λ is chosen.")
@click.option("--measure", default="nDCG@10", show_default=True, help="The measure that is optimized.")
@click.option(
    "--bound", type=click.Choice(["convex", "tie-aware", "nonconvex"]), default="nonconvex", show_default=True,
    help="Which upper bound of the measure's regret.",
)  # fmt: skip
@click.option(
    "--decay", default="power(0.5)", show_default=True, help="linear, power(0.5), log, loglog, discount; @k cuts."
)
@click.option("--w0", type=click.Choice(["zeros", "regression"]), help="What the regulariser pulls to.")
@click.option(
    "--lam", type=float, multiple=True, help="Weight of the regulariser [0.1]; repeat it to choose on --validate."
)
@click.option("--argmax", default="exact", show_default=True, help="Solver of the loss-augmented ranking.")
@click.option("--master", default="auto", show_default=True, help="Solver of the master program.")
@click.option("--method", type=click.Choice(["bundle", "cutting_planes"]), default="bundle", show_default=True)
@click.option("--tol", default=1e-3, show_default=True, help="Relative gap at which training ends.")
@click.option("--max-iter", default=2000, show_default=True, help="Steps after which it ends anyway.")
@click.option("--time-limit", type=float, help="Seconds after which it ends anyway, for each λ.")
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@json_option
def train(
    train_file: str,
    model: str,
    validate: str | None,
    lam: tuple[float, ...],
    unjudged: float | None,
    json_: bool,
    **options: Any,
) -> None:
    """Train on the LETOR / SVMlight file TRAIN and save the model.

    Prints for each λ the objective J, the proven bound below it, and the gap: to the optimum for the convex bound, to
    what one more step could gain for the others. Ctrl-C ends training and saves the best weights so far.
    """
    if len(lam) > 1 and validate is None:
        raise click.UsageError("several --lam need --validate FILE to choose on")

    folder = Path(model).resolve().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.UsageError(f"--model {model}: the folder {folder} does not exist or cannot be written to")
    queries = queries_at(train_file, unjudged=unjudged)
    validation = None if validate is None else queries_at(validate, unjudged=unjudged, n_features=queries.n_features)
    rows, best, interrupted = [], None, False
    for value in lam or (0.1,):
        ranker, row, interrupted = _fitted(queries, validation, value, not json_, options)
        rows.append(row)
        if best is None or (row["validation"] or 0.0) > (best[1]["validation"] or 0.0):
            best = (ranker, row)
        if interrupted:
            break
    assert best is not None
    best[0].save(model)
    if json_:
        as_json({"model": model, "chosen": best[1], "tried": rows, "interrupted": interrupted})
    else:
        _report(rows, best[1], str(options["measure"]))
        click.echo(f"wrote {model}")
    if interrupted:
        raise KeyboardInterrupt


def _fitted(
    queries: Queries, validation: Queries | None, lam: float, talk: bool, options: dict[str, Any]
) -> tuple[LargeMarginRanker, dict[str, Any], bool]:
    """The ranker fitted with this λ, its line of the report, and whether it was interrupted."""
    import warnings

    from rankopt.rankers import LargeMarginRanker

    ranker = LargeMarginRanker(lam=lam, verbose=int(talk), **options)
    began, interrupted = perf_counter(), False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says how each run stopped
        try:
            ranker.fit(queries, eval_set=validation)
        except KeyboardInterrupt:
            interrupted = True
            if not hasattr(ranker, "coef_"):
                raise
    proved = ranker.certificate_
    row = {
        "lam": lam,
        "kind": proved.kind,
        "objective": proved.primal,
        "bound": proved.bound,
        "gap": proved.gap,
        "relative_gap": proved.relative_gap,
        "stop": str(proved.stop),
        "at_start": proved.at_start,
        "steps": ranker.n_iter_,
        "seconds": perf_counter() - began,
        "validation": getattr(ranker, "eval_score_", None),
    }
    return ranker, row, interrupted


def _report(rows: list[dict[str, Any]], chosen: dict[str, Any], measure: str) -> None:
    table(
        ["lam", "objective", "bound", "gap", "kind", "steps", "seconds", f"{measure} on validation", ""],
        [
            [
                f"{row['lam']:g}",
                f"{row['objective']:.6f}",
                f"{row['bound']:.6f}",
                f"{row['gap']:.1e}",
                row["kind"],
                row["steps"],
                f"{row['seconds']:.1f}",
                "-" if row["validation"] is None else f"{row['validation']:.4f}",
                "chosen" if row is chosen and len(rows) > 1 else "",
            ]
            for row in rows
        ],
    )
    if chosen["at_start"]:
        click.echo(
            "Nothing better than w0 was found: try a smaller --lam, --bound nonconvex, "
            "or a --decay cut at the measure's k."
        )
    if chosen["stop"] != "the gap is within the tolerance":
        click.echo(f"Training ended because {chosen['stop']}.")
