"""Experiments: comparison of solvers on the same problems, and integrality of growing ranking sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import member

if TYPE_CHECKING:  # for type checkers: the table below has only strings
    from rankopt.experiments.integrality import IntegralityStudy as IntegralityStudy
    from rankopt.experiments.isolation import Limits as Limits
    from rankopt.experiments.regression import Changed as Changed
    from rankopt.experiments.regression import changes as changes
    from rankopt.experiments.rows import BenchmarkRow as BenchmarkRow
    from rankopt.experiments.rows import Outcome as Outcome
    from rankopt.experiments.rows import read_rows as read_rows
    from rankopt.experiments.rows import rows_to_frame as rows_to_frame
    from rankopt.experiments.solver_swap import SolverSwap as SolverSwap
    from rankopt.experiments.traces import ProblemTrace as ProblemTrace

PARTS = {
    "Changed": "rankopt.experiments.regression:Changed",
    "IntegralityStudy": "rankopt.experiments.integrality:IntegralityStudy",
    "Limits": "rankopt.experiments.isolation:Limits",
    "Outcome": "rankopt.experiments.rows:Outcome",
    "BenchmarkRow": "rankopt.experiments.rows:BenchmarkRow",
    "SolverSwap": "rankopt.experiments.solver_swap:SolverSwap",
    "ProblemTrace": "rankopt.experiments.traces:ProblemTrace",
    "changes": "rankopt.experiments.regression:changes",
    "read_rows": "rankopt.experiments.rows:read_rows",
    "rows_to_frame": "rankopt.experiments.rows:rows_to_frame",
}
"""The public names, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> object:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
