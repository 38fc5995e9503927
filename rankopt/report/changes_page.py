"""The page of `rankopt swap --against`: what became slower, faster, wrong, undecided, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from rankopt.experiments.regression import Changed, Kind, by_solver, mean_factor
from rankopt.experiments.rows import Row
from rankopt.report.legacy import Html, figures, page, section, table
from rankopt.report.page import LIGHT, Drawing, FormattedCell, brief, line_style, log_scale

MOST = 200
"""Problems of a table; what is left out is said."""

LEAD = (
    "The same problems, read from the same tapes, were solved before and now; values, feasibility and bounds are "
    "recomputed from the problems' data in both. A factor is seconds now / seconds before. A problem counts as slower "
    "or faster where its own repeats show it: where the whole interval of its factor lies beyond the margin."
)


def page_of_changes(found: Sequence[Changed], margin: float, made_by: str = "") -> str:
    """The page of what became of each problem."""
    parts = [section("What was compared", _versions(found))]
    for tape in dict.fromkeys(one.after.tape for one in found):
        own = [one for one in found if one.after.tape == tape]
        drawn = [
            changes_drawing(solver, changed, margin)
            for (_, solver), changed in by_solver(own).items()
            if any(one.factor for one in changed)
        ]
        parts.append(section(f"Tape {tape}", _solvers(own, margin), figures(drawn), *_odd(own), *_moved(own)))
    return page("What changed", LEAD, *parts, finding=_finding(found, margin), made_by=made_by)


def _finding(found: Sequence[Changed], margin: float) -> str:
    """The verdict of each solver and what to do; where something became wrong or was lost first."""
    told: list[str] = []
    for solver in dict.fromkeys(one.after.solver for one in found):
        own = [one for one in found if one.after.solver == solver]
        counts = Counter(one.kind for one in own)
        before, after = (_told(row.version for row in rows) for rows in _sides(own))
        name = f"{solver} {before} → {after}" if before != after else f"{solver} {after}"
        bad = [f"{counts[kind]} {kind.words}" for kind in (Kind.WRONG, Kind.LOST) if counts[kind]]
        mean = mean_factor(own)
        if bad:
            told.insert(0, f"{name}: do not change to it as it is: {' and '.join(bad)} of {len(own)} problems.")
        elif mean is None:
            told.append(f"{name}: no problem with the same answer.")
        else:
            factor, low, high = mean
            word = "slower" if low > margin else "faster" if high < 1.0 / margin else ""
            said = f"{word}, by a factor of" if word else "no clear change of time, a factor of"
            told.append(f"{name}: {said} {factor:.3g} ({low:.3g} to {high:.3g}); nothing became wrong or was lost.")
    return " ".join(told)


def _versions(found: Sequence[Changed]) -> Html:
    """What both runs had: the solvers' packages, and python, numpy and the system."""
    lines: list[list[object]] = []
    for solver in dict.fromkeys(one.after.solver for one in found):
        own = [one for one in found if one.after.solver == solver]
        lines.append([solver, _told(one.before.version for one in own), _told(one.after.version for one in own)])
    for name in dict.fromkeys(name for one in found for name in (*one.before.versions, *one.after.versions)):
        both = [_told(row.versions.get(name, "") for row in rows) for rows in _sides(found)]
        lines.append([name, *both])
    return table(["what", "before", "now"], lines, "Versions, as the rows tell them")


def _sides(found: Sequence[Changed]) -> tuple[list[Row], list[Row]]:
    return [one.before for one in found], [one.after for one in found]


def _told(words: Iterable[str]) -> str:
    return ", ".join(sorted({word for word in words if word})) or "not told"


def _solvers(found: Sequence[Changed], margin: float) -> Html:
    lines: list[list[object]] = []
    for (_, solver), own in by_solver(found).items():
        mean = mean_factor(own)
        counts = Counter(one.kind for one in own)
        shown: list[object] = [None, None]
        if mean is not None:
            shown = [brief(mean[0]), FormattedCell(mean[0], f"{mean[1]:.3g} to {mean[2]:.3g}")]
        lines.append([solver, *shown, *(counts[kind] for kind in Kind)])
    caption = (
        "Factor: geometric mean over the problems with the same answer; interval of 95%, problems and repeats drawn "
        f"anew. The rest counts problems; margin {margin:g}."
    )
    return table(["solver", "factor", "interval", *(kind.words for kind in Kind)], lines, caption)


def _odd(found: Sequence[Changed]) -> list[Html]:
    """Each problem whose outcome is another one."""
    lines = []
    for one in (one for kind in (Kind.WRONG, Kind.LOST, Kind.MENDED) for one in found if one.kind is kind):
        row = one.after
        lines.append([one.kind.words, row.solver, row.problem, row.extent, one.before.value, row.value, one.why])
    head = ["became", "solver", "problem", "extent", "value before", "value now", "why"]
    return [table(head, lines[:MOST], f"Another outcome ({_of(len(lines))})")] if lines else []


def _moved(found: Sequence[Changed]) -> list[Html]:
    """Each problem with a factor, the farthest first."""
    told = sorted((one for one in found if one.factor), key=lambda one: -abs(math.log(one.factor or 1.0)))
    lines: list[list[object]] = []
    for one in told[:MOST]:
        low, high = one.interval or (math.nan, math.nan)
        sure = FormattedCell(one.confidence or 0.0, f"{100 * (one.confidence or 0.0):.3g}%")
        interval = FormattedCell(low, f"{low:.3g} to {high:.3g}")
        lines.append([one.after.solver, one.after.problem, one.after.extent, brief(one.before.seconds),
                      brief(one.after.seconds), brief(one.factor), interval, sure, one.kind.words])  # fmt: skip
    head = ["solver", "problem", "extent", "seconds before", "seconds now", "factor", "interval", "sure", "became"]
    caption = f"Time, problem by problem ({_of(len(told))}). Interval: of the ratios of repeats, sure by that chance"
    return [table(head, lines, caption)] if lines else []


def _of(count: int) -> str:
    return f"all {count}" if count <= MOST else f"the first {MOST} of {count}"


MOST_DRAWN = 120
"""Problems of the figure; of more, evenly by factor."""

PLACES = {Kind.FASTER: 2, Kind.SLOWER: 1, Kind.SAME: 0, Kind.UNDECIDED: 3}


def changes_drawing(solver: str, changed: Sequence[Changed], margin: float) -> Drawing:
    """The figure of one solver; problems without a factor are left out."""
    told = sorted((one for one in changed if one.factor), key=lambda one: one.factor or 0.0)
    shown = told
    if len(told) > MOST_DRAWN:
        shown = [told[place] for place in np.linspace(0, len(told) - 1, MOST_DRAWN).round().astype(int)]
    few = "" if shown is told else f" {MOST_DRAWN} of {len(told)} problems."
    says = f"{solver}: seconds now / before of each problem, with its interval; grey: the margin, {margin:g}.{few}"
    drawing = Drawing(f"{solver}: time, now / before", says)
    with drawing as axes:
        axes.axvspan(1.0 / margin, margin, color=LIGHT["rule"], linewidth=0)
        axes.axvline(1.0, color=LIGHT["soft"], linewidth=1.0)
        for kind, place in PLACES.items():
            own = [(row, one) for row, one in enumerate(shown) if one.kind is kind]
            if not own:
                continue
            rows = np.array([row for row, _ in own])
            low, high = np.array([one.interval or (np.nan, np.nan) for _, one in own]).T
            colour = line_style(place)["color"]
            axes.hlines(rows, low, high, color=colour, linewidth=1.4)
            axes.scatter(
                [one.factor or np.nan for _, one in own], rows, s=14, color=colour, linewidths=0, label=kind.words
            )
        axes.set_yticks([])
        axes.set_ylabel("problems")
        axes.set_xlabel("factor")
        ends = np.array([one.interval or (1.0, 1.0) for one in shown])
        axes.set_xlim(min(0.7, 0.9 * float(ends.min())), max(1.4, 1.1 * float(ends.max())))
        log_scale(axes, "x")
    return drawing
