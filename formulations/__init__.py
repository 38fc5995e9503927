"""Optimization problems over arrays: stated as data, solved by any solver, proved.

    problem      form               whole because                    solvers
    ranking      RankTwoAssignment  bipartite incidence matrix       exact, and all that solve a matching
    matching     Assignment         bipartite incidence matrix       scipy, ortools, networkx, highs, cvxpy:...
    diverse_retrieval  ConstrainedRanking  Heller-Tompkins
    ranking_set  ConstrainedRanking (its statement decides)
    margin_dual  GroupedSimplexQP   (its variables are real)         active_set, qpsolvers:..., cvxpy:...

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
    from formulations.margin_dual import margin_dual as margin_dual
    from formulations.matching import matching as matching
    from formulations.modeling.batch import BatchSolution as BatchSolution
    from formulations.modeling.batch import solve_batch as solve_batch
    from formulations.modeling.certify import Certificate as Certificate
    from formulations.modeling.certify import certify as certify
    from formulations.modeling.ranking_set import RankingSet as RankingSet
    from formulations.modeling.solution import Solution as Solution
    from formulations.modeling.solution import Status as Status
    from formulations.modeling.solve import solve as solve
    from formulations.ranking import ranking as ranking
    from formulations.ranking_set import ranking_set as ranking_set
    from formulations.solvers import accepting as accepting
    from formulations.solvers import named as named

GALLERY = {
    "diverse_retrieval": "formulations.diverse_retrieval:diverse_retrieval",
    "margin_dual": "formulations.margin_dual:margin_dual",
    "matching": "formulations.matching:matching",
    "ranking": "formulations.ranking:ranking",
    "ranking_set": "formulations.ranking_set:ranking_set",
}
"""Every problem, `name: "module:function"`."""

WORDS = {
    "BatchSolution": "formulations.modeling.batch:BatchSolution",
    "Certificate": "formulations.modeling.certify:Certificate",
    "FormulationError": "formulations.errors:FormulationError",
    "Fractional": "formulations.errors:Fractional",
    "Infeasible": "formulations.errors:Infeasible",
    "InvalidProblem": "formulations.errors:InvalidProblem",
    "RankingSet": "formulations.modeling.ranking_set:RankingSet",
    "Refuted": "formulations.errors:Refuted",
    "Solution": "formulations.modeling.solution:Solution",
    "SolverFailed": "formulations.errors:SolverFailed",
    "Status": "formulations.modeling.solution:Status",
    "Unbounded": "formulations.errors:Unbounded",
    "UnknownSolver": "formulations.errors:UnknownSolver",
    "Unsupported": "formulations.errors:Unsupported",
    "accepting": "formulations.solvers:accepting",
    "certify": "formulations.modeling.certify:certify",
    "named": "formulations.solvers:named",
    "solve": "formulations.modeling.solve:solve",
    "solve_batch": "formulations.modeling.batch:solve_batch",
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
