"""What `penalty=` may be, and what follows: the objective, the form of its master program, the methods that can."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.forms.form import Form
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.linear_program import LinearProgram
from formulations.solvers.solver import Solver
from rankopt.errors import OptionError
from rankopt.optimize.objective import Objective
from rankopt.optimize.sparse_objective import SparseObjective, check_linear
from rankopt.risk.risk import Risk

__all__ = ["PENALTIES", "check_penalty", "penalised"]

PENALTIES: dict[str, type[Form]] = {"l2": GroupedSimplexQP, "l1": LinearProgram}
"""The penalties by their usual names, (λ/2)‖w - w₀‖² and λ‖w‖₁, and the form of each one's master program."""


def check_penalty(penalty: Any, method: Any) -> type[Form]:
    """The form of this penalty's master program; OptionError for a penalty that is none, and for a method that cannot
    minimise it."""
    if penalty not in PENALTIES:
        raise OptionError(f"penalty {penalty!r} is unknown; known are {', '.join(map(repr, PENALTIES))}")
    if penalty == "l1":
        check_linear(method)
    return PENALTIES[penalty]


def penalised(
    penalty: str, risk: Risk, lam: float, w0: NDArray[np.float64], master: Solver | str, small: bool
) -> Objective:
    """J with this penalty; of "l1" w0 is where training starts, and the penalty pulls to 0."""
    if penalty == "l1":
        return SparseObjective(risk, lam, np.zeros_like(w0), master, small, begins=w0)
    return Objective(risk, lam, w0, master, small)
