"""`rankopt evaluate`: measures of rankings, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankopt.commands.evaluate_runs import MEASURES as OF_RUNS
from rankopt.commands.evaluate_runs import evaluate_runs
from rankopt.commands.output import as_json, json_option, table
from rankopt.commands.reading import queries_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankopt.data.queries import Queries
    from rankopt.measures.measure import Measure

MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="DATA | RUN...", type=click.Path(exists=True))
@click.option("--qrels", type=click.Path(exists=True, dir_okay=False), help="Judgments; the files are then TREC runs.")
@click.option(
    "--scores", multiple=True, type=click.Path(exists=True, dir_okay=False), help="Scores; repeat to compare."
)
@click.option(
    "--model", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A model; repeat to compare."
)
@click.option("--attributes", type=click.Path(exists=True, dir_okay=False), help="CSV: qid, docid and one column each.")
@click.option(
    "--measure",
    multiple=True,
    help=f"A measure; repeatable.  [default: {', '.join(MEASURES)}; of runs {', '.join(OF_RUNS)}]",
)
@click.option(
    "--convention",
    help="default, letor2, letor3, letor4, trec, sklearn, burges.  [default: default; of runs trec]",
)
@click.option(
    "--missing",
    type=click.Choice(["skip", "zero", "error"]),
    default="skip",
    show_default=True,
    help="Judged queries that a run lacks: left out of its means, or 0 (trec_eval -c).",
)
@click.option(
    "--test",
    type=click.Choice(["randomization", "t", "wilcoxon"]),
    default="randomization",
    show_default=True,
    help="The paired test of runs.",
)
@click.option(
    "--interval",
    type=click.Choice(["t", "bootstrap"]),
    default="t",
    show_default=True,
    help="How intervals of runs are made.",
)
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.  [of qrels: none]")
@json_option
def evaluate(
    files: tuple[str, ...],
    qrels: str | None,
    scores: tuple[str, ...],
    model: tuple[str, ...],
    attributes: str | None,
    measure: tuple[str, ...],
    convention: str | None,
    missing: str,
    test: str,
    interval: str,
    unjudged: float | None,
    json_: bool,
) -> None:
    """Measure the rankings of DATA that score files or models make; or, with --qrels, RUNs in TREC's format.

    With several, each is compared with the first by a paired test over queries; of runs p is raised by Holm.
    """
    from rankopt.measures import parse
    from rankopt.measures.convention import convention_named

    if qrels is not None:
        if scores or model:
            raise click.UsageError("--qrels is for runs, which bring their scores: leave --scores and --model out")
        if attributes is not None:
            raise click.UsageError("--attributes is for DATA, and qrels take none: leave it or --qrels out")
        if len(set(files)) < len(files):
            raise click.UsageError("a run is given twice")
        asked, rules = (
            [parse(text) for text in measure or OF_RUNS],
            convention_named("trec" if convention is None else convention),
        )
        evaluate_runs(
            qrels, files, asked, rules,
            missing=missing, negative=unjudged, test=test, interval=interval, json_=json_,
        )  # fmt: skip
        return
    _check_alone(files)
    data = files[0]
    if not scores and not model:
        raise click.UsageError("nothing to evaluate: give --scores FILE or --model FILE")
    if len({*scores, *model}) < len(scores) + len(model):
        raise click.UsageError("a file of --scores or --model is given twice")
    from rankopt.measures import compare
    from rankopt.measures import evaluate as measured

    wanted, rules = (
        [parse(text) for text in measure or MEASURES],
        convention_named("default" if convention is None else convention),
    )
    queries = queries_at(data, unjudged=unjudged)
    if attributes is not None:
        from rankopt.data import read_attributes

        queries = read_attributes(attributes, queries)
    _check_attributes(wanted, queries)
    runs: dict[str, NDArray[np.float64]] = {path: _read_scores(path, queries) for path in scores}
    runs |= {path: _predicted(path, data, unjudged) for path in model}
    found = {path: measured(queries, run, wanted, convention=rules) for path, run in runs.items()}
    first, *others = found
    pairs = {
        (other, repr(m)): compare(found[other], found[first], measure=m)
        for other in others
        for m in found[first].measures
    }
    if json_:
        record: dict[str, Any] = {path: evaluation.as_dict() for path, evaluation in found.items()}
        compared = [{"run": other, "baseline": first, **result.as_dict()} for (other, _), result in pairs.items()]
        as_json({"runs": record, "compared": compared})
        return
    for path, evaluation in found.items():
        click.secho(path, bold=True)
        click.echo(str(evaluation))
    if pairs:
        click.secho(f"\nagainst {first}", bold=True)
        table(
            ["run", "measure", "difference", "95% interval", "p (randomisation)", "p (t)"],
            [
                [
                    other, name, f"{r.difference:+.4f}", f"[{r.interval[0]:+.4f}, {r.interval[1]:+.4f}]",
                    f"{r.p_randomization:.4f}", f"{r.p_t:.4f}",
                ]
                for (other, name), r in pairs.items()
            ],
        )  # fmt: skip


def _check_alone(files: tuple[str, ...]) -> None:
    """Raise UsageError for what only runs have."""
    if len(files) > 1:
        raise click.UsageError(f"{files[1]} is one file too many; several are runs, which need --qrels FILE")
    context = click.get_current_context()
    for name in ("missing", "test", "interval"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for runs: give --qrels FILE, or leave it out")


def _check_attributes(measures: Sequence[Measure], queries: Queries) -> None:
    """Raise UsageError where a measure speaks of what is not known of the documents."""
    missing = next((name for one in measures for name in one.attributes if name not in queries.attributes), None)
    if missing is not None:
        raise click.UsageError(f"no attribute {missing!r} is known: give --attributes FILE with such a column")


def _predicted(path: str, data: str, unjudged: float | None) -> NDArray[np.float64]:
    """Scores of the model at `path`, grouped by query."""
    import numpy as np

    from rankopt.rankers import load_model

    ranker = load_model(path)
    queries = queries_at(data, unjudged=unjudged, n_features=ranker.n_features_in_)
    scores: NDArray[np.float64] = ranker.predict(queries)
    return scores[np.argsort(np.argsort(queries.row_order))]  # rows of the file may have been left out


def _read_scores(path: str, queries: Queries) -> NDArray[np.float64]:
    """One score a line in the order of the data file, as scores grouped by query."""
    import numpy as np

    from rankopt.data.svmlight.grammar import NUMBER
    from rankopt.data.text import clipped, text_lines
    from rankopt.errors import DataError

    values = []
    for number, line in text_lines(path):
        word = line.strip()
        if not NUMBER.fullmatch(word) or not np.isfinite(float(word)):
            raise DataError(f"{path}, line {number}: {clipped(line)!r} is no finite number; write one score a line.")
        values.append(float(word))
    if len(values) != queries.n_documents:
        raise DataError(f"{path} has {len(values)} scores for {queries.n_documents} documents; write one for each.")
    return np.array(values)[queries.row_order]
