"""The best objective and the proven bound of runs of training, against steps and against seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankopt.experiments.summaries import relative_gaps
from rankopt.report.figures import Drawing, by_tens, line_style

__all__ = ["convergence"]

Floats = NDArray[np.float64]
Columns = Mapping[str, Sequence[float | None]]
"""The columns step, round, seconds, primal and bound of a run, of one length."""

AXES = {"step": "steps", "seconds": "seconds"}

INSTANT = 1e-6
"""Seconds that a clock may not tell from none, and that have a place on a scale by tens."""

FILLED = 3
"""Most runs whose gaps are filled: more of them make one grey."""

THIN = 1.1
"""Points that the line of the best objective is wide where it goes through several rounds."""

POINTS = 300
"""Most points of a line: a figure needs no more, and a page of long runs would grow by megabytes."""


def convergence(runs: Mapping[str, Columns], about: str) -> list[Drawing]:
    """Three drawings of the runs: objective and bound against steps and against seconds, and the gap against seconds.

    A gap is relative to the best objective of its run. Each round of the concave-convex procedure has a problem, and so
    a bound and a gap, of its own.
    """
    table = {name: _numbers(run) for name, run in runs.items() if len(run.get("step", ()))}
    if not table:
        return []
    if len(table) == 1:  # a single line has no legend
        about = ", ".join(dict.fromkeys([about, *table]))
    if any(np.unique(run["round"]).size > 1 for run in table.values()):
        about += "; bounds and gaps round by round of the concave-convex procedure"
    drawings = [_both(table, against, about) for against in AXES]
    return [*drawings, _gaps(table, about)]


def _both(runs: Mapping[str, dict[str, Floats]], against: str, about: str) -> Drawing:
    says = f"{about}: best objective (upper line) and proven lower bound (lower line)."
    drawing = Drawing(f"objective and bound against {AXES[against]}", says)
    with drawing as axes:
        for place, (name, run) in enumerate(runs.items()):
            style = line_style(place)
            several = np.unique(run["round"]).size > 1
            whole = _thinned(np.arange(run["step"].size))
            # Thin across rounds, for the objective drops where a round ends; a round may be a single step.
            drawn = style | ({"linewidth": THIN} if several else {})
            axes.plot(run[against][whole], run["primal"][whole], label=name, marker=_point(whole), **drawn)
            for round in np.unique(run["round"]):
                rows = _thinned(np.flatnonzero(run["round"] == round))
                x, primal, bound = (run[column][rows] for column in (against, "primal", "bound"))
                if len(runs) <= FILLED:
                    axes.fill_between(x, bound, primal, color=style["color"], alpha=0.08, linewidth=0)
                axes.plot(x, bound, marker=_point(rows), **style)
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
            for round in np.unique(run["round"]):
                rows = _thinned(np.flatnonzero(run["round"] == round))
                gap = relative_gaps(run["primal"][rows], run["bound"][rows])
                gap[~(gap > 0)] = np.nan  # a gap of 0 has no place on a scale by tens
                label = name if round == run["round"][0] else None
                axes.plot(run["seconds"][rows], gap, label=label, marker=_point(rows), **line_style(place))
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


def _point(rows: NDArray[np.int64]) -> str:
    """The mark of a round of one step: a line needs two."""
    return "." if rows.size == 1 else ""


def _window(runs: Mapping[str, dict[str, Floats]]) -> tuple[float, float]:
    """The range of objectives worth seeing: the first steps may lie far above and below all that follow, and more so
    where each round begins with a bound of its own."""
    low, high = np.inf, -np.inf
    for run in runs.values():
        late = run["step"] >= (0.1 if run["round"][0] == run["round"][-1] else 0.25) * run["step"][-1]
        low = min(low, np.nanmin(run["bound"][late], initial=np.inf))
        high = max(high, np.nanmax(run["primal"][late], initial=-np.inf))
    margin = 0.05 * (high - low) or 0.01
    return low - margin, high + margin
