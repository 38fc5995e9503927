"""The page of `rankopt cofi`: objective and bounds, accuracy beside the baselines, the price of a quota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.report.charts import price_drawing
from rankopt.report.html import Drawing, FormattedCell, Html, by_tens, element, figures, line_style, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from formulations.solving.sensitivity import PriceCurve
    from rankopt.ratings.evaluation import RatingsEvaluation

LEAD = (
    "For fixed items each user is a convex problem, for fixed users all items are one: both are solved in turn, and "
    "the bounds below say how far each is from its own best. They are no bounds of the whole, which is not convex; "
    "where that has one, the certificate says so."
)

ROUNDING = 1e-10
"""Gaps and differences of J that are a smaller part of it are next to nothing but rounding, and not drawn."""


def page_of_cofi(
    ranker: Any,
    accuracy: Sequence[tuple[str, Sequence[RatingsEvaluation]]],
    prices: PriceCurve | None,
    by: str,
    name: str,
    made_by: str = "",
) -> str:
    """The page of a fitted ranker. accuracy: name and evaluations, ranker and baselines, of which each list is of the
    same protocols; none without a test. prices: None where items have no labels."""
    told = [element("pre", str(ranker.certificate_))]
    if not ranker.model_.used:
        told.append(element("p", no_factors(ranker.model_.dimensions)))
    parts = [section("Training", *told, *_drawn(ranker))]
    if accuracy:
        protocols = [one.protocol for one in accuracy[0][1]]
        head = ["ranker", *(f"{one.measure!r}, {_short(one.protocol)}" for one in accuracy[0][1])]
        rows = [[who, *(FormattedCell(one.mean, one.estimate) for one in found)] for who, found in accuracy]
        notes = [element("p", f"{_short(one)}: {one}.") for one in protocols]
        parts.append(section("Accuracy", table(head, rows, "Mean over users, and its standard error"), *notes))
    if prices is not None:
        parts.append(section("What a quota costs", _prices(prices, by), price_drawing(prices)))
    lead = f"{name}. {_scores(ranker)} {LEAD}"
    return page("Collaborative ranking", lead, *parts, finding=_finding(ranker, accuracy), made_by=made_by)


def no_factors(dimensions: int) -> str:
    """What it means that all factors are 0."""
    return (
        f"0 of {dimensions} factors are used: scores are offsets alone, and all users have one order of the items, so "
        "who the user is does not count."
    )


def _scores(ranker: Any) -> str:
    offsets = "an offset of the item and one of the user" if ranker.user_offsets_.any() else "an offset of the item"
    return f"Scores are {offsets} plus a product of two short vectors."


def _short(protocol: str) -> str:
    return "rated items" if "rated items only" in protocol else "all items"


def _finding(ranker: Any, accuracy: Sequence[tuple[str, Sequence[RatingsEvaluation]]]) -> str:
    """Who is ahead where, and whom to use for what; without a test how far training came, and that one is needed."""
    if not accuracy:
        proved = ranker.certificate_
        gap = max(proved.users_gap, proved.items_gap)
        reached = (
            f"until both blocks' proven gaps were {100 * gap:.2g}% or less" if np.isfinite(gap) else "to no known gap"
        )
        return (
            f"Trained {reached}; how well it ranks is not known, for no test ratings were given. Before you use it, "
            "judge it beside item means and popularity: give --hold-out 10, or --test FILE."
        )
    told, ahead = [], {}
    for column, one in enumerate(accuracy[0][1]):
        best = max(accuracy, key=lambda row: row[1][column].mean)
        told.append(f"Among {_short(one.protocol)}, {best[0]} is ahead with {best[1][column].mean:.4f}.")
        ahead[_short(one.protocol)] = best[0]
    if len(set(ahead.values())) == 1:
        return " ".join([*told, f"Use {best[0]}."])
    aims = {"rated items": "To order items that a user has chosen", "all items": "To recommend among all"}
    return " ".join([*told, *(f"{aims[where]} use: {who}." for where, who in ahead.items())])


def _drawn(ranker: Any) -> list[Html]:
    """The figures of the training that show something, and in a sentence why others are left out."""
    history, (low, high) = ranker.history_, _window(ranker)
    gaps = {
        name: (history.primal - bound) / np.maximum(np.abs(history.primal), 1e-300)
        for name, bound in (("users", history.users), ("items", history.items))
    }
    open_ = {name: gap for name, gap in gaps.items() if (gap > ROUNDING).any()}
    moves = high - low > ROUNDING * abs(high)
    drawings = [_objective(ranker, low, high)] if moves else []
    drawings += [_gaps(ranker, open_, [name for name in gaps if name not in open_])] if open_ else []
    told = []
    if not moves or not open_:
        left = "The gaps are" if moves else "The objective is" if open_ else "Objective and gaps are"
        why = "it did not move" if open_ else "the gaps of both blocks were closed from the start"
        told.append(element("p", f"{left} not drawn: {why}."))
    return [*told, *([figures(drawings)] if drawings else [])]


def _window(ranker: Any) -> tuple[float, float]:
    """The range of J worth seeing, where it begins far above what follows, down to the last bounds."""
    history, whole = ranker.history_, ranker.certificate_.bound
    bounds = [history.users[-1], history.items[-1], *([whole] if np.isfinite(whole) else [])]
    late = history.primal[len(history) // 4 :]
    low, high = min(late.min(), *bounds), late.max()
    if high - low <= ROUNDING * abs(high):
        low, high = min(history.primal.min(), *bounds), history.primal.max()
    return float(low), float(high)


def _objective(ranker: Any, low: float, high: float) -> Drawing:
    history = ranker.history_
    drawing = Drawing("objective and bounds of both blocks", "J after each round, and what it cannot fall below.")
    with drawing as axes:
        for place, (label, column) in enumerate(
            (("objective", history.primal), ("users' bound", history.users), ("items' bound", history.items))
        ):
            axes.plot(history.step, column, label=label, **line_style(place))
        if np.isfinite(ranker.certificate_.bound):
            axes.axhline(ranker.certificate_.bound, label="bound of the whole", **line_style(3))
        margin = 0.1 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        axes.set_xlabel("rounds")
        axes.set_ylabel("objective")
        axes.locator_params("x", integer=True)
        axes.ticklabel_format(axis="y", useOffset=False)
    return drawing


def _gaps(ranker: Any, gaps: dict[str, Any], closed: Sequence[str]) -> Drawing:
    """gaps: of the blocks that are drawn; closed: the others."""
    says = "How far J may lie above the best of each block, as a part of J."
    if closed:
        says += f" That of the {closed[0]} was closed from the start and is not drawn."
    elif any((gap <= ROUNDING).any() for gap in gaps.values()):
        says += " What is closed is not drawn."
    drawing = Drawing("gaps of both blocks" if not closed else f"gap of the {next(iter(gaps))}", says)
    with drawing as axes:
        for name, gap in gaps.items():
            seen = gap > ROUNDING
            mark = "" if seen.all() else "."  # of one round, for a line needs two
            style = line_style(("users", "items").index(name))
            axes.plot(ranker.history_.step, np.where(seen, gap, np.nan), label=name, marker=mark, **style)
        by_tens(axes, "y")
        axes.set_xlabel("rounds")
        axes.set_ylabel("relative gap")
        axes.locator_params("x", integer=True)
    return drawing


def _prices(prices: PriceCurve, by: str) -> Html:
    """What the lists lose at each limit against the loosest one."""
    lost, spread = prices.lost
    rows = [
        [f"{limit:g}", *(FormattedCell(cell, f"{cell:.4f}") for cell in cells)]
        for limit, *cells in zip(prices.limits, prices.mean, lost, spread, strict=True)
    ]
    head = [f"at most of each {by}", "weighted score", "lost", "standard deviation"]
    says = f"Σ c_i s_i / Σ c_i of the lists, c_i = 1/log2(i + 1), the mean over {prices.shared} users"
    return table(head, rows, says)
