"""A solver for each combination of options.

>>> [solver.presolve for solver in solver_grid("highs", method="ipm", presolve=["on", "off"])]
['on', 'off']
"""

from __future__ import annotations

from itertools import product
from typing import Any

from formulations.solvers import as_solver
from formulations.solvers.solver import Solver, optioned


def solver_grid(spec: str | Solver, **choices: Any) -> tuple[Solver, ...]:
    """A solver for each combination of options, in the order of the product; a value that is not a list or tuple is
    shared by all. Raises UnknownSolverError for options that the solver does not have."""
    solver = as_solver(spec)
    lists = [list(value) if isinstance(value, list | tuple) else [value] for value in choices.values()]
    return tuple(optioned(solver, **dict(zip(choices, values, strict=True))) for values in product(*lists))
