"""The page of `rankopt cofi`: objective and bounds, accuracy next to the baselines, cost of a quota."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.report.charts import limit_curve
from rankopt.report.page import Drawing, FormattedCell, line_style, log_scale, render

if TYPE_CHECKING:
    from formulations.solving.sensitivity import SensitivityCurve
    from rankopt.ratings.evaluation import RatingsEvaluation

ROUNDING = 1e-10  # relative gaps and differences of the objective below this are rounding errors and are not drawn


def page_of_cofi(
    ranker: Any,
    accuracy: Sequence[tuple[str, Sequence[RatingsEvaluation]]],
    prices: SensitivityCurve | None,
    by: str,
    name: str,
    made_by: str = "",
    compared: Sequence[Sequence[str]] = (),
    sampled: str = "",
) -> str:
    """The page of a fitted ranker. accuracy: names and evaluations of the ranker and the baselines, each list by the
    same protocols; empty without a test. prices: the sensitivity curve of the quota; None if items have no attribute
    `by`. compared: rows of the paired tests, the last entry a sentence. sampled: for whom the quota is computed."""
    drawings, omitted = _training(ranker)
    judged = accuracy[0][1] if accuracy else []
    return render(
        "cofi.html",
        name=name,
        user_offsets=bool(ranker.user_bias_.any()),
        certificate=str(ranker.certificate_),
        no_factors="" if ranker.model_.used else no_factors(ranker.model_.dimensions),
        omitted=omitted,
        drawings=drawings,
        measures=[f"{one.measure!r}, {_short(one.protocol)}" for one in judged],
        protocols=[f"{_short(one.protocol)}: {one.protocol}." for one in judged],
        accuracy=[[label, *(FormattedCell(one.mean, one.estimate) for one in found)] for label, found in accuracy],
        by=by,
        compared=[row[:-1] for row in compared],
        prices=[] if prices is None else _quota_rows(prices),
        users=sampled or f"{0 if prices is None else len(prices.value)} users",
        price_drawing=[]
        if prices is None or len(_full_lists(prices).limits) < 2
        else [limit_curve(_full_lists(prices))],
        finding=" ".join(filter(None, [*_finding(ranker, accuracy, compared), advice_on_lists(ranker)])),
        made_by=made_by,
    )


def no_factors(dimensions: int) -> str:
    """The sentence for a model whose factors are all 0."""
    return f"0 of {dimensions} factors are used: scores are offsets alone, and all users have the same ranking."


def advice_on_lists(ranker: Any) -> str:
    """The sentence for a model that leaves the unrated pairs out."""
    other = "" if ranker.loss == "regression" else "--loss regression "
    advice = f"For lists among all items try {other}--unrated-weight 0.05 to 0.4, chosen by --test-per-user 5."
    return "" if ranker.unrated_weight else advice


def _short(protocol: str) -> str:
    return "rated items" if "rated items only" in protocol else "all items"


def _finding(
    ranker: Any, accuracy: Sequence[tuple[str, Sequence[RatingsEvaluation]]], compared: Sequence[Sequence[str]]
) -> list[str]:
    """The best ranker among rated and among all items, to be used unless a paired test says otherwise; without a test
    the proven gap and advice to add a test."""
    if not accuracy:
        proved = ranker.certificate_
        gap = max(proved.users_gap, proved.items_gap)
        reached = (
            f"until both blocks' proven gaps were {100 * gap:.2g}% or less" if np.isfinite(gap) else "to no known gap"
        )
        return [
            f"Trained {reached}; there are no test ratings, so its accuracy is unknown. Before you use it, "
            "compare it with item means and popularity: give --test-per-user 10, or --test FILE."
        ]
    sentences, best = [], {}
    for column, one in enumerate(accuracy[0][1]):
        leader, found = max(accuracy, key=lambda row: row[1][column].mean)
        sentences.append(f"Among {_short(one.protocol)}, {leader} has the highest mean, {found[column].mean:.4f}.")
        best[_short(one.protocol)] = leader
    unsure = {row[1]: row[-1] for row in compared if row[-1]}
    if len(set(best.values())) == 1 and not unsure:
        return [*sentences, f"Use {leader}."]
    aims = {"rated items": "To order items that a user has chosen", "all items": "To recommend among all"}
    return sentences + [unsure.get(items, f"{aims[items]} use: {leader}.") for items, leader in best.items()]


def _training(ranker: Any) -> tuple[list[Drawing], str]:
    """The figures of the training, and a sentence on why some are omitted."""
    history, (low, high) = ranker.history_, _visible_range(ranker)
    gaps = {
        name: (history.primal - bound) / np.maximum(np.abs(history.primal), 1e-300)
        for name, bound in (("users", history.users), ("items", history.items))
    }
    open_ = {name: gap for name, gap in gaps.items() if (gap > ROUNDING).any()}
    moves = high - low > ROUNDING * abs(high)
    drawings = [_objective(ranker, low, high)] if moves else []
    drawings += [_gaps(ranker, open_, [name for name in gaps if name not in open_])] if open_ else []
    if moves and open_:
        return drawings, ""
    what = "The gaps are" if moves else "The objective is" if open_ else "Objective and gaps are"
    why = "it did not move" if open_ else "the gaps of both blocks were closed from the start"
    return drawings, f"{what} not drawn: {why}."


def _visible_range(ranker: Any) -> tuple[float, float]:
    """The range from the last bounds up to the objective after its first quarter."""
    history, bound = ranker.history_, ranker.certificate_.bound
    bounds = [history.users[-1], history.items[-1], *([bound] if np.isfinite(bound) else [])]
    late = history.primal[len(history) // 4 :]
    low, high = min(late.min(), *bounds), late.max()
    if high - low <= ROUNDING * abs(high):
        low, high = min(history.primal.min(), *bounds), history.primal.max()
    return float(low), float(high)


def _objective(ranker: Any, low: float, high: float) -> Drawing:
    history, bound = ranker.history_, ranker.certificate_.bound
    lines = {"objective": history.primal, "users' bound": history.users, "items' bound": history.items}
    caption = "J after each round, and its lower bounds."
    with (drawing := Drawing("objective and bounds of both blocks", caption, "rounds", "objective")) as axes:
        for index, (label, column) in enumerate(lines.items()):
            style = line_style(index) | ({"linestyle": "--"} if index else {})  # a bound may cover the objective
            axes.plot(history.step, column, label=label, **style)
        if np.isfinite(bound):
            axes.axhline(bound, label="global bound", **line_style(3))
        margin = 0.1 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        axes.locator_params("x", integer=True)
        axes.ticklabel_format(axis="y", useOffset=False)
    return drawing


def _gaps(ranker: Any, gaps: dict[str, Any], closed: Sequence[str]) -> Drawing:
    """gaps: of the blocks that are drawn; closed: the others."""
    title, caption = "gaps of both blocks", "J minus the lower bound of each block, relative to J."
    if closed:
        title = f"gap of the {next(iter(gaps))}"
        caption += f" That of the {closed[0]} was closed from the start and is not drawn."
    elif any((gap <= ROUNDING).any() for gap in gaps.values()):
        caption += " Closed gaps are not drawn."
    with (drawing := Drawing(title, caption, "rounds", "relative gap")) as axes:
        for name, gap in gaps.items():
            seen = gap > ROUNDING
            mark = "" if seen.all() else "."  # a line of one point is invisible without one
            style = line_style(("users", "items").index(name))
            axes.plot(ranker.history_.step, np.where(seen, gap, np.nan), label=name, marker=mark, **style)
        log_scale(axes, "y")
        axes.locator_params("x", integer=True)
    return drawing


def _quota_rows(curve: SensitivityCurve) -> list[list[object]]:
    """The loss of the lists at each limit, relative to the list without a quota, the last; a limit that leaves some
    users a shorter list is marked and not compared."""
    full = _full_lists(curve)
    lost, spread = full.lost
    cells = dict(zip(full.limits.tolist(), zip(full.mean, lost, spread, strict=True), strict=True))
    rows: list[list[object]] = []
    for limit, short in zip(curve.limits.tolist(), curve.empty.sum(axis=0).tolist(), strict=True):
        name = f"{limit:g}" if limit < curve.limits[-1] else f"{limit:g} (no quota)"
        if limit in cells:
            rows.append([name, *(FormattedCell(cell, f"{cell:.4f}") for cell in cells[limit])])
        else:
            rows.append([f"{name} (shorter lists for {short} of {len(curve.value)} users)", None, None, None])
    return rows


def _full_lists(curve: SensitivityCurve) -> SensitivityCurve:
    """The curve at the limits that leave every user a list as long as without a quota."""
    chosen = ~curve.empty.any(axis=0)
    arrays = ("value", "bound", "relaxed", "price", "integral")
    return replace(curve, limits=curve.limits[chosen], **{name: getattr(curve, name)[:, chosen] for name in arrays})
