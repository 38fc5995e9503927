"""Our master for one slack a query: an active-set method on many simplices at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["BlockAscent"]


@dataclass(frozen=True)
class BlockAscent:
    """Maximise the margin dual of any groups: pass over the groups in which a plane rises above the one that holds the
    capacity, the worst first; let that plane enter, then go to the best point for all planes that share a group.

    With d features no more than d planes beside one a group need hold weight, so the factor is d × d at most, however
    many groups and planes there are; a price costs d, and the best plane of a group is looked for only when it is the
    group's turn. `active_set` is the same with one group. Ends when the Frank-Wolfe gap, summed over the groups, falls
    below `tolerance` of the objective (or below rounding), or when nothing moves any more.

    max_steps: planes that may enter; 0 means 50 times as many as there are and 200 more.
    """

    tolerance: float = 1e-10
    max_steps: int = 0

    accepts: ClassVar[tuple[type[Form], ...]] = (GroupedSimplexQP,)
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "block_ascent"

    def declines(self, problem: Form) -> str | None:
        return None

    def solve(self, problem: GroupedSimplexQP, start: Solution | None = None) -> Answer:
        from formulations.masters.start import climbed  # compiled when first used

        return climbed(problem, start, self.tolerance, self.max_steps)
