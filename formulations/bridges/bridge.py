"""What it means to cross a bridge: the restated problem, the way back, and why both have one optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.problems.problem import Problem

Point = tuple[NDArray[Any], Floats | None]
Back = Callable[[NDArray[Any], Floats | None], Point]


@dataclass(frozen=True)
class Bridge:
    """A restatement of problems of form `source` as ones of form `target`.

    `cross` returns the restated problem and the way back for a primal and a dual; a narrowing
    one raises `NotApplicable`
    where the problem lacks the structure. `label` is what a solution says of the way ("collapsed assignment"),
    `because` why both have one optimum, where that depends on the problem.
    """

    source: type[Problem]
    target: type[Problem]
    cross: Callable[[Any], tuple[Problem, Back]]
    label: str = ""
    because: Callable[[Any], str] | None = None

    @property
    def words(self) -> str:
        """The label, or LinearProgram → linear program."""
        if self.label:
            return self.label
        return "".join(" " + c.lower() if c.isupper() else c for c in self.target.__name__).strip()


class NotApplicable(Exception):
    """This problem has not the structure that a narrowing bridge needs; says which."""
