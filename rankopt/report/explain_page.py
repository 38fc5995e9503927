"""The page of `rankopt explain`: how tight the bounds are, the worst queries, and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankopt.report.charts import tightness_drawing, weights_drawing
from rankopt.report.html import FormattedCell, brief, figures, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.tightness import Tightness

LISTED = 30
"""Features that a table lists."""


def page_of_explanations(
    name: str,
    tightness: Tightness,
    weights: Sequence[tuple[str, Weights]],
    worst: int,
    made_by: str = "",
) -> str:
    """The page.

    Args:
        name: of the ranker and its data. tightness: of all queries.
        weights: one a score, with what it is called; several where slots have scores of their own, none of trees.
        worst: how many queries are listed; made_by: the command.
    """
    parts = [
        section("Regret and its bounds", *_bounds(tightness)),
        section(f"The worst {min(worst, len(tightness))} queries", *_worst(tightness, worst)),
    ]
    if weights:
        parts.append(section("What moves the scores", *_weights(weights)))
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


def _three(value: float) -> FormattedCell:
    return FormattedCell(float(value), f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}")


def _plain(value: object) -> int | float | str:
    """A cell of a table: ids as text, whole numbers whole."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float | np.floating) else str(value)
