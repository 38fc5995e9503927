"""`rankopt explain`: the effect of features on scores, and the tightness of the bound used in training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands import options as common
from rankopt.commands.input_output import as_given, as_json, check_attributes, model_and_queries, table, write_report

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.tightness import Tightness

LISTED = 10  # features that the text lists; the page has more


@click.command(cls=common.Command)
@click.argument("model", type=common.FILE)
@click.argument("data", type=common.EXISTING)
@common.column_options
@common.attributes_option
@click.option("--measure", help="Of regret and bounds  [default: the model's].")
@click.option("--queries", "count", type=click.IntRange(1), default=10,
              help="How many of the worst queries are listed.")  # fmt: skip
@common.unjudged_option
@common.report_option
@common.json_option
def explain(
    model: str,
    data: str,
    attributes: str | None,
    measure: str | None,
    count: int,
    unjudged: float | None,
    report: str | None,
    json_: bool,
    columns: common.Columns,
) -> None:
    """Explain how MODEL ranks DATA: the regret of each query, its bound, and the effect of each feature.

    \b
    rankopt explain model.rankopt test.parquet --report explain.html

    Features are numbered as in the file where they have no names.
    """
    from rankopt.errors import OptionError
    from rankopt.rankers.inputs import normalized

    ranker, queries = model_and_queries(model, data, unjudged, columns, attributes, graded=True)
    rules = getattr(ranker, "constraints", None)
    check_attributes(queries, rules)
    under = "" if rules is None else f"Under {rules!r}: regret is against the best ranking that these admit."
    click.echo("" if json_ else under, nl=bool(under) and not json_)
    try:
        found = ranker.bound_tightness(queries, measure=measure)
    except OptionError as error:
        message, other = str(error), "give --measure nDCG@10"
        for cure in ("pass measure='nDCG@10'", "train another measure and evaluate with it"):
            message = message.replace(cure, other)
        raise OptionError(message) from error
    weights, gains = _weights(ranker, normalized(ranker, queries)), _gains(ranker)
    if report is not None:
        from rankopt.report.ranker_pages import page_of_explanations

        name = f"{type(ranker).__name__} from {Path(model).name} on {Path(data).name}"
        name += f". {under}" if under else ""
        write_report(report, page_of_explanations(name, found, weights, count, as_given()))
    if json_:
        as_json({"model": model, "data": data, **_record(found, weights, count), "gains": dict(gains)})
    else:
        if gains:
            click.secho("What the trees split by", bold=True)
            table(["feature", "share of the gain"], [[name, f"{share:.1%}"] for name, share in gains[:LISTED]])
            click.echo("")
        _print(found, weights, count)


def _names(ranker: Any) -> list[str]:
    from rankopt.rankers.missing import with_indicators

    numbered = [f"feature {j + 1}" for j in range(ranker.n_features_in_)]
    return with_indicators(ranker, getattr(ranker, "feature_names_in_", numbered))


def _gains(ranker: Any) -> list[tuple[str, float]]:
    """The features of trees with their share of the gain of all splits, the largest first; of others none."""
    if not hasattr(ranker, "feature_importances_"):
        return []
    pairs = zip(_names(ranker), ranker.feature_importances_.tolist(), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


def _weights(ranker: Any, queries: Queries) -> list[tuple[str, Weights]]:
    """The weights of each score: one, or one per slot; none if scores are not linear in the features."""
    if not hasattr(ranker, "coef_"):
        return []
    from rankopt.explanations.contributions import Weights

    coef, names = ranker.coef_, _names(ranker)
    scores = [("scores", coef)] if coef.ndim == 1 else [(f"slot {slot}", own) for slot, own in enumerate(coef, 1)]
    return [(name, Weights.from_queries(names, own, queries)) for name, own in scores]


def _print(found: Tightness, weights: Sequence[tuple[str, Weights]], count: int) -> None:
    click.secho(found.finding, bold=True)
    click.echo(f"\n{found.shown(count)}")
    for name, one in weights:
        click.secho(f"\nWhat moves the {name}", bold=True)
        click.echo(one.finding)
        columns = (one.features, one.coef, one.deviation, one.effect, one.share)
        rows = [
            [feature, *(f"{value:.4g}" for value in line), f"{share:.1%}"]
            for feature, *line, share in list(zip(*columns, strict=True))[:LISTED]
        ]
        table(["feature", "weight", "deviation", "weight x deviation", "share"], rows)


def _record(found: Tightness, weights: Sequence[tuple[str, Weights]], count: int) -> dict[str, Any]:
    columns = found.columns()
    return {
        "finding": found.finding,
        "measure": found.measure,
        "bound": found.trained,
        "queries": len(found),
        "loose": int(found.is_loose.sum()),
        "means": {name: float(column.mean()) for name, column in columns.items() if name != "query"},
        "worst": [
            {name: column[row] if name == "query" else float(column[row]) for name, column in columns.items()}
            for row in found.worst(count).tolist()
        ],
        "weights": {
            name: [
                {"feature": feature, "weight": float(coef), "deviation": float(deviation), "share": float(share)}
                for feature, coef, deviation, share in zip(
                    one.features, one.coef, one.deviation, one.share, strict=True
                )
            ]
            for name, one in weights
        },
    }
