"""A matrix of shares between named things as squares, the darker the larger.

The matrix of a set, entry by entry, and in it the square part that refutes total unimodularity.

A measure at k of learnt rankers, for every k, as the papers draw it.

What limits cost, drawn: the best value against the limit, the program's above it, and the pairs that none beats.

Performance profiles: which share of the problems each solver had solved within t times the time of the fastest.

Regret against its bounds, a point a query; and the share of queries that lie below each value.

What the features move scores by, as bars from the largest down.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.display import tick_each
from formulations.solving.parametric import PriceCurve
from rankopt.report.html import LIGHT, SHADES, Drawing, Html, by_tens, figures, line_style, shortened, table

if TYPE_CHECKING:
    from formulations.solving.parametric import Pareto
    from rankopt.explanations.contributions import Weights
    from rankopt.explanations.tightness import Tightness

Floats = NDArray[np.float64]

LIMITS = (0.25, 0.75, 1.0)
"""Shares below the first have the lightest shade, those from the last on the darkest."""

WRITTEN = 9
"""Most columns in which a square still has room for its number."""


def heat_map(names: Sequence[str], shares: Floats, title: str, says: str) -> Drawing:
    """shares (r, r) in [0, 1]; NaN where there is nothing to compare. A share below 1 is ringed in red."""
    from matplotlib.patches import Rectangle

    r = len(names)
    drawing = Drawing(title, says, height=1.2 + 3.2 * min(1.0, 0.3 + r / 12))
    with drawing as axes:
        for i in range(r):
            for j in range(r):
                share = shares[i, j]
                known = bool(np.isfinite(share))
                shade = SHADES[int(np.searchsorted(LIMITS, share, side="right"))] if known else LIGHT["none"]
                differs = known and share < 1
                square = Rectangle((j + 0.06, i + 0.06), 0.88, 0.88, facecolor=shade)
                square.set_edgecolor(LIGHT["s8"] if differs else "none")
                axes.add_patch(square)
                if r <= WRITTEN:
                    text = _percent(share) if known else "–"
                    axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=9)
        axes.set_xlim(0, r)
        axes.set_ylim(r, 0)
        short = [shortened(name, 18) for name in names]
        axes.set_xticks(np.arange(r) + 0.5, short, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(np.arange(r) + 0.5, short)
        axes.tick_params(length=0)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return drawing


def _percent(share: float) -> str:
    """A share in whole percent; 100 means all, so nearly all is 99."""
    return str(min(99, round(100 * share)) if share < 1 else 100)


MOST_ENTRIES = 4000
"""Entries up to which a matrix is drawn: each is a shape on the page."""


def matrix_picture(matrix: csr_array, rows: Sequence[int] = (), columns: Sequence[int] = ()) -> Drawing:
    """rows, columns: of the part that is picked out."""
    high, wide = matrix.shape
    entries = matrix.tocoo()
    i, j = entries.coords
    inside = np.isin(i, rows) & np.isin(j, columns)
    says = "A square is an entry that is not 0: rows are constraints, columns variables."
    if len(rows):
        says += " Red: the entries of the witness."
    drawing = Drawing("the matrix", says, height=float(np.clip(5.2 * high / wide, 1.6, 4.0)))
    side = 220.0 / max(wide, 2.0 * high)  # points; the axes are about 340 points wide
    with drawing as axes:
        for chosen, colour in ((~inside, LIGHT["s1"]), (inside, LIGHT["s8"])):
            if chosen.any():
                axes.scatter(j[chosen], i[chosen], s=side**2, marker="s", color=colour, linewidth=0)
        axes.set_xlim(-1, wide)
        axes.set_ylim(high, -1)
        axes.set_xlabel(f"{wide} variables")
        axes.set_ylabel(f"{high} rows")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(False)
    return drawing


AT = re.compile(r"(.*)@(\d+)")


def measure_curves(reached: Mapping[str, Mapping[str, float | None]], about: str) -> list[Drawing]:
    """One drawing for each measure that was taken at several cutoffs; `reached[ranker]["nDCG@10"]` is a mean."""
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for ranker, measures in reached.items():
        for name, value in measures.items():
            parts = AT.fullmatch(name)
            if parts and value is not None:
                curves[parts[1]][ranker][int(parts[2])] = value
    drawings = []
    for measure, rankers in curves.items():
        if max(map(len, rankers.values())) < 2:
            continue
        drawing = Drawing(f"{measure}@k", f"{about}: mean {measure}@k against k.")
        with drawing as axes:
            for place, (ranker, at) in enumerate(rankers.items()):
                cutoffs = sorted(at)
                means = [at[k] for k in cutoffs]
                axes.plot(cutoffs, means, marker="o", markersize=4, label=ranker, **line_style(place))
            axes.set_xlabel("k")
            axes.set_ylabel(shortened(f"{measure}@k"))
            axes.set_xticks(sorted({k for at in rankers.values() for k in at}))
        drawings.append(drawing)
    return drawings


def price_curves(swept: Sequence[Any]) -> list[Html]:
    """A drawing and a table for each curve of `price_of`; a table for a front of `pareto`."""
    parts: list[Html] = []
    for one in swept:
        parts += [_drawn(one), _told(one)] if isinstance(one, PriceCurve) else [_front(one)]
    return parts


def _drawn(curve: PriceCurve) -> Html:
    drawing = Drawing(curve.name, f"The value of the best ranking against the limit: {curve.name}.")
    there = ~curve.empty
    with drawing as axes:
        axes.plot(curve.limits[there], curve.relaxed[there], marker="s", markersize=4, label="linear program",
                  **line_style(1))  # fmt: skip
        axes.plot(curve.limits[there], curve.value[there], marker="o", markersize=4, label="best ranking",
                  **line_style(0))  # fmt: skip
        axes.set_xlabel(curve.name)
        axes.set_ylabel("value")
        tick_each(axes, curve.limits)
    return figures([drawing])


def _told(curve: PriceCurve) -> Html:
    rows: list[list[object]] = []
    numbers = np.column_stack([curve.limits, curve.value, curve.bound, curve.relaxed, curve.price + 0.0])
    for (limit, *held), empty, whole in zip(numbers.tolist(), curve.empty, curve.whole, strict=True):
        rows.append([limit, "no ranking", "", "", "", ""] if empty else [limit, *held, "yes" if whole else "no"])
    head = ["limit", "value", "proven bound", "linear program", "price of a unit", "whole"]
    return table(head, rows, f"What each limit costs: {curve.name}")


def _front(front: Pareto) -> Html:
    rows = [[float(part) for part in point] for point in front.front]
    left = int(np.isnan(front.value).sum())
    return table([*front.names, "value"], rows, f"Pairs of limits that none beats ({left} pairs leave no ranking)")


def profile_drawing(curves: Mapping[str, tuple[Floats, Floats]], about: str) -> Drawing:
    """curves[solver]: factors t >= 1 in rising order, and the share of problems solved within each."""
    says = f"{about}: share of the problems solved within t times the seconds of the fastest solver [Dolan and Moré]."
    drawing = Drawing("performance profile", says)
    with drawing as axes:
        most = max((factors[-1] for factors, _ in curves.values() if len(factors)), default=1.0)
        for place, (solver, (factors, shares)) in enumerate(curves.items()):
            t = np.concatenate([[1.0], factors, [1.3 * most]])
            share = np.concatenate([[0.0], shares, shares[-1:] if len(shares) else [0.0]])
            axes.step(t, share, where="post", label=solver, **line_style(place))
        axes.set_ylim(-0.02, 1.02)
        by_tens(axes, "x")
        axes.set_xlabel("t")
        axes.set_ylabel("share solved")
    return drawing


MOST_TIGHTNESS_DRAWING = 2000
"""Points of the scatter; of more queries, evenly by looseness."""

POINTS = 300
"""Steps of a distribution."""


def tightness_drawing(found: Tightness) -> list[Drawing]:
    """The scatter of the trained bound, and the distributions of regret and of all bounds."""
    return [_scatter(found), _distributions(found)]


def _scatter(found: Tightness) -> Drawing:
    rows = np.argsort(found.looseness, kind="stable")
    few = rows.size > MOST_TIGHTNESS_DRAWING
    if few:
        rows = rows[np.linspace(0, rows.size - 1, MOST_TIGHTNESS_DRAWING).round().astype(np.int64)]
    regret, bound, silent = found.regret[rows], found.bound[rows], found.silent[rows]
    says = f"Each query's regret and {found.trained} bound; no point lies below the line, where they are equal."
    drawing = Drawing(
        "regret against bound", says + (f" {MOST_TIGHTNESS_DRAWING} of {len(found)} queries." if few else "")
    )
    with drawing as axes:
        top = float(max(bound.max(initial=0.0), regret.max(initial=0.0))) or 1.0
        far = float(max(regret.max(initial=0.0), found.most.max(initial=0.0))) or 1.0
        axes.plot([0.0, min(far, top)], [0.0, min(far, top)], color=LIGHT["soft"], linewidth=1.0)
        for place, (mask, label) in enumerate(((~silent, "says something"), (silent, "loose: says nothing"))):
            if mask.any():
                colour = line_style(place)["color"]
                axes.scatter(regret[mask], bound[mask], s=16, color=colour, alpha=0.7, linewidths=0, label=label)
        axes.set_xlim(-0.02 * far, 1.04 * far)
        axes.set_ylim(-0.02 * top, 1.06 * top)
        axes.set_xlabel(f"regret, {found.measure}")
        axes.set_ylabel(f"{found.trained} bound")
    return drawing


def _distributions(found: Tightness) -> Drawing:
    says = "The share of queries whose regret, or bound, is at most so much, up to what the worst ranking would lose."
    drawing = Drawing("share of queries", says)
    with drawing as axes:
        far = float(found.most.max(initial=0.0)) or 1.0
        kept = np.unique(np.linspace(0, len(found) - 1, POINTS).round().astype(np.int64))
        share = (kept + 1) / len(found)
        for place, (name, values) in enumerate({"regret": found.regret, **found.bounds}.items()):
            ends = np.concatenate([[0.0], np.sort(values)[kept], [max(far, values.max())]])
            axes.step(ends, np.concatenate([[0.0], share, [1.0]]), where="post", label=name, **line_style(place))
        axes.set_xlim(0.0, 1.02 * far)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(f"lost, {found.measure}")
        axes.set_ylabel("share of queries")
    return drawing


MOST_WEIGHTS_DRAWING = 15
"""Bars that are drawn."""


def weights_drawing(weights: Weights, about: str) -> Drawing:
    """The features of the largest effect: weight × deviation within queries, up or down."""
    count = min(MOST_WEIGHTS_DRAWING, len(weights))
    says = f"What one deviation of a feature moves the {about} by"
    says += f", the largest {count} of {len(weights)} features." if count < len(weights) else "."
    drawing = Drawing("weight × deviation", says, height=1.0 + 0.22 * count)
    with drawing as axes:
        effect = weights.effect[:count]
        colours = [line_style(0 if value >= 0 else 1)["color"] for value in effect]
        axes.barh(np.arange(count), effect, color=colours, height=0.7)
        axes.axvline(0.0, color=LIGHT["soft"], linewidth=0.8)
        axes.set_yticks(np.arange(count), [shortened(name) for name in weights.features[:count]])
        axes.set_ylim(count - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    return drawing
