"""The pages of `rankopt train` and `rankopt explain`: fits, certificate and progress; tightness of the bounds, the
worst queries, and the weights of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.report.page import LIGHT, Drawing, FormattedCell, brief, line_style, render, shortened

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.tightness import Tightness

LISTED = 30  # number of features in a table
MOST_POINTS = 2000  # largest number of points of the scatter plot, evenly spaced by looseness
STEPS = 300  # number of steps of a distribution
MOST_BARS = 15  # number of features drawn


def page_of_training(
    ranker: Any, queries: Queries, head: Sequence[str], rows: Sequence[Sequence[str]], name: str, made_by: str = ""
) -> str:
    """The page. head, rows: the table of fits, of which `ranker` was chosen; queries: the training data."""
    from rankopt.explanations.contributions import Weights
    from rankopt.rankers.inputs import normalized

    judged, certificate = getattr(ranker, "best_score_", None), getattr(ranker, "certificate_", None)
    finding = f"{ranker.measure} on validation is {judged:.4f}." if judged is not None else (
        f"{ranker.measure} on other queries is not known: measure it by rankopt evaluate, or train with --validate."
    )  # fmt: skip
    progress, history = [], getattr(ranker, "history_", ())
    if len(history) and hasattr(history, "plot"):
        with (drawing := Drawing("progress of training", f"What training reached, step by step: {name}.")) as axes:
            history.plot(axes).legend_ = None  # lines are named below the axes
        progress.append(drawing)
    weights = None
    if getattr(ranker, "coef_", None) is not None and ranker.coef_.ndim == 1:
        weights = Weights.from_queries(ranker.get_feature_names_out(), ranker.coef_, normalized(ranker, queries))
    rules = getattr(ranker, "constraints", None)
    return render(
        "training.html",
        name=name if rules is None else f"{name}, under {rules!r}",
        queries=len(queries),
        head=head,
        rows=rows,
        certificate="" if certificate is None else str(certificate),
        progress=progress,
        weights=[] if weights is None else [weights_drawing(weights, "scores")],
        weights_finding="" if weights is None else weights.finding,
        finding=finding,
        made_by=made_by,
    )


def page_of_explanations(
    name: str, tightness: Tightness, weights: Sequence[tuple[str, Weights]], worst: int, made_by: str = ""
) -> str:
    """The page. name: of the ranker and its data; tightness: of all queries; weights: the name and weights of each
    score, empty for trees; worst: how many queries are listed; made_by: the command."""
    columns = {**tightness.columns(), "query": [*map(str, tightness.query)]}
    chosen = tightness.worst(worst).tolist()
    return render(
        "explain.html",
        name=name,
        tightness=tightness,
        drawings=[_scatter(tightness), _distributions(tightness)],
        bounds=_bounds(tightness),
        columns=[name.replace("_", " ") for name in columns],
        worst=[[_cell(column[row]) for column in columns.values()] for row in chosen],
        weights=[(*pair, [weights_drawing(pair[1], pair[0])], _features(pair[1])) for pair in weights],
        listed=LISTED,
        finding=tightness.finding,
        made_by=made_by,
    )


def _bounds(found: Tightness) -> list[list[object]]:
    """Mean, maximum and number of loose queries of the regret and of each bound."""
    rows: list[list[object]] = [["regret", _three(found.regret.mean()), _three(found.regret.max()), None]]
    for name, values in found.bounds.items():
        loose = int((values >= found.max_regret * (1.0 - 1e-9)).sum())
        title = f"{name} bound" + (", trained" if found.own and name == found.trained else "")
        rows.append([title, _three(values.mean()), _three(values.max()), loose])
    return rows


def _features(weights: Weights) -> list[list[object]]:
    """The features of the largest effect: weight, deviation, their product and its share."""
    columns = (weights.coef.tolist(), weights.deviation.tolist(), weights.effect.tolist(), weights.share.tolist())
    return [
        [feature, brief(coef), brief(deviation), brief(effect), FormattedCell(share, f"{share:.1%}")]
        for feature, coef, deviation, effect, share in [*zip(weights.features, *columns, strict=True)][:LISTED]
    ]


def _three(value: float) -> FormattedCell:
    return FormattedCell(float(value), f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}")


def _cell(value: Any) -> object:
    """A cell of a table: ids as text, integers unchanged, other numbers with three digits."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return _three(float(value)) if isinstance(value, float | np.floating) else str(value)


def _scatter(found: Tightness) -> Drawing:
    rows = np.argsort(found.looseness, kind="stable")
    caption = f"Each query's regret and {found.trained} bound; no point lies below the line, where they are equal."
    if rows.size > MOST_POINTS:
        rows = rows[np.linspace(0, rows.size - 1, MOST_POINTS).round().astype(np.int64)]
        caption += f" {MOST_POINTS} of {len(found)} queries."
    regret, bound, silent = found.regret[rows], found.bound[rows], found.is_loose[rows]
    axis_labels = f"regret, {found.measure}", f"{found.trained} bound"
    with (drawing := Drawing("regret against bound", caption, *axis_labels)) as axes:
        top = float(max(bound.max(initial=0.0), regret.max(initial=0.0))) or 1.0
        far = float(max(regret.max(initial=0.0), found.max_regret.max(initial=0.0))) or 1.0
        axes.plot([0.0, min(far, top)], [0.0, min(far, top)], color=LIGHT["soft"], linewidth=1.0)
        for index, (mask, label) in enumerate(((~silent, "informative"), (silent, "loose: not informative"))):
            if mask.any():
                color = line_style(index)["color"]
                axes.scatter(regret[mask], bound[mask], s=16, color=color, alpha=0.7, linewidths=0, label=label)
        axes.set_xlim(-0.02 * far, 1.04 * far)
        axes.set_ylim(-0.02 * top, 1.06 * top)
    return drawing


def _distributions(found: Tightness) -> Drawing:
    caption = "Share of queries whose regret, or bound, is at most the value, up to the regret of the worst ranking."
    with (drawing := Drawing("share of queries", caption, f"lost, {found.measure}", "share of queries")) as axes:
        far = float(found.max_regret.max(initial=0.0)) or 1.0
        rows = np.unique(np.linspace(0, len(found) - 1, STEPS).round().astype(np.int64))
        share = np.concatenate([[0.0], (rows + 1) / len(found), [1.0]])
        for index, (name, values) in enumerate({"regret": found.regret, **found.bounds}.items()):
            ends = np.concatenate([[0.0], np.sort(values)[rows], [max(far, values.max())]])
            axes.step(ends, share, where="post", label=name, **line_style(index))
        axes.set_xlim(0.0, 1.02 * far)
        axes.set_ylim(-0.02, 1.02)
    return drawing


def weights_drawing(weights: Weights, about: str) -> Drawing:
    """The features of the largest effect: weight × deviation within queries, up or down."""
    count = min(MOST_BARS, len(weights))
    caption = f"Change of the {about} for one standard deviation of a feature"
    caption += f", the largest {count} of {len(weights)} features." if count < len(weights) else "."
    with (drawing := Drawing("weight × deviation", caption, height=1.0 + 0.22 * count)) as axes:
        effect = weights.effect[:count]
        colors = [line_style(0 if value >= 0 else 1)["color"] for value in effect]
        axes.barh(np.arange(count), effect, color=colors, height=0.7)
        axes.axvline(0.0, color=LIGHT["soft"], linewidth=0.8)
        axes.set_yticks(np.arange(count), [shortened(name) for name in weights.features[:count]])
        axes.set_ylim(count - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    return drawing
