"""A bridge: the restated problem, the way back, and why both have the same optimum."""

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
    """A restatement of problems of class `source` as problems of class `target`.

    `cross` returns the restated problem and the way back for a primal and a dual; a narrowing bridge raises
    `NotApplicable` if the problem lacks the structure. `label` describes the bridge in a solution ("collapsed
    assignment"), `because` states why both problems have the same optimum, if that depends on the problem.
    """

    source: type[Problem]
    target: type[Problem]
    cross: Callable[[Any], tuple[Problem, Back]]
    label: str = ""
    because: str | Callable[[Any], str] = ""

    @property
    def words(self) -> str:
        """The label, or LinearProgram → linear program."""
        if self.label:
            return self.label
        return "".join(" " + c.lower() if c.isupper() else c for c in self.target.__name__).strip()


class NotApplicable(Exception):
    """The problem lacks the structure that a narrowing bridge needs."""
