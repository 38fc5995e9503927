"""Charts of several pages: convergence of training runs, measures at k, agreement of solvers, performance profiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.report.page import LIGHT, SHADES, Drawing, line_style, log_scale, shortened

if TYPE_CHECKING:
    from formulations.solving.sensitivity import SensitivityCurve

Columns = Mapping[str, Sequence[float | None]]
"""The columns step, round, seconds, primal and bound of a run, of one length."""

AXES = {"step": "steps", "seconds": "seconds"}
INSTANT = 1e-6  # the shortest time drawn: a clock may report 0, which a logarithmic axis cannot show
FILLED = 3  # largest number of runs whose gaps are filled; more would overlap
MOST_RUNS = 6  # largest number of runs of a figure with a legend; more are small multiples
POINTS = 300  # largest number of points of a line, which bounds the size of a page


def convergence(runs: Mapping[str, Columns], about: str) -> list[Drawing]:
    """Three drawings of the runs: objective and bound against steps and against seconds, and the gap against seconds;
    of more than `MOST_RUNS` runs the gap alone. A gap is relative to the best objective of its run. Each round of the
    concave-convex procedure has its own problem, bound and gap; each of several rounds is a line at its last bound."""
    table = {name: _numbers(run) for name, run in runs.items() if len(run.get("step", ()))}
    if not table:
        return []
    if len(table) == 1:  # its legend names both lines
        about = ", ".join(dict.fromkeys([about, *table]))
    if any(np.unique(run["round"]).size > 1 for run in table.values()):
        about += "; a horizontal line is the bound of one round of the concave-convex procedure, valid for that round"
    if len(table) > MOST_RUNS:
        return [_gaps(table, about)]
    return [*(_objective_and_bound(table, against, about) for against in AXES), _gaps(table, about)]


def _objective_and_bound(runs: Mapping[str, dict[str, Floats]], against: str, about: str) -> Drawing:
    caption = f"{about}: best objective (upper line) and proven lower bound (below it)."
    title = f"objective and bound against {AXES[against]}"
    with (drawing := Drawing(title, caption, AXES[against], "objective")) as axes:
        for index, (name, run) in enumerate(runs.items()):
            style, x, ends = line_style(index), run[against], _round_ends(run)
            rows = _thin(np.arange(x.size))
            alone = len(runs) == 1
            axes.plot(
                x[rows], run["primal"][rows], label="best objective" if alone else name, marker=_marker(rows), **style
            )
            if alone:
                style = line_style(1)
            if ends.size == 1:
                shaded, proven = rows, run["bound"][rows]
                axes.plot(x[rows], proven, marker=_marker(rows), label="lower bound" if alone else "", **style)
            else:
                starts = np.append(0, ends[:-1])
                shaded, proven = np.arange(starts[-1], ends[-1] + 1), run["bound"][ends[-1]]
                lines = np.column_stack([x[starts], x[ends], np.full(ends.size, np.nan)]).ravel()
                label = "lower bound of a round" if alone else ""
                axes.plot(lines, np.repeat(run["bound"][ends], 3), label=label, **style | {"linewidth": 1.1})
            if len(runs) <= FILLED:
                axes.fill_between(
                    x[shaded], proven, run["primal"][shaded], color=style["color"], alpha=0.15, linewidth=0
                )
        axes.set_ylim(*_visible_range(runs))
        if against == "step":
            axes.locator_params("x", integer=True)
        else:  # one solver may take a thousand times as long as another
            log_scale(axes, "x")
    return drawing


def _gaps(runs: Mapping[str, dict[str, Floats]], about: str) -> Drawing:
    lines = {}
    for name, run in runs.items():
        ends = _round_ends(run)
        rows = _thin(np.arange(run["step"].size)) if ends.size == 1 else ends
        primal = run["primal"][rows]
        gap = np.maximum(primal - run["bound"][rows], 0.0) / np.maximum(np.abs(primal), 1e-300)
        gap[~(gap > 0)] = np.nan  # a logarithmic axis cannot show 0
        lines[name] = run["seconds"][rows], gap
    caption = f"{about}: (best objective - bound) / best objective."
    marker = "." if any(x.size == 1 or _round_ends(runs[name]).size > 1 for name, (x, _) in lines.items()) else ""
    logarithmic = "xy" if any(np.isfinite(gap).any() for _, gap in lines.values()) else "x"
    return _curves(lines, "gap against seconds", caption, ("seconds", "relative gap"), marker, logarithmic)


def _curves(
    lines: Mapping[str, tuple[Floats, Floats]], title: str, caption: str, labels: tuple[str, str], marker: str,
    logarithmic: str = "",
) -> Drawing:  # fmt: skip
    """Lines (x, y) by name: with a legend; more than `MOST_RUNS` as small multiples, in each panel one line in color
    and the others in gray. logarithmic: the letters of the axes that are."""
    several = len(lines) > MOST_RUNS
    if several:
        caption += " One line in each panel; the others are gray."
    with (drawing := Drawing(title, caption, *labels, panels=len(lines) if several else 1)) as first:
        for index, (name, line) in enumerate(lines.items()):
            axes = drawing.axes[index if several else 0]
            if several:
                axes.set_title(shortened(name, 30), loc="left", fontsize="medium")
                for other in lines.values():
                    axes.plot(*other, color=LIGHT["soft"], alpha=0.3, linewidth=0.8)
            style = line_style(0 if several else index)
            axes.plot(*line, label="" if several else name, marker=marker, markersize=4, **style)
        for which in logarithmic:
            log_scale(first, which)
    return drawing


def _numbers(run: Columns) -> dict[str, Floats]:
    """The columns as arrays; unknown and infinite values are NaN, a hole in the line."""
    table = {
        name: np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        for name, column in run.items()
    }
    table["seconds"] = np.maximum(table["seconds"], INSTANT)
    table.setdefault("round", np.zeros(table["step"].size))
    return {name: np.where(np.isfinite(column), column, np.nan) for name, column in table.items()}


def _thin(rows: Ints) -> Ints:
    """At most POINTS of the rows, the first and the last included, denser at the start of a run."""
    if rows.size <= POINTS:
        return rows
    return rows[np.unique(np.round(np.geomspace(1, rows.size, POINTS)).astype(np.int64)) - 1]


def _round_ends(run: dict[str, Floats]) -> Ints:
    """The last step of each round, at most POINTS of them."""
    rounds = run["round"]
    return _thin(np.flatnonzero(np.append(rounds[1:] != rounds[:-1], True)))


def _marker(rows: Ints) -> str:
    """The marker of a line; a line of one point is invisible without one."""
    return "." if rows.size == 1 else ""


def _visible_range(runs: Mapping[str, dict[str, Floats]]) -> tuple[float, float]:
    """The range of objectives, without the first steps and the bounds of the first rounds (outliers)."""
    low, high = np.inf, -np.inf
    for run in runs.values():
        ends = _round_ends(run)
        late = run["step"] >= 0.1 * run["step"][-1]
        proven = late if ends.size == 1 else ends[run["step"][ends] >= 0.25 * run["step"][-1]]
        low = min(low, np.nanmin(run["bound"][proven], initial=np.inf))
        high = max(high, np.nanmax(run["primal"][late], initial=-np.inf))
    margin = 0.05 * (high - low) or 0.01
    return low - margin, high + margin


def measure_curves(means: Mapping[str, Mapping[str, float | None]], about: str) -> list[Drawing]:
    """One drawing for each measure with several cutoffs; `means[ranker]["nDCG@10"]` is a mean over queries."""
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for ranker, measures in means.items():
        for name, value in measures.items():
            parts = re.fullmatch(r"(.*)@(\d+)", name)
            if parts and value is not None:
                curves[parts[1]][ranker][int(parts[2])] = value
    drawings = []
    for measure, rankers in curves.items():
        if max(map(len, rankers.values())) < 2:
            continue
        lines = {name: (np.array(sorted(at)), np.array([at[k] for k in sorted(at)])) for name, at in rankers.items()}
        caption = f"{about}: mean {measure}@k against k."
        drawing = _curves(lines, f"{measure}@k", caption, ("k", f"{measure}@k"), "o")
        drawing.axes[0].set_xticks(sorted({k for at in rankers.values() for k in at}))
        drawings.append(drawing)
    return drawings


LIMITS = (0.25, 0.75, 1.0)  # thresholds between the shades, from the lightest to the darkest
WRITTEN = 9  # largest number of columns for which squares show their numbers


def heat_map(names: Sequence[str], shares: Floats, title: str, caption: str) -> Drawing:
    """Shares (r, r) in [0, 1] as squares, framed in red below 1; NaN where no problem was answered by both."""
    from matplotlib.patches import Rectangle

    r = len(names)
    with (drawing := Drawing(title, caption, height=1.2 + 3.2 * min(1.0, 0.3 + r / 12))) as axes:
        for (i, j), share in np.ndenumerate(shares):
            known = bool(np.isfinite(share))
            shade = SHADES[int(np.searchsorted(LIMITS, share, side="right"))] if known else LIGHT["none"]
            square = Rectangle((j + 0.06, i + 0.06), 0.88, 0.88, facecolor=shade)
            square.set_edgecolor(LIGHT["s8"] if known and share < 1 else "none")
            axes.add_patch(square)
            if r <= WRITTEN:
                # 100 means all; nearly all is 99
                text = str(min(99, round(100 * share)) if share < 1 else 100) if known else "–"
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=9)
        axes.set_xlim(0, r)
        axes.set_ylim(r, 0)
        short = [shortened(name, 18) for name in names]
        axes.set_xticks(np.arange(r) + 0.5, short, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(np.arange(r) + 0.5, short)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
    return drawing


def profile_drawing(curves: Mapping[str, tuple[Floats, Floats]], about: str) -> Drawing:
    """curves[solver]: factors t >= 1 in rising order, and the share of problems solved within each."""
    caption = (
        f"{about}: share of all problems solved within t times the seconds of the fastest solver of each [Dolan and "
        "Moré 2002]; what a solver does not support it has not solved."
    )
    with (drawing := Drawing("performance profile", caption, "t", "share solved")) as axes:
        most = max((factors[-1] for factors, _ in curves.values() if len(factors)), default=1.0)
        for index, (solver, (factors, shares)) in enumerate(curves.items()):
            t = np.concatenate([[1.0], factors, [1.3 * most]])
            share = np.concatenate([[0.0], shares, shares[-1:] if len(shares) else [0.0]])
            axes.step(t, share, where="post", label=solver, **line_style(index))
        axes.set_ylim(-0.02, 1.02)
        log_scale(axes, "x")
    return drawing


def limit_curve(curve: SensitivityCurve) -> Drawing:
    """The sensitivity curve: optimal value against the limit."""
    caption = f"What each limit costs. The horizontal axis is the limit, {curve.name}."
    with (drawing := Drawing(curve.name, caption)) as axes:
        curve.plot(axes).legend_ = None  # lines are named below the axes
    return drawing
