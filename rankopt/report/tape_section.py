"""A tape of problems replayed through solvers: who solved what, how fast, who agrees, and what went wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rankopt.experiments.rows import Outcome, Row
from rankopt.experiments.summaries import (
    agreement,
    pairwise_wins,
    performance_profile,
    shifted_geometric_means,
    solvers_of,
)
from rankopt.report.figures import Drawing, figures
from rankopt.report.heat_map import heat_map
from rankopt.report.markup import Html
from rankopt.report.page import section
from rankopt.report.profiles import profile_drawing
from rankopt.report.tables import FormattedCell, brief, table

__all__ = ["tape_section"]

MOST_LINES = 200
"""Rows of a table of single problems; what is left out is said."""

MOST_CURVES = 12
"""Curves of a figure: the fastest solvers."""

NOT_TRIED = (Outcome.UNSUPPORTED, Outcome.MISSING, Outcome.GIVEN_UP)


def tape_section(kind: str, name: str, rows: Sequence[Row]) -> Html:
    """The section of one tape."""
    mean = shifted_geometric_means(rows)
    about = f"{kind}, {len({row.problem for row in rows})} problems"
    drawn = [*_profile(rows, mean, about), *_agreement(rows, about)]
    parts = [_solvers(rows, mean), figures(drawn), _wins(rows)]
    return section(f"Tape {name}", *parts, *_differing(rows), *_trouble(rows))


def _solvers(rows: Sequence[Row], mean: dict[str, float]) -> Html:
    problems = len({row.problem for row in rows})
    found: list[list[object]] = []
    for solver in solvers_of(rows):
        own = [row for row in rows if row.solver == solver]
        counts = Counter(row.status.words for row in own if row.status is not Outcome.SOLVED)
        solved = sum(row.solved for row in own)
        memory = max((row.memory for row in own if row.memory), default=None)
        found.append(
            [
                solver,
                next((row.version for row in own if row.version), ""),
                FormattedCell(solved / problems, f"{solved} of {problems}"),
                ", ".join(f"{count} {word}" for word, count in counts.items()),
                FormattedCell(math.nan, "-") if math.isnan(mean[solver]) else brief(mean[solver]),
                brief(max((row.gap for row in own if row.answered and row.gap is not None), default=None)),
                _fractional(own),
                None if memory is None else FormattedCell(memory, f"{memory / 2**20:.0f} MiB"),
            ]
        )
    found.sort(key=lambda row: math.inf if math.isnan(mean[str(row[0])]) else mean[str(row[0])])
    head = ["solver", "version", "solved", "else", "seconds", "largest gap", "fractional", "memory"]
    caption = (
        "Seconds: shifted geometric mean (shift 1 ms), what was not solved counting as ten times the longest time; "
        "- where nothing was solved. "
        "Gap: of the answers, relative to the scale of the problem. Fractional: answers not whole before rounding."
    )
    return table(head, found, caption)


def _fractional(rows: Sequence[Row]) -> int | None:
    """How many answers were not whole before rounding; None where wholeness is not asked for."""
    known = [row.integral for row in rows if row.integral is not None]
    return known.count(False) if known else None


def _profile(rows: Sequence[Row], mean: dict[str, float], about: str) -> list[Drawing]:
    curves = {solver: curve for solver, curve in performance_profile(rows).items() if len(curve[0])}
    if not curves:
        return []
    fastest = sorted(curves, key=lambda solver: mean[solver])
    said = about if len(curves) <= MOST_CURVES else f"{about}, the {MOST_CURVES} fastest of {len(curves)} solvers"
    return [profile_drawing({solver: curves[solver] for solver in fastest[:MOST_CURVES]}, said)]


def _agreement(rows: Sequence[Row], about: str) -> list[Drawing]:
    found = agreement(rows)
    answered = [place for place in range(len(found.solvers)) if found.compared[place].any()]
    if not answered:
        return []
    names = [found.solvers[place] for place in answered]
    says = f"{about}: percentage, of the problems that both answered, on which their values are one; ringed below 100."
    return [heat_map(names, found.shares[answered][:, answered], "agreement", says)]


def _wins(rows: Sequence[Row]) -> Html:
    solvers, wins = pairwise_wins([row for row in rows if row.status not in NOT_TRIED])
    lines = [[solver, *(int(count) for count in line)] for solver, line in zip(solvers, wins, strict=True)]
    return table(
        ["faster than", *solvers],
        lines,
        "Wins: problems that the row's solver solved and the column's did not, or later",
    )


def _differing(rows: Sequence[Row]) -> list[Html]:
    """Each answer that is not the others', once: beside one that solved the problem, where there is one."""
    told: dict[tuple[str, str], tuple[Row, Row]] = {}
    pairs = agreement(rows).differing
    for a, b in sorted(pairs, key=lambda pair: not any(row.solved for row in pair)):
        one, other = (b, a) if a.solved else (a, b)
        told.setdefault((one.problem, one.solver), (one, other))
    if not told:
        return []
    lines = [
        [a.problem, a.solver, a.value, a.status.words, b.solver, b.value, b.status.words] for a, b in told.values()
    ]
    head = ["problem", "solver", "value", "outcome", "other solver", "its value", "its outcome"]
    return [table(head, lines[:MOST_LINES], f"Where values differ ({_of(len(lines[:MOST_LINES]), len(lines))})")]


def _trouble(rows: Sequence[Row]) -> list[Html]:
    """Each problem that a solver tried and did not solve; and how often it was not tried."""
    tried = [row for row in rows if not row.solved and row.status not in NOT_TRIED]
    lines = [[row.problem, row.extent, row.solver, row.status.words, brief(row.gap), row.message] for row in tried]
    parts = []
    if lines:
        head = ["problem", "extent", "solver", "outcome", "gap", "what it said"]
        caption = f"Tried and not solved ({_of(len(lines[:MOST_LINES]), len(lines))})"
        parts.append(table(head, lines[:MOST_LINES], caption))
    skipped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status in NOT_TRIED:
            skipped.setdefault((row.solver, row.status.words), []).append(row)
    if skipped:
        left = [[solver, word, len(same), same[0].message] for (solver, word), same in skipped.items()]
        parts.append(table(["solver", "outcome", "problems", "why, of the first"], left, "Not tried"))
    return parts


def _of(shown: int, all_: int) -> str:
    return f"all {all_}" if shown == all_ else f"the first {shown} of {all_}"
