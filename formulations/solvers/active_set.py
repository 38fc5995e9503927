"""Our master for the bundle method: an active-set method on one simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["ActiveSet"]


@dataclass(frozen=True)
class ActiveSet:
    """Maximise the margin dual of one group: the best point for the planes in use, then another plane, and so on.

    The planes in use hold weight and are independent: a Cholesky factor of their Gram matrix gives the best point for
    them, kept up to date as planes come and go. The step is cut where a weight would turn negative, and that plane
    leaves; at the best point the plane that rises highest above the model enters. One that depends on those in use
    takes the weight of one of them. No Gram matrix of all planes is formed: its digits end where planes are steep and
    nearly parallel. Ends when the Frank-Wolfe gap falls below `tolerance` of the objective (or below rounding), or when
    neither gap nor objective moves any more. A start is used, and given up if it leads nowhere.

    max_steps: planes that may enter; 0 means 50 times as many as there are and 200 more.
    """

    tolerance: float = 1e-10
    max_steps: int = 0

    accepts: ClassVar[tuple[type[Form], ...]] = (GroupedSimplexQP,)
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "active_set"

    def declines(self, problem: Form) -> str | None:
        if isinstance(problem, GroupedSimplexQP) and problem.capacity.size > 1:
            return f"it takes one group and this has {problem.capacity.size}; use 'block_ascent'"
        return None

    def solve(self, problem: GroupedSimplexQP, start: Solution | None = None) -> Answer:
        from formulations.masters.start import climbed  # compiled when first used

        return climbed(problem, start, self.tolerance, self.max_steps)
