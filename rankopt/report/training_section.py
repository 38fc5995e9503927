"""Training with one part swapped at a time: what was reached, and how objective and bound came together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rankopt.experiments.rows import Row
from rankopt.report.convergence import convergence
from rankopt.report.figures import figures
from rankopt.report.markup import Html
from rankopt.report.measure_curves import measure_curves
from rankopt.report.page import section
from rankopt.report.tables import brief, table

__all__ = ["training_section"]

ROLES = ("argmax", "master", "method")


def training_section(rows: Sequence[Row]) -> Html:
    """The section of the runs that train one thing."""
    names = sorted({name for row in rows for name in row.measures}, key=_by_cutoff)
    shown = [name for name in names if _by_cutoff(name)[1] in (0, 1, 5, 10)]
    lines = [
        [
            row.role, row.solver, row.status.words, row.value, row.bound, brief(row.gap), row.iterations,
            brief(row.seconds), *(brief(row.measures.get(name)) for name in shown), row.message,
        ]
        for row in rows
    ]  # fmt: skip
    head = ["swapped", "solver", "outcome", "objective", "proven bound", "gap", "steps", "seconds", *shown, "message"]
    parts: list[Html] = [table(head, lines, f"{rows[0].problem}; {rows[0].extent}")]
    for role in ROLES:
        swapped = [row for row in rows if row.role == role]
        drawn = convergence({row.solver: row.history for row in swapped if row.history}, f"{role} swapped")
        curves = measure_curves(_distinct(swapped), f"{role} swapped, held-out queries, equal curves drawn once")
        parts.append(figures([*drawn, *curves]))
    return section(f"Run {rows[0].tape}", *parts)


def _distinct(rows: Sequence[Row]) -> dict[str, Mapping[str, float | None]]:
    """What learnt rankers reach, those that reach the same taken together."""
    same: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.measures:
            same.setdefault(tuple(row.measures.items()), []).append(row)
    return {
        alike[0].solver + (f" and {len(alike) - 1} more" if len(alike) > 1 else ""): alike[0].measures
        for alike in same.values()
    }


def _by_cutoff(name: str) -> tuple[str, int]:
    """nDCG@2 before nDCG@10."""
    measure, _, cutoff = name.partition("@")
    return measure, int(cutoff) if cutoff.isdigit() else 0
