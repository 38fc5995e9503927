"""The page of rows: what was run, solvers on tapes, swapped training runs, integrality as sets grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rankopt.experiments.rows import Row
from rankopt.experiments.summaries import of_kind, solvers_of
from rankopt.report.integrality_section import integrality_section
from rankopt.report.markup import Html
from rankopt.report.page import page, section
from rankopt.report.swap_finding import swap_finding
from rankopt.report.tables import table
from rankopt.report.tape_section import tape_section
from rankopt.report.training_section import training_section

__all__ = ["page_of_swap"]

TITLES = {False: "Solvers swapped", True: "Integrality as sets grow"}
"""Of a page of swapped solvers, and of one with nothing but an integrality study."""

LEAD = (
    "Values, feasibility and bounds are recomputed from the problems' data; what a solver says of itself is not "
    "believed. Seconds are of the machine that ran it. A click on the head of a column sorts a table."
)


def page_of_swap(rows: Sequence[Row], made_by: str = "") -> str:
    """The page of these rows."""
    parts = [section("What was run", _run(rows), _versions(rows))]
    for kind in ("argmax", "master"):
        of_this = of_kind(rows, kind)
        parts += [tape_section(kind, name, [r for r in of_this if r.tape == name]) for name in _tapes(of_this)]
    trained = of_kind(rows, "training")
    for name in _tapes(trained):
        runs = [row for row in trained if row.tape == name]
        problems = dict.fromkeys(row.problem for row in runs)
        parts += [training_section([row for row in runs if row.problem == problem]) for problem in problems]
    parts += integrality_section(of_kind(rows, "integrality"))
    only_sets = {row.kind for row in rows} == {"integrality"}
    return page(TITLES[only_sets], LEAD, *parts, finding=swap_finding(rows), made_by=made_by)


def _tapes(rows: Iterable[Row]) -> list[str]:
    """The tapes in order of first appearance."""
    return list(dict.fromkeys(row.tape for row in rows))


def _run(rows: Sequence[Row]) -> Html:
    found = []
    for kind, tape in dict.fromkeys((row.kind, row.tape) for row in rows):
        these = [row for row in rows if (row.kind, row.tape) == (kind, tape)]
        seeds = ", ".join(sorted({str(row.seed) for row in these if row.seed is not None}))
        problems = len({row.problem for row in these})
        found.append([kind, tape, problems, len(solvers_of(these)), len(these), seeds])
    return table(["kind", "tape", "problems", "solvers", "rows", "seed"], found, "Tapes: fingerprints of what was run")


def _versions(rows: Sequence[Row]) -> Html:
    """Packages and their versions; several where rows of several runs stand in one file."""
    counts = Counter((name, version) for row in rows for name, version in row.versions.items())
    found = [[name, version, count] for (name, version), count in sorted(counts.items())]
    return table(["package", "version", "rows"], found, "Versions") if found else Html("")
