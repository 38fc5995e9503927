"""Bridges: restatements of one problem class as another, with the way back, as a table.

Each bridge returns the other problem and a function that maps its primal and dual back. Value and bound are recomputed
in the original problem, so no bridge has to be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar, cast

from formulations.bridges import narrowing, widening
from formulations.bridges.widening import Back, NotApplicable
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.errors import UnsupportedProblemError
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticePath
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP

__all__ = ["BRIDGES", "Bridge", "Chain", "chains", "crossings", "restated"]


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
        return self.label or re.sub("([A-Z])", r" \1", self.target.__name__).lower().strip()


Restated = TypeVar("Restated", bound=Problem)
Chain = tuple[Bridge, ...]

WHY_COLLAPSED = "every document is in one row that is at most 1, so positions and rows are matched"
WHY_BY_GROUPS = (
    "limits on prefixes over disjoint groups and profits of rank one within each group: "
    "this linear program has an integral optimum, a flow of positions through groups"
)
WHY_CELLS = "only bans and pins are soft: the profit of their cells is reduced by the penalty"
WHY_SEARCH = "soft (penalized) rows: integer search"

INTEGER_PROGRAM = partial(narrowing.to_linear_program, integer=True)

BRIDGES: tuple[Bridge, ...] = (
    Bridge(RankTwoAssignment, Assignment, widening.rank_two_to_assignment),
    Bridge(Assignment, LinearProgram, widening.assignment_to_linear_program),
    Bridge(Assignment, MinCostFlow, widening.assignment_to_flow),
    Bridge(MinCostFlow, LinearProgram, widening.flow_to_linear_program),
    Bridge(Assignment, LinearProgram, widening.to_integer_program, "integer program"),
    Bridge(MinCostFlow, LinearProgram, widening.to_integer_program, "integer program"),
    Bridge(GroupedSimplexQP, QuadraticProgram, widening.margin_dual_to_quadratic_program),
    Bridge(RelevanceRanking, LatticePath, widening.relevance_to_lattice),
    Bridge(LatticePath, MinCostFlow, widening.lattice_to_flow),
    Bridge(ConstrainedRanking, RankTwoAssignment, narrowing.to_rank_two, "no constraints"),
    Bridge(ConstrainedRanking, Assignment, narrowing.to_assignment, "collapsed assignment", WHY_COLLAPSED),
    Bridge(ConstrainedRanking, MinCostFlow, narrowing.to_flow, "laminar flow", "the rows are two laminar families"),
    Bridge(ConstrainedRanking, GroupSequence, narrowing.to_group_sequence, "prefix groups", WHY_BY_GROUPS),
    Bridge(GroupSequence, MinCostFlow, narrowing.group_sequence_to_flow),
    Bridge(ConstrainedRanking, LinearProgram, narrowing.to_linear_program, "linear program", narrowing.why_relaxed),
    Bridge(ConstrainedRanking, LinearProgram, INTEGER_PROGRAM, "integer program", narrowing.why_integral),
    Bridge(PenalizedRanking, ConstrainedRanking, narrowing.to_constrained, "penalized cells", WHY_CELLS),
    Bridge(PenalizedRanking, LinearProgram, narrowing.to_linear_program, "widened program", narrowing.why_widened),
    Bridge(PenalizedRanking, LinearProgram, INTEGER_PROGRAM, "widened integer program", WHY_SEARCH),
)


@cache
def chains(source: type[Problem], targets: tuple[type[Problem], ...]) -> tuple[Chain, ...]:
    """All chains of bridges from `source` to one of `targets`, the shortest first; the empty chain if it is a
    target."""
    if source in targets:
        return ((),)
    found: list[Chain] = []
    paths: list[Chain] = [(bridge,) for bridge in BRIDGES if bridge.source is source]
    while paths:
        path = paths.pop(0)
        end = path[-1].target
        if end in targets:
            found.append(path)
            continue
        passed = {bridge.source for bridge in path}
        paths += [(*path, bridge) for bridge in BRIDGES if bridge.source is end and bridge.target not in passed]
    return tuple(found)


def crossings(
    problem: Problem, targets: tuple[type[Problem], ...]
) -> Iterator[tuple[Chain, Problem | str, list[Back]]]:
    """For each chain to one of `targets`: the chain, the restated problem and the ways back; or the reason why it does
    not apply."""
    for chain in chains(type(problem), targets):
        form, backs = problem, list[Back]()
        try:
            for bridge in chain:
                form, back = bridge.cross(form)
                backs.append(back)
        except NotApplicable as reason:
            yield chain, str(reason), []
        else:
            yield chain, form, backs


def restated(problem: Problem, target: type[Restated]) -> Restated:
    """`problem` as a `target`; raises `UnsupportedProblemError` if no chain of bridges leads there.

    A ranking under constraints is restated in full, without selection of candidates.
    """
    if isinstance(problem, ConstrainedRanking) and target is LinearProgram:
        return cast(Restated, problem.linear_program())
    reasons = []
    for _, form, _ in crossings(problem, (target,)):
        if isinstance(form, Problem):
            return cast(Restated, form)
        reasons.append(form)
    why = f": {'; '.join(reasons)}" if reasons else ""
    raise UnsupportedProblemError(f"{type(problem).__name__} cannot be restated as {target.__name__}{why}")
