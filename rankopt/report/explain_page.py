"""The page of `rankopt explain`: how tight the bounds are, the worst queries, the weights, what would exchange the
first two documents, and what limits cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankopt.report.charts import tightness_drawing, weights_drawing
from rankopt.report.html import FormattedCell, brief, figures, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.first_two import FirstTwo
    from rankopt.explanations.prices import Prices
    from rankopt.explanations.tightness import Tightness

LISTED = 30
"""Features, and limits, that a table lists."""


def page_of_explanations(
    name: str,
    tightness: Tightness,
    weights: Sequence[tuple[str, Weights]],
    pairs: Sequence[FirstTwo],
    prices: Prices | None,
    worst: int,
    made_by: str = "",
) -> str:
    """The page.

    Args:
        name: of the ranker and its data. tightness, prices (None where nothing is limited): of all queries.
        weights: one a score, with what it is called; several where slots have scores of their own, none of trees.
        pairs: the first two documents of the worst queries, none where slots are matched.
        worst: how many queries are listed; made_by: the command.
    """
    parts = [
        section("Regret and its bounds", *_bounds(tightness)),
        section(f"The worst {min(worst, len(tightness))} queries", *_worst(tightness, worst)),
    ]
    if weights:
        parts.append(section("What moves the scores", *_weights(weights)))
    if pairs:
        parts.append(section("The first document against the second", *_pairs(pairs)))
    if prices is not None:
        parts.append(section("What the limits cost", *_prices(prices)))
    lead = (
        f"{name}: {len(tightness)} queries that have something to order. Regret is what the ranking shown loses "
        "against the best one; a bound is what training can see of it. A click on the head of a column sorts a table."
    )
    return page("Why these rankings?", lead, *parts, finding=tightness.finding, made_by=made_by)


def _bounds(found: Tightness) -> list[object]:
    said = (
        "No bound lies below the regret. One that is no lower than what the worst ranking of all would lose is loose: "
        "it says nothing of its query."
    )
    rows: list[list[object]] = [["regret", _three(found.regret.mean()), _three(found.regret.max()), None]]
    for name, values in found.bounds.items():
        loose = int((values >= found.most * (1.0 - 1e-9)).sum())
        title = f"{name} bound" + (", trained" if found.own and name == found.trained else "")
        rows.append([title, _three(values.mean()), _three(values.max()), loose])
    head = ["of each query", "mean", "largest", "loose on"]
    about = f"in units of {found.measure}, {found.slopes}"
    return [said, figures(tightness_drawing(found)), table(head, rows, f"Over the queries, {about}")]


def _worst(found: Tightness, count: int) -> list[object]:
    columns = {**found.columns(), "query": [*map(str, found.query)]}
    rows = [
        [value if isinstance(value, int | str) else _three(float(value)) for value in line]
        for line in zip(*([_plain(one) for one in np.asarray(columns[name], dtype=object)[found.worst(count)]]
                          for name in columns), strict=True)
    ]  # fmt: skip
    said = f"Those of the largest regret; looseness is that of the {found.trained} bound."
    return [table([*columns], rows, said)]


def _weights(weights: Sequence[tuple[str, Weights]]) -> list[object]:
    parts: list[object] = []
    for name, one in weights:
        said = f"{name}: {one.finding}" if len(weights) > 1 else one.finding
        rows = [
            [feature, brief(coef), brief(deviation), brief(effect), FormattedCell(share, f"{share:.1%}")]
            for feature, coef, deviation, effect, share in zip(
                one.features, one.coef.tolist(), one.deviation.tolist(), one.effect.tolist(), one.share.tolist(),
                strict=True,
            )
        ]  # fmt: skip
        head = ["feature", "weight", "deviation", "weight × deviation", "share"]
        about = "Deviations are about the mean of each query: what all its documents share orders none"
        if len(rows) > LISTED:
            about += f"; the first {LISTED} of {len(rows)} features"
        parts += [said, figures([weights_drawing(one, name)]), table(head, rows[:LISTED], about)]
    return parts


def _pairs(pairs: Sequence[FirstTwo]) -> list[object]:
    rows: list[list[object]] = []
    for pair in pairs:
        swap, alone = pair.swap, "none within the range"
        if swap.lacks == 0.0:
            alone = "they tie"
        elif swap.feature is not None:
            before = swap.before[swap.features.index(swap.feature)]
            alone = f"{swap.feature}: {before:.4g} to {before + swap.change:.4g}"
        documents: list[object] = [str(one) for one in pair.documents]
        if pair.grades is not None:
            first, second = (FormattedCell(grade, f"{grade:g}") for grade in pair.grades)
            documents = [documents[0], first, documents[1], second]
        by = brief(swap.cost) if swap.feature is not None else None
        together = brief(swap.distance) if swap.possible else None
        sure = FormattedCell(pair.chance, f"{pair.chance:.0%}")
        rows.append([str(pair.query), *documents, brief(pair.reasons.total), sure, alone, by, together])
    graded = pairs[0].grades is not None
    documents_head = ["first", "grade", "second", "grade"] if graded else ["first", "second"]
    head = ["query", *documents_head, "lead", "stays first", "one feature of the second", "by", "all by"]
    impossible = sum(not pair.swap.possible for pair in pairs)
    wrong = sum(pair.grades is not None and pair.grades[0] < pair.grades[1] for pair in pairs)
    said = (
        "What the second document would need to reach the first: the smallest change of one feature, and of all "
        "together, within the range that each feature has in the data. It ties then, and any more exchanges them."
    )
    if wrong:
        said += f" In {wrong} of these {len(pairs)} queries the second has the higher grade."
    if impossible:
        said += f" In {impossible} no change within the range does it."
    about = (
        "By: in deviations within queries. Stays first: the chance under normal noise of a tenth of the deviation of "
        "the query's scores"
    )
    return [said, table(head, rows, about)]


def _prices(prices: Prices) -> list[object]:
    order = np.lexsort((-prices.price, -prices.gain))[:LISTED].tolist()
    rows = [
        [str(prices.query[i]), prices.row[i], prices.side[i], brief(prices.gain[i]), brief(prices.price[i])]
        for i in order
    ]
    head = ["query", "limit", "presses", "one looser gains", "proven at most"]
    about = "Limits that press, the dearest first" + (
        f"; {LISTED} of {len(prices)}" if len(prices) > LISTED else ""
    )  # fmt: skip
    return [prices.finding, *([table(head, rows, about)] if rows else [])]


def _three(value: float) -> FormattedCell:
    return FormattedCell(float(value), f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}")


def _plain(value: object) -> int | float | str:
    """A cell of a table: ids as text, whole numbers whole."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float | np.floating) else str(value)
