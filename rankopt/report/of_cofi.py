"""The page of `rankopt cofi`: objective and bounds, accuracy beside the baselines, the price of a quota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.report.figures import Drawing, by_tens, figures, line_style
from rankopt.report.markup import element
from rankopt.report.page import page, section
from rankopt.report.tables import Shown, brief, table

if TYPE_CHECKING:
    from rankopt.collaborative.lists.quota_prices import QuotaPrice
    from rankopt.evaluation.ratings import RatingsEvaluation

__all__ = ["page_of_cofi"]

LEAD = (
    "Scores are an offset of the item plus a product of two short vectors. For fixed items each user is a convex "
    "problem, for fixed users all items are one: both are solved in turn, and the bounds below say how far each is "
    "from its own best. They are no bounds of the whole, which is not convex; where that has one, the certificate says "
    "so."
)


ROUNDING = 1e-12
"""Gaps that are nothing but rounding are not drawn."""


def page_of_cofi(
    ranker: Any,
    accuracy: Sequence[tuple[str, Sequence[RatingsEvaluation]]],
    prices: Sequence[QuotaPrice],
    by: str,
    name: str,
    made_by: str = "",
) -> str:
    """The page of a fitted ranker. accuracy: name and evaluations, ranker and baselines, of which each list is of the
    same protocols; none without a test. prices: none where items have no labels."""
    told = [element("pre", str(ranker.certificate_))]
    if ranker.user_strength_ != ranker.strength_:
        told.append(element("p", _relaxed(ranker)))
    parts = [section("Training", *told, figures([_objective(ranker), _gaps(ranker)]))]
    if accuracy:
        protocols = [one.protocol for one in accuracy[0][1]]
        head = ["ranker", *(f"{one.measure!r}, {_short(one.protocol)}" for one in accuracy[0][1])]
        rows = [
            [who, *(Shown(one.mean, one.estimate) for one in found)]
            for who, found in accuracy
        ]
        notes = [element("p", f"{_short(one)}: {one}.") for one in protocols]
        parts.append(section("Accuracy", table(head, rows, "Mean over users, and its standard error"), *notes))
    if prices:
        parts.append(section("What a quota costs", _prices(prices, by), figures([_price(prices, by)])))
    return page("Collaborative ranking", f"{name}. {LEAD}", *parts, finding=_finding(ranker, accuracy), made_by=made_by)


def _relaxed(ranker: Any) -> str:
    """What bounds and figures are of, where the users that scores use are others than those of the training."""
    trained, own = f"{ranker.strength_:.3g} λ_max", f"{ranker.user_strength_:.3g} λ_max"
    return (
        f"All this is of the users of the training, at {trained}. For the items that were found users were solved once "
        f"more, at {own}, and those are what scores and lists use."
    )


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


def _objective(ranker: Any) -> Drawing:
    history = ranker.history_
    drawing = Drawing("objective and bounds of both blocks", "J after each round, and what it cannot fall below.")
    with drawing as axes:
        for place, (label, column) in enumerate(
            (("objective", history.primal), ("users' bound", history.users), ("items' bound", history.items))
        ):
            axes.plot(history.step, column, label=label, **line_style(place))
        late = history.primal[len(history) // 4 :]
        low = min(np.min(history.users[-1:]), np.min(history.items[-1:]), late.min())
        if np.isfinite(ranker.certificate_.bound):
            low = min(low, ranker.certificate_.bound)
            axes.axhline(ranker.certificate_.bound, label="bound of the whole", **line_style(3))
        margin = 0.1 * (late.max() - low) or 0.01 * abs(low) or 0.01
        axes.set_ylim(low - margin, late.max() + margin)
        axes.set_xlabel("rounds")
        axes.set_ylabel("objective")
        axes.locator_params("x", integer=True)
    return drawing


def _gaps(ranker: Any) -> Drawing:
    history = ranker.history_
    drawing = Drawing("gaps of both blocks", "How far J may lie above the best of each block, as a part of J.")
    with drawing as axes:
        for place, (label, bound) in enumerate((("users", history.users), ("items", history.items))):
            gap = (history.primal - bound) / np.maximum(np.abs(history.primal), 1e-300)
            axes.plot(history.step, np.where(gap > ROUNDING, gap, np.nan), label=label, **line_style(place))
        if any(np.isfinite(np.asarray(line.get_ydata())).any() for line in axes.get_lines()):
            by_tens(axes, "y")
        axes.set_xlabel("rounds")
        axes.set_ylabel("relative gap")
        axes.locator_params("x", integer=True)
    return drawing


def _prices(prices: Sequence[QuotaPrice], by: str) -> Any:
    head = [f"at most of each {by}", "weighted score", "price", f"different {by}s in a list", "ms a user", "slowest"]
    free = prices[0].score
    rows = [
        [
            "no quota" if one.limit is None else one.limit, Shown(one.score, f"{one.score:.4f}"),
            Shown(free - one.score, f"{free - one.score:.4f}"), Shown(one.labels, f"{one.labels:.2f}"),
            brief(1e3 * one.seconds), f"{one.slowest[0]}: {1e3 * one.slowest[1]:.3g} ms",
        ]
        for one in prices
    ]  # fmt: skip
    return table(head, rows, "Σ c_i s_i / Σ c_i of the lists, the mean over users; each list is its quota's best")


def _price(prices: Sequence[QuotaPrice], by: str) -> Drawing:
    drawing = Drawing(f"the price of {by}s", f"Score of the lists against how many different {by}s they have.")
    with drawing as axes:
        axes.plot([one.labels for one in prices], [one.score for one in prices], marker="o", **line_style(0))
        for one in prices:
            axes.annotate(
                "free" if one.limit is None else str(one.limit),
                (one.labels, one.score),
                (5, 5),
                textcoords="offset points",
            )
        axes.set_xlabel(f"different {by}s in a list")
        axes.set_ylabel("weighted score")
    return drawing
