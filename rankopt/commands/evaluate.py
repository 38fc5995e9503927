"""`rankopt evaluate`: measures of rankings, and paired comparisons."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.output import as_json, json_option, table
from rankopt.commands.reading import queries_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankopt.data.queries import Queries

MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP")


@click.command()
@click.argument("data", type=click.Path(exists=True))
@click.option(
    "--scores", multiple=True, type=click.Path(exists=True, dir_okay=False), help="Scores; repeat to compare."
)
@click.option(
    "--model", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A model; repeat to compare."
)
@click.option("--measure", multiple=True, help=f"A measure; repeatable.  [default: {', '.join(MEASURES)}]")
@click.option(
    "--convention", default="default", show_default=True, help="letor2, letor3, letor4, trec, sklearn, burges."
)
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@json_option
def evaluate(
    data: str,
    scores: tuple[str, ...],
    model: tuple[str, ...],
    measure: tuple[str, ...],
    convention: str,
    unjudged: float | None,
    json_: bool,
) -> None:
    """Measure the rankings of DATA that score files or models make.

    With several, each is compared with the first by a paired randomisation test over queries.
    """
    if not scores and not model:
        raise click.UsageError("nothing to evaluate: give --scores FILE or --model FILE")
    if len({*scores, *model}) < len(scores) + len(model):
        raise click.UsageError("a file of --scores or --model is given twice")
    from rankopt.measures import compare, parse
    from rankopt.measures import evaluate as measured
    from rankopt.measures.convention import convention_named

    wanted, rules = [parse(text) for text in measure or MEASURES], convention_named(convention)
    queries = queries_at(data, unjudged=unjudged)
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
        compared = [{"run": other, "baseline": first, **asdict(result)} for (other, _), result in pairs.items()]
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
