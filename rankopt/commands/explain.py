"""`rankopt explain`: why a model ranks as it does, and how tight the bound is that it was trained by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.input_output import as_given, as_json, json_option, queries_at, report_option, table, write_report

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.first_two import FirstTwo
    from rankopt.explanations.prices import Prices
    from rankopt.explanations.tightness import Tightness

LISTED = 10
"""Features and limits that the text lists; the page has more."""


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", type=click.Path(exists=True))
@click.option("--attributes", type=click.Path(exists=True, dir_okay=False), help="CSV: qid, docid and one column each.")
@click.option("--measure", help="Of regret and bounds  [default: the model's].")
@click.option("--queries", "count", type=click.IntRange(1), default=10, show_default=True,
              help="How many of the worst queries are listed.")  # fmt: skip
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@report_option
@json_option
def explain(
    model: str,
    data: str,
    attributes: str | None,
    measure: str | None,
    count: int,
    unjudged: float | None,
    report: str | None,
    json_: bool,
) -> None:
    """Why MODEL ranks the documents of DATA as it does: what each query loses and what the bound of training sees of
    it, what each feature moves scores by, and what would exchange the first two documents of the worst queries.

    Features are numbered as in the file where they have no names.
    """
    from rankopt.data import read_attributes
    from rankopt.errors import OptionError
    from rankopt.rankers import load_model
    from rankopt.rankers.within_query import normalised

    ranker = load_model(model)
    queries = queries_at(data, unjudged=unjudged, n_features=ranker.n_features_in_)
    if attributes is not None:
        queries = read_attributes(attributes, queries)
    limits = getattr(ranker, "constraints", None)
    missing = [name for name in getattr(limits, "attributes", ()) if name not in queries.attributes]
    if missing:
        raise click.UsageError(f"no attribute {missing[0]!r} is known: give --attributes FILE with such a column")
    try:
        found = ranker.tightness(queries, measure=measure)
    except OptionError as error:
        told, other = str(error), "give --measure nDCG@10"
        for cure in ("pass measure='nDCG@10'", "train another measure and evaluate with it"):
            told = told.replace(cure, other)
        raise OptionError(told) from error
    weights = _weights(ranker, normalised(ranker, queries))
    pairs = _pairs(ranker, queries, weights, [found.query[row] for row in found.worst(count).tolist()])
    prices = ranker.prices(queries) if limits is not None else None
    if report is not None:
        from rankopt.report.explain_page import page_of_explanations

        name = f"{type(ranker).__name__} from {Path(model).name} on {Path(data).name}"
        write_report(report, page_of_explanations(name, found, weights, count, as_given()))
    if json_:
        as_json({"model": model, "data": data, **_record(found, weights, pairs, prices, count)})
    else:
        _printed(found, weights, pairs, prices, count)


def _weights(ranker: Any, queries: Queries) -> list[tuple[str, Weights]]:
    """The weights of each score: one, or one a slot; none where scores are no sums over features."""
    if not hasattr(ranker, "coef_"):
        return []
    from rankopt.explanations.contributions import Weights, deviations_within

    deviation = deviations_within(queries.features, queries.offsets)
    given = getattr(ranker, "feature_names_in_", queries.feature_names)
    names = [f"feature {j + 1}" for j in range(queries.n_features)] if given is None else [str(name) for name in given]
    if ranker.coef_.ndim == 1:
        return [("scores", Weights.of(names, ranker.coef_, deviation))]
    return [(f"slot {slot}", Weights.of(names, own, deviation)) for slot, own in enumerate(ranker.coef_, 1)]


def _pairs(
    ranker: Any, queries: Queries, weights: Sequence[tuple[str, Weights]], worst: Sequence[Any]
) -> list[FirstTwo]:  # fmt: skip
    """The first two documents of the worst queries; none where slots are matched, and of scores that are no sums."""
    import numpy as np

    from rankopt.explanations.first_two import first_two
    from rankopt.rankers.within_query import normalised

    if len(weights) != 1:
        return []
    places = {query: number for number, query in enumerate(queries.query_ids)}
    some = queries.select([places[query] for query in worst])
    shown = ranker.rank(some.with_(document_ids=None), k=2)
    shown = {some.query_ids[0]: shown} if len(some) == 1 else shown
    (_, one), *_ = weights
    back = np.argsort(one.column)
    names = [one.features[j] for j in back.tolist()]
    own = normalised(ranker, queries)
    return first_two(own, names, ranker.coef_, one.deviation[back], shown, worst)


def _printed(
    found: Tightness, weights: Sequence[tuple[str, Weights]], pairs: Sequence[FirstTwo], prices: Prices | None,
    count: int,
) -> None:  # fmt: skip
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
    if pairs:
        click.secho("\nThe first document against the second, and the smallest change that exchanges them", bold=True)
        head = ["query", "first", "second", "lead", "stays first", "one feature of the second", "deviations", "all"]
        table(head, [_line(pair) for pair in pairs])
    if prices is not None:
        click.secho("\nWhat the limits cost", bold=True)
        click.echo(str(prices))


def _line(pair: FirstTwo) -> list[str]:
    swap = pair.swap
    change = "none within the data's range"
    if swap.lacks == 0.0:
        change = "they tie"
    elif swap.feature is not None:
        at = swap.features.index(swap.feature)
        change = f"{swap.feature}: {swap.before[at]:.4g} to {swap.before[at] + swap.change:.4g}"
    return [
        str(pair.query), *map(str, pair.documents), f"{pair.reasons.total:.4g}", f"{pair.chance:.0%}", change,
        f"{swap.cost:.3g}", f"{swap.distance:.3g}",
    ]  # fmt: skip


def _record(
    found: Tightness, weights: Sequence[tuple[str, Weights]], pairs: Sequence[FirstTwo], prices: Prices | None,
    count: int,
) -> dict[str, Any]:  # fmt: skip
    """What the JSON says."""
    columns = found.columns()
    record: dict[str, Any] = {
        "finding": found.finding,
        "measure": found.measure,
        "bound": found.trained,
        "queries": len(found),
        "loose": int(found.silent.sum()),
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
        "first two": [
            {
                "query": pair.query, "documents": [*pair.documents], "lead": pair.reasons.total, "chance": pair.chance,
                "feature": pair.swap.feature, "change": pair.swap.change, "deviations": pair.swap.cost,
                "together": pair.swap.distance,
            }
            for pair in pairs
        ],
    }  # fmt: skip
    if prices is not None:
        columns = prices.columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        rows = [{**row, "gain": float(row["gain"]), "price": float(row["price"])} for row in rows]
        record["limits"] = {"finding": prices.finding, "rows": rows}
    return record
