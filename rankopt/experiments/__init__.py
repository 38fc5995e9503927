"""Experiments: solvers swapped on the same work, integrality studied as sets grow, and the page that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.tables import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.experiments.rows import Outcome as Outcome
    from rankopt.experiments.rows import Row as Row
    from rankopt.experiments.rows import read_rows as read_rows

PARTS = {
    "Outcome": "rankopt.experiments.rows:Outcome",
    "Row": "rankopt.experiments.rows:Row",
    "read_rows": "rankopt.experiments.rows:read_rows",
}
"""Everything here, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> object:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
