"""What a caller asks of a solver beside the problem: precision, time, threads, a log, options of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np

from formulations.errors import UnknownSolver
from formulations.solvers import named
from formulations.solvers.limits import check_limits
from formulations.solvers.solver import Solver

__all__ = ["SolveOptions", "takes"]

WORDS = {"time_limit": "limit of time", "threads": "choice of threads", "log": "log", "options": "further options"}


def takes(solver: Solver | str, option: str) -> bool:
    """Whether a solver has this option; "auto" takes all but `options` and leaves out what does not suit. Solvers whose
    back ends differ say so in `takes_time_limit` and the like."""
    if isinstance(solver, str):
        return option != "options" if solver == "auto" else takes(named(solver), option)
    one: Any = solver
    known = is_dataclass(one) and any(entry.name == option for entry in fields(one) if entry.init)
    return known and bool(getattr(one, f"takes_{option}", True))


@dataclass(frozen=True)
class SolveOptions:
    """What is asked of the solver; None and nothing where it is left to it. Raises UnknownSolver for what no solver
    could be asked: each would say it in words of its own, or read it as no limit at all."""

    precision: float | None = None
    time_limit: float | None = None
    threads: int | None = None
    log: bool | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_limits(self.time_limit, self.threads, self.log, self.options)

    def of(self, solver: Solver, strict: bool) -> Solver:
        """The solver with all this. A tolerance is a wish; of the rest UnknownSolver is raised for what the solver does
        not have, if `strict`, and else it is left out."""
        aimed: Any = solver
        if self.precision is not None and takes(solver, "tolerance"):
            aimed = replace(aimed, tolerance=self.precision)
        for name, word in WORDS.items():
            value = getattr(self, name)
            if value is None:
                continue
            if takes(solver, name):
                aimed = replace(aimed, **{name: _joined(name, value, getattr(aimed, name))})
            elif strict:
                raise UnknownSolver(
                    f"{solver.spec!r} has no {word}; leave out {name} = {value!r}, or choose another solver"
                )
        return cast("Solver", aimed)


def _joined(name: str, value: Any, own: Any) -> Any:
    """What is asked and what the solver already has of it: the shorter time, the options of both."""
    if name == "time_limit":
        return min(value, np.inf if own is None else own)
    return {**own, **value} if name == "options" else value
