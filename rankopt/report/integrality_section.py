"""Integrality as sets grow: what is proved of each statement, and how often and how far its relaxation is off."""

from __future__ import annotations

from collections.abc import Sequence

from rankopt.experiments.rows import Row
from rankopt.report.figures import Drawing, figures, line_style
from rankopt.report.markup import Html
from rankopt.report.page import section
from rankopt.report.tables import brief, table

__all__ = ["integrality_section"]

FACTS = ("objectives", "fractional", "overestimate_mean", "overestimate_max")
SHARES = {
    "fractional": "share of the random objectives whose relaxation has a fractional optimum",
    "overestimate_max": "largest overestimate of the whole optimum by the relaxation, as a share of it",
}


def integrality_section(rows: Sequence[Row]) -> list[Html]:
    """The section, where there are such rows."""
    if not rows:
        return []
    sizes = list(dict.fromkeys(name for row in rows for name in row.sizes))
    lines = [
        [
            _statement(row), *(row.sizes.get(name) for name in sizes), row.status.words,
            row.facts.get("proof") or row.facts.get("witness") or row.message,
            *(brief(row.facts.get(name)) for name in FACTS), brief(row.seconds),
        ]
        for row in rows
    ]  # fmt: skip
    head = ["statement", *sizes, "answer", "because", "objectives", "fractional", "mean off", "at most off", "seconds"]
    caption = "Fractional and off: over random objectives, shares; off is the relaxation above the whole optimum."
    drawn = [_drawing(rows, fact, says) for fact, says in SHARES.items()]
    return [section("Integrality", table(head, lines, caption), figures(drawn))]


def _drawing(rows: Sequence[Row], fact: str, says: str) -> Drawing:
    """A fact against the number of documents, the largest over all other sizes."""
    drawing = Drawing(fact.replace("_max", " at most"), f"{says}; against documents, the largest over all other sizes.")
    with drawing as axes:
        for place, statement in enumerate(dict.fromkeys(map(_statement, rows))):
            largest: dict[int, float] = {}
            for row in rows:
                value = row.facts.get(fact)
                if _statement(row) == statement and value is not None and "n" in row.sizes:
                    n = row.sizes["n"]
                    largest[n] = max(value, largest.get(n, 0.0))
            x = sorted(largest)
            axes.plot(x, [largest[n] for n in x], marker="o", markersize=4, label=statement, **line_style(place))
        axes.set_ylim(bottom=-0.02)
        axes.set_xlabel("n, documents")
    return drawing


def _statement(row: Row) -> str:
    return str(row.facts.get("statement", row.problem))
