"""The page of `rankopt direct`: how the measure was climbed, what is proved of the end, and the lines through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.explanations.contributions import Weights
from rankopt.optimize.line_search import LineSearch
from rankopt.report.explain_page import weights_drawing
from rankopt.report.legacy import element, figures, page, section, table
from rankopt.report.page import SERIES, Drawing, FormattedCell, brief, line_style, shortened
from rankopt.sweeps.drawing import draw_line

if TYPE_CHECKING:
    from rankopt.ascent.ascent import Moves
    from rankopt.data.queries import Queries

PATHS = 8
"""Paths that are drawn, at most."""

LEAD = (
    "Along the weight of one feature, all others fixed, a ranking measure is a step function: it jumps where two "
    "documents of a query change places. All jumping points are found, so each step below is the best of its line. The "
    "certificate speaks of each of its directions alone, never of several at once."
)


def page_of_direct(ranker: Any, queries: Queries, lines: int, name: str, made_by: str = "") -> str:
    """The page.

    Args:
        ranker: a fitted `DirectRanker`, which remembers what it learned from; queries: these, as they were given.
        lines: how many features are drawn, those that move the scores most; name: of the data.
    """
    learned, weights = ranker._learned_from
    search = LineSearch.of(ranker.measure, learned, weights)
    names = list(getattr(ranker, "feature_names_in_", [f"x{j}" for j in range(ranker.n_features_in_)]))
    moved = Weights.on(names, ranker.coef_, learned)
    chosen = moved.column[: min(lines, len(moved))].tolist()
    found = search.along_all(ranker.coef_, chosen, ranker.point, ranker.window)
    drawings = [
        _line(search, ranker, feature, line, names[feature]) for feature, line in zip(chosen, found, strict=True)
    ]
    head = ["feature", "weight", "jumping points", "best of the line", "interval", "a search stands at"]
    rows = [
        [
            names[feature], float(ranker.coef_[feature]), line.events, FormattedCell(line.best, f"{line.best:.4f}"),
            f"{line.low + ranker.coef_[feature]:.4g} to {line.high + ranker.coef_[feature]:.4g}",
            float(ranker.coef_[feature] + line.t),
        ]
        for feature, line in zip(chosen, found, strict=True)
    ]  # fmt: skip
    parts = [
        section("The ascent", element("pre", str(ranker.certificate_)), *_ascent(ranker)),
        section("The measure along lines", table(head, rows, "Features that move the scores most"), figures(drawings)),
        section("The weights", figures([weights_drawing(moved, "scores")]), moved.finding),
    ]
    lead = f"{name}: {len(queries)} queries. {LEAD}"
    return page("The measure, climbed", lead, *parts, finding=_finding(ranker, search), made_by=made_by)


def _finding(ranker: Any, search: LineSearch) -> str:
    """What was reached and proved, and what to do."""
    proved, start = ranker.certificate_, search.value(ranker.w0_)
    told = f"{ranker.measure} on the training queries is {proved.value:.4f}; the start had {start:.4f}. "
    if not len(proved):
        told += "No direction was tried from here: give it more time."
    elif proved.epsilon <= ranker.tol:
        told += f"No one of {len(proved)} directions leads higher, each alone."
    else:
        told += f"One of {len(proved)} directions, alone, would lead higher by {proved.epsilon:.2g}, and none by more. "
        if ranker.point == "window":
            told += "Such places are narrow; a search that stands in the middle of the best interval takes them."
        else:
            told += "Give it more rounds: --max-iter, --time-limit."
    judged = getattr(ranker, "eval_score_", None)
    if judged is None:
        return f"{told} What it is worth on other queries is not known: judge it there, by rankopt evaluate."
    return f"{told} On validation it is {judged:.4f}: choose between models by that number, not by that of training."


def _ascent(ranker: Any) -> list[object]:
    history, rows = ranker.history_, []
    for path, value in enumerate(ranker.path_values_.tolist()):
        own = history.path == path
        begun = float(history.before[own][0]) if own.any() else value
        rows.append(
            [
                path,
                brief(begun),
                FormattedCell(value, f"{value:.4f}"),
                int(own.sum()),
                int(history.lines[own].max(initial=0)),
            ]
        )
    head = ["path", "began at", "ended at", "steps", "line searches until the last step"]
    parts: list[object] = [table(head, rows, f"Paths; the model is the {ranker.combine} of them")]
    if len(history):
        parts.append(figures([_history(history, str(ranker.measure))]))
    return parts


def _history(history: Moves, measure: str) -> Drawing:
    drawing = Drawing("measure against line searches", f"{measure} on the training queries after every accepted step.")
    with drawing as axes:
        for place, path in enumerate(np.unique(history.path)[:PATHS].tolist()):
            own = history.path == path
            x, y = np.append(0, history.lines[own]), np.append(history.before[own][0], history.value[own])
            axes.step(x, y, where="post", label=f"path {path}", **line_style(place))
        axes.set_xlabel("line searches")
        axes.set_ylabel(shortened(measure))
    return drawing


def _line(search: LineSearch, ranker: Any, feature: int, line: Any, name: str) -> Drawing:
    says = (
        f"{ranker.measure} against the weight of {name}, all others fixed: {line.events} jumping points; the interval "
        "that a search would choose is shaded, the dashed line is where the model stands."
    )
    drawing = Drawing(name, says)
    with drawing as axes:
        steps, at = search.steps(ranker.coef_, feature), float(ranker.coef_[feature])
        draw_line(steps, line, at, shortened(str(ranker.measure)), "weight", axes, SERIES[:3], legend=False)
    return drawing
