"""Experiments: comparison of solvers on the same problems, and integrality of growing ranking sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
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

PARTS = public_names(__name__)
"""The public names, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
