"""The best objective and the proven bound of runs of training, against steps and against seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankopt.experiments.summaries import relative_gaps
from rankopt.report.html import Drawing, by_tens, line_style

Floats = NDArray[np.float64]
Columns = Mapping[str, Sequence[float | None]]
"""The columns step, round, seconds, primal and bound of a run, of one length."""

AXES = {"step": "steps", "seconds": "seconds"}

INSTANT = 1e-6
"""Seconds that a clock may not tell from none, and that have a place on a scale by tens."""

FILLED = 3
"""Most runs whose gaps are filled: more of them make one grey."""

SHADE = 0.15
"""Of the ground between objective and bound."""

THIN = 1.1
"""Points that the bounds of rounds are wide."""

POINTS = 300
"""Most points of a line: a figure needs no more, and a page of long runs would grow by megabytes."""


def convergence(runs: Mapping[str, Columns], about: str) -> list[Drawing]:
    """Three drawings of the runs: objective and bound against steps and against seconds, and the gap against seconds.

    A gap is relative to the best objective of its run. Each round of the concave-convex procedure has a problem, and so
    a bound and a gap, of its own: of several rounds each is one line, at the bound that was proven when it ended.
    """
    table = {name: _numbers(run) for name, run in runs.items() if len(run.get("step", ()))}
    if not table:
        return []
    if len(table) == 1:  # a single line has no legend
        about = ", ".join(dict.fromkeys([about, *table]))
    if any(np.unique(run["round"]).size > 1 for run in table.values()):
        about += "; a line a round of the concave-convex procedure, at the bound that it ended with"
    drawings = [_both(table, against, about) for against in AXES]
    return [*drawings, _gaps(table, about)]


def _both(runs: Mapping[str, dict[str, Floats]], against: str, about: str) -> Drawing:
    says = f"{about}: best objective (upper line) and proven lower bound (below it)."
    drawing = Drawing(f"objective and bound against {AXES[against]}", says)
    with drawing as axes:
        for place, (name, run) in enumerate(runs.items()):
            style, x, ends = line_style(place), run[against], _ends(run)
            whole = _thinned(np.arange(x.size))
            axes.plot(x[whole], run["primal"][whole], label=name, marker=_point(whole), **style)
            if ends.size == 1:
                shaded = whole
                axes.plot(x[whole], run["bound"][whole], marker=_point(whole), **style)
            else:
                begun = np.append(0, ends[:-1])
                shaded = np.arange(begun[-1], ends[-1] + 1)
                lines = np.column_stack([x[begun], x[ends], np.full(ends.size, np.nan)]).ravel()
                axes.plot(lines, np.repeat(run["bound"][ends], 3), **style | {"linewidth": THIN})
            if len(runs) <= FILLED:
                proven = run["bound"][shaded] if ends.size == 1 else run["bound"][ends[-1]]
                axes.fill_between(
                    x[shaded], proven, run["primal"][shaded], color=style["color"], alpha=SHADE, linewidth=0
                )
        axes.set_xlabel(AXES[against])
        axes.set_ylabel("objective")
        if against == "step":
            axes.locator_params("x", integer=True)
        axes.set_ylim(*_window(runs))
        if against == "seconds":  # one solver may take a thousand times as long as another
            by_tens(axes, "x")
    return drawing


def _gaps(runs: Mapping[str, dict[str, Floats]], about: str) -> Drawing:
    drawing = Drawing("gap against seconds", f"{about}: (best objective - bound) / best objective.")
    with drawing as axes:
        for place, (name, run) in enumerate(runs.items()):
            ends = _ends(run)
            rows = _thinned(np.arange(run["step"].size)) if ends.size == 1 else ends
            gap = relative_gaps(run["primal"][rows], run["bound"][rows])
            gap[~(gap > 0)] = np.nan  # a gap of 0 has no place on a scale by tens
            mark = _point(rows) if ends.size == 1 else "."
            axes.plot(run["seconds"][rows], gap, label=name, marker=mark, **line_style(place))
        by_tens(axes, "x")
        if any(np.isfinite(np.asarray(line.get_ydata())).any() for line in axes.get_lines()):
            by_tens(axes, "y")
        axes.set_xlabel("seconds")
        axes.set_ylabel("relative gap")
    return drawing


def _numbers(run: Columns) -> dict[str, Floats]:
    """The columns as arrays; what is not known, and what is not proved yet, is NaN and leaves a hole in its line."""
    table = {
        name: np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        for name, column in run.items()
    }
    table["seconds"] = np.maximum(table["seconds"], INSTANT)
    table.setdefault("round", np.zeros(table["step"].size))
    return {name: np.where(np.isfinite(column), column, np.nan) for name, column in table.items()}


def _thinned(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most POINTS of the rows, first and last among them, denser where a run begins."""
    if rows.size <= POINTS:
        return rows
    kept = np.unique(np.round(np.geomspace(1, rows.size, POINTS)).astype(np.int64)) - 1
    return rows[kept]


def _ends(run: dict[str, Floats]) -> NDArray[np.int64]:
    """The last step of each round, at most POINTS of them."""
    rounds = run["round"]
    return _thinned(np.flatnonzero(np.append(rounds[1:] != rounds[:-1], True)))


def _point(rows: NDArray[np.int64]) -> str:
    """The mark of a round of one step: a line needs two."""
    return "." if rows.size == 1 else ""


def _window(runs: Mapping[str, dict[str, Floats]]) -> tuple[float, float]:
    """The range of objectives worth seeing: the first steps may lie far above and below all that follow, and the bounds
    of the first rounds far below."""
    low, high = np.inf, -np.inf
    for run in runs.values():
        ends = _ends(run)
        late = run["step"] >= 0.1 * run["step"][-1]
        proven = late if ends.size == 1 else ends[run["step"][ends] >= 0.25 * run["step"][-1]]
        low = min(low, np.nanmin(run["bound"][proven], initial=np.inf))
        high = max(high, np.nanmax(run["primal"][late], initial=-np.inf))
    margin = 0.05 * (high - low) or 0.01
    return low - margin, high + margin
