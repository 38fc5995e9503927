"""Optimization problems over arrays: stated as data, solved by any solver, proved.

    problem            form                whole because                    solvers
    ranking            RankTwoAssignment   bipartite incidence matrix       exact, and all that solve a matching
    matching           Assignment          bipartite incidence matrix       scipy, ortools, networkx, highs, cvxpy:...
    diverse_retrieval  ConstrainedRanking  bipartite incidence matrix       all that solve a matching, by collapse
    ranking_set        ConstrainedRanking  its statement says: verify       by its structure: matching, flow, highs, ...
    marginal_ranking   LinearProgram       (a lottery, by `decompose`)      highs, cvxpy:...
    margin_dual        GroupedSimplexQP    (its variables are real)         active_set, block_ascent, qpsolvers:...

A function of the gallery goes from data to a problem and cannot solve it; `solve` takes the solver as an argument, and
`certify` believes neither. `accepting(problem)` lists the installed solvers of a problem.

>>> from formulations import certify, matching, solve
>>> problem = matching([[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]])
>>> solution = solve(problem, "scipy")
>>> solution.order, solution.value, solution.status.name
(array([0, 2]), 11.5, 'OPTIMAL')
>>> certify(problem, solution, exact=True).gap
Fraction(0, 1)
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formulations.diverse_retrieval import diverse_retrieval as diverse_retrieval
    from formulations.errors import FormulationError as FormulationError
    from formulations.errors import Fractional as Fractional
    from formulations.errors import Infeasible as Infeasible
    from formulations.errors import InvalidProblem as InvalidProblem
    from formulations.errors import Refuted as Refuted
    from formulations.errors import SolverFailed as SolverFailed
    from formulations.errors import Unbounded as Unbounded
    from formulations.errors import UnknownSolver as UnknownSolver
    from formulations.errors import Unsupported as Unsupported
    from formulations.exposure import DemographicParity as DemographicParity
    from formulations.exposure import DisparateImpact as DisparateImpact
    from formulations.exposure import DisparateTreatment as DisparateTreatment
    from formulations.exposure import ExposureLimits as ExposureLimits
    from formulations.integrality.confirmation import confirm as confirm
    from formulations.integrality.evidence import Proof as Proof
    from formulations.integrality.evidence import Undecided as Undecided
    from formulations.integrality.evidence import Witness as Witness
    from formulations.integrality.gap import integrality_gap as integrality_gap
    from formulations.integrality.verify import verify_integrality as verify_integrality
    from formulations.lottery import Lottery as Lottery
    from formulations.lottery import decompose as decompose
    from formulations.margin_dual import margin_dual as margin_dual
    from formulations.marginal_ranking import marginal_ranking as marginal_ranking
    from formulations.matching import matching as matching
    from formulations.modeling.assignment import Assignment as Assignment
    from formulations.modeling.batch import BatchSolution as BatchSolution
    from formulations.modeling.batch import solve_batch as solve_batch
    from formulations.modeling.certify import Certificate as Certificate
    from formulations.modeling.certify import certify as certify
    from formulations.modeling.constrained_ranking import ConstrainedRanking as ConstrainedRanking
    from formulations.modeling.flow import MinCostFlow as MinCostFlow
    from formulations.modeling.grouped_simplex import GroupedSimplexQP as GroupedSimplexQP
    from formulations.modeling.linear_program import LinearProgram as LinearProgram
    from formulations.modeling.quadratic_program import QuadraticProgram as QuadraticProgram
    from formulations.modeling.rank_two import RankTwoAssignment as RankTwoAssignment
    from formulations.modeling.ranking_set import RankingSet as RankingSet
    from formulations.modeling.solution import Solution as Solution
    from formulations.modeling.solution import Status as Status
    from formulations.modeling.solve import Answer as Answer
    from formulations.modeling.solve import solve as solve
    from formulations.own_solver import own as own
    from formulations.ranking import ranking as ranking
    from formulations.ranking_set import ranking_set as ranking_set
    from formulations.solvers import accepting as accepting
    from formulations.solvers import named as named
    from formulations.statement_file import read_statement as read_statement

GALLERY = {
    "diverse_retrieval": "formulations.diverse_retrieval:diverse_retrieval",
    "margin_dual": "formulations.margin_dual:margin_dual",
    "marginal_ranking": "formulations.marginal_ranking:marginal_ranking",
    "matching": "formulations.matching:matching",
    "ranking": "formulations.ranking:ranking",
    "ranking_set": "formulations.ranking_set:ranking_set",
}
"""Every problem, `name: "module:function"`."""

WORDS = {
    "Answer": "formulations.modeling.solve:Answer",
    "Assignment": "formulations.modeling.assignment:Assignment",
    "BatchSolution": "formulations.modeling.batch:BatchSolution",
    "Certificate": "formulations.modeling.certify:Certificate",
    "ConstrainedRanking": "formulations.modeling.constrained_ranking:ConstrainedRanking",
    "DemographicParity": "formulations.exposure:DemographicParity",
    "DisparateImpact": "formulations.exposure:DisparateImpact",
    "DisparateTreatment": "formulations.exposure:DisparateTreatment",
    "ExposureLimits": "formulations.exposure:ExposureLimits",
    "FormulationError": "formulations.errors:FormulationError",
    "Fractional": "formulations.errors:Fractional",
    "GroupedSimplexQP": "formulations.modeling.grouped_simplex:GroupedSimplexQP",
    "Infeasible": "formulations.errors:Infeasible",
    "InvalidProblem": "formulations.errors:InvalidProblem",
    "LinearProgram": "formulations.modeling.linear_program:LinearProgram",
    "Lottery": "formulations.lottery:Lottery",
    "MinCostFlow": "formulations.modeling.flow:MinCostFlow",
    "Proof": "formulations.integrality.evidence:Proof",
    "QuadraticProgram": "formulations.modeling.quadratic_program:QuadraticProgram",
    "RankTwoAssignment": "formulations.modeling.rank_two:RankTwoAssignment",
    "RankingSet": "formulations.modeling.ranking_set:RankingSet",
    "Refuted": "formulations.errors:Refuted",
    "Solution": "formulations.modeling.solution:Solution",
    "SolverFailed": "formulations.errors:SolverFailed",
    "Status": "formulations.modeling.solution:Status",
    "Unbounded": "formulations.errors:Unbounded",
    "Undecided": "formulations.integrality.evidence:Undecided",
    "UnknownSolver": "formulations.errors:UnknownSolver",
    "Unsupported": "formulations.errors:Unsupported",
    "Witness": "formulations.integrality.evidence:Witness",
    "accepting": "formulations.solvers:accepting",
    "certify": "formulations.modeling.certify:certify",
    "confirm": "formulations.integrality.confirmation:confirm",
    "decompose": "formulations.lottery:decompose",
    "integrality_gap": "formulations.integrality.gap:integrality_gap",
    "named": "formulations.solvers:named",
    "own": "formulations.own_solver:own",
    "read_statement": "formulations.statement_file:read_statement",
    "solve": "formulations.modeling.solve:solve",
    "solve_batch": "formulations.modeling.batch:solve_batch",
    "verify_integrality": "formulations.integrality.verify:verify_integrality",
}

__all__ = [*GALLERY, *WORDS]


def __getattr__(name: str) -> Any:
    """What a table names, loaded on first use."""
    place = GALLERY.get(name) or WORDS.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A problem's file has the problem's name. Importing a file makes it an attribute of its package, which would hide
    the function: `formulations.ranking` is always the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in GALLERY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
