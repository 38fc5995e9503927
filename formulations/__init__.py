"""Optimization problems over arrays: stated as data, solved by any solver, proved.

    problem            form                whole because                    solvers
    ranking            RankTwoAssignment   bipartite incidence matrix       exact, and all that solve a matching
    matching           Assignment          bipartite incidence matrix       scipy, ortools, networkx, highs, cvxpy:...
    diverse_retrieval  ConstrainedRanking  bipartite incidence matrix       all that solve a matching, by collapse
    constrained_ranking ConstrainedRanking its statement says: verify       by its structure: matching, flow, ...
    marginal_ranking   LinearProgram       (a lottery, by `decompose`)      highs, cvxpy:...
    pattern_ranking    PatternRanking      a path of a lattice is a flow    exact, and all that solve a flow
    pairwise_ranking   PatternRanking      the same, the map of pairs       as pattern_ranking
    first_relevant_ranking  PatternRanking  the same, the map of the first  as pattern_ranking
    margin_dual        GroupedSimplexQP    (its variables are real)         active_set, qpsolvers:..., cvxpy:...
    sparse_margin_dual LinearProgram       (its variables are real)         highs, cvxpy:...
    user_factors       GroupedSimplexQP    (its variables are real)         as margin_dual
    item_factors       GroupedSimplexQP    (its variables are real)         as margin_dual

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

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from formulations.certificates.certify import Certificate as Certificate
    from formulations.certificates.certify import certify as certify
    from formulations.constraints.constrained_ranking import ConstrainedRanking as ConstrainedRanking
    from formulations.constraints.constrained_ranking import PenalizedRanking as PenalizedRanking
    from formulations.constraints.ranking_set import RankingSet as RankingSet
    from formulations.constraints.rows import penalized as penalized
    from formulations.errors import FormulationError as FormulationError
    from formulations.errors import Fractional as Fractional
    from formulations.errors import Infeasible as Infeasible
    from formulations.errors import InvalidProblem as InvalidProblem
    from formulations.errors import Refuted as Refuted
    from formulations.errors import SolverFailed as SolverFailed
    from formulations.errors import Unbounded as Unbounded
    from formulations.errors import UnknownSolver as UnknownSolver
    from formulations.errors import Unsupported as Unsupported
    from formulations.gallery.assignments import constrained_ranking as constrained_ranking
    from formulations.gallery.assignments import diverse_retrieval as diverse_retrieval
    from formulations.gallery.assignments import matching as matching
    from formulations.gallery.marginal_ranking import marginal_ranking as marginal_ranking
    from formulations.gallery.masters import item_factors as item_factors
    from formulations.gallery.masters import margin_dual as margin_dual
    from formulations.gallery.masters import sparse_margin_dual as sparse_margin_dual
    from formulations.gallery.masters import user_factors as user_factors
    from formulations.gallery.rankings import first_relevant_ranking as first_relevant_ranking
    from formulations.gallery.rankings import pairwise_ranking as pairwise_ranking
    from formulations.gallery.rankings import pattern_ranking as pattern_ranking
    from formulations.gallery.rankings import ranking as ranking
    from formulations.integrality.checker import confirm as confirm
    from formulations.integrality.evidence import Proof as Proof
    from formulations.integrality.evidence import Undecided as Undecided
    from formulations.integrality.evidence import Witness as Witness
    from formulations.integrality.verify import verify_integrality as verify_integrality
    from formulations.io.toml_file import read_program as read_program
    from formulations.io.toml_file import read_solver as read_solver
    from formulations.io.toml_file import read_statement as read_statement
    from formulations.marginals.birkhoff import Lottery as Lottery
    from formulations.marginals.birkhoff import decompose as decompose
    from formulations.marginals.exposure import DemographicParity as DemographicParity
    from formulations.marginals.exposure import DisparateImpact as DisparateImpact
    from formulations.marginals.exposure import DisparateTreatment as DisparateTreatment
    from formulations.marginals.exposure import ExposureLimits as ExposureLimits
    from formulations.problems.assignment import Assignment as Assignment
    from formulations.problems.group_sequence import PrefixGroupRanking as PrefixGroupRanking
    from formulations.problems.lattice_path import LatticePath as LatticePath
    from formulations.problems.linear_program import LinearProgram as LinearProgram
    from formulations.problems.min_cost_flow import MinCostFlow as MinCostFlow
    from formulations.problems.problem import Solution as Solution
    from formulations.problems.problem import Status as Status
    from formulations.problems.quadratic_program import QuadraticProgram as QuadraticProgram
    from formulations.problems.ranking import RankTwoAssignment as RankTwoAssignment
    from formulations.problems.relevance_losses import Discounted as Discounted
    from formulations.problems.relevance_losses import RelevanceLoss as RelevanceLoss
    from formulations.problems.relevance_losses import StepwiseLoss as StepwiseLoss
    from formulations.problems.relevance_losses import TableLoss as TableLoss
    from formulations.problems.relevance_ranking import PatternRanking as PatternRanking
    from formulations.problems.relevance_values import GainTable as GainTable
    from formulations.problems.simplex_qp import GroupedSimplexQP as GroupedSimplexQP
    from formulations.solvers import accepting as accepting
    from formulations.solvers import named as named
    from formulations.solvers.batch_solution import BatchSolution as BatchSolution
    from formulations.solvers.cp_sat import CpSat as CpSat
    from formulations.solvers.cvxpy import Cvxpy as Cvxpy
    from formulations.solvers.exact import Exact as Exact
    from formulations.solvers.function_solver import own as own
    from formulations.solvers.highs import Highs as Highs
    from formulations.solvers.ortools import OrTools as OrTools
    from formulations.solvers.qpsolvers import QpSolvers as QpSolvers
    from formulations.solvers.scipy import Scipy as Scipy
    from formulations.solvers.solver import Answer as Answer
    from formulations.solvers.sweep import swept as swept
    from formulations.solving.batch import solve_batch as solve_batch
    from formulations.solving.integrality_gap import integrality_gap as integrality_gap
    from formulations.solving.sensitivity import price_of as price_of
    from formulations.solving.solve import solve as solve
    from formulations.solving.suggested_changes import Advice as Advice
    from formulations.solving.suggested_changes import advice as advice

ROOMS = (
    "problems", "integrality", "argmax", "active_set", "constraints", "marginals", "bridges", "gallery",
    "certificates", "solvers", "solving", "io", "testing", "experimental",
)  # fmt: skip
"""The folders, each after all that it may import; below them stand the files of this folder."""

GALLERY = {
    "constrained_ranking": "formulations.gallery.assignments:constrained_ranking",
    "diverse_retrieval": "formulations.gallery.assignments:diverse_retrieval",
    "first_relevant_ranking": "formulations.gallery.rankings:first_relevant_ranking",
    "item_factors": "formulations.gallery.masters:item_factors",
    "margin_dual": "formulations.gallery.masters:margin_dual",
    "marginal_ranking": "formulations.gallery.marginal_ranking:marginal_ranking",
    "matching": "formulations.gallery.assignments:matching",
    "pairwise_ranking": "formulations.gallery.rankings:pairwise_ranking",
    "pattern_ranking": "formulations.gallery.rankings:pattern_ranking",
    "ranking": "formulations.gallery.rankings:ranking",
    "sparse_margin_dual": "formulations.gallery.masters:sparse_margin_dual",
    "user_factors": "formulations.gallery.masters:user_factors",
}
"""Every problem, `name: "module:function"`."""

WORDS = {
    "Advice": "formulations.solving.suggested_changes:Advice",
    "Answer": "formulations.solvers.solver:Answer",
    "Assignment": "formulations.problems.assignment:Assignment",
    "BatchSolution": "formulations.solvers.batch_solution:BatchSolution",
    "Certificate": "formulations.certificates.certify:Certificate",
    "ConstrainedRanking": "formulations.constraints.constrained_ranking:ConstrainedRanking",
    "CpSat": "formulations.solvers.cp_sat:CpSat",
    "Cvxpy": "formulations.solvers.cvxpy:Cvxpy",
    "DemographicParity": "formulations.marginals.exposure:DemographicParity",
    "DisparateImpact": "formulations.marginals.exposure:DisparateImpact",
    "Discounted": "formulations.problems.relevance_losses:Discounted",
    "DisparateTreatment": "formulations.marginals.exposure:DisparateTreatment",
    "Exact": "formulations.solvers.exact:Exact",
    "ExposureLimits": "formulations.marginals.exposure:ExposureLimits",
    "FormulationError": "formulations.errors:FormulationError",
    "Fractional": "formulations.errors:Fractional",
    "GroupedSimplexQP": "formulations.problems.simplex_qp:GroupedSimplexQP",
    "GainTable": "formulations.problems.relevance_values:GainTable",
    "RelevanceLoss": "formulations.problems.relevance_losses:RelevanceLoss",
    "StepwiseLoss": "formulations.problems.relevance_losses:StepwiseLoss",
    "TableLoss": "formulations.problems.relevance_losses:TableLoss",
    "Highs": "formulations.solvers.highs:Highs",
    "Infeasible": "formulations.errors:Infeasible",
    "InvalidProblem": "formulations.errors:InvalidProblem",
    "LatticePath": "formulations.problems.lattice_path:LatticePath",
    "LinearProgram": "formulations.problems.linear_program:LinearProgram",
    "Lottery": "formulations.marginals.birkhoff:Lottery",
    "MinCostFlow": "formulations.problems.min_cost_flow:MinCostFlow",
    "OrTools": "formulations.solvers.ortools:OrTools",
    "PatternRanking": "formulations.problems.relevance_ranking:PatternRanking",
    "PrefixGroupRanking": "formulations.problems.group_sequence:PrefixGroupRanking",
    "Proof": "formulations.integrality.evidence:Proof",
    "QpSolvers": "formulations.solvers.qpsolvers:QpSolvers",
    "QuadraticProgram": "formulations.problems.quadratic_program:QuadraticProgram",
    "RankTwoAssignment": "formulations.problems.ranking:RankTwoAssignment",
    "RankingSet": "formulations.constraints.ranking_set:RankingSet",
    "Refuted": "formulations.errors:Refuted",
    "Scipy": "formulations.solvers.scipy:Scipy",
    "PenalizedRanking": "formulations.constraints.constrained_ranking:PenalizedRanking",
    "Solution": "formulations.problems.problem:Solution",
    "SolverFailed": "formulations.errors:SolverFailed",
    "Status": "formulations.problems.problem:Status",
    "Unbounded": "formulations.errors:Unbounded",
    "Undecided": "formulations.integrality.evidence:Undecided",
    "UnknownSolver": "formulations.errors:UnknownSolver",
    "Unsupported": "formulations.errors:Unsupported",
    "Witness": "formulations.integrality.evidence:Witness",
    "accepting": "formulations.solvers:accepting",
    "advice": "formulations.solving.suggested_changes:advice",
    "certify": "formulations.certificates.certify:certify",
    "confirm": "formulations.integrality.checker:confirm",
    "decompose": "formulations.marginals.birkhoff:decompose",
    "integrality_gap": "formulations.solving.integrality_gap:integrality_gap",
    "named": "formulations.solvers:named",
    "own": "formulations.solvers.function_solver:own",
    "price_of": "formulations.solving.sensitivity:price_of",
    "read_program": "formulations.io.toml_file:read_program",
    "read_solver": "formulations.io.toml_file:read_solver",
    "read_statement": "formulations.io.toml_file:read_statement",
    "penalized": "formulations.constraints.rows:penalized",
    "solve": "formulations.solving.solve:solve",
    "solve_batch": "formulations.solving.batch:solve_batch",
    "swept": "formulations.solvers.sweep:swept",
    "verify_integrality": "formulations.integrality.verify:verify_integrality",
}

__all__ = [*GALLERY, *WORDS]


if not TYPE_CHECKING:  # a checker that saw it would take any misspelt name

    def __getattr__(name: str) -> Any:
        """What a table names, loaded on first use."""
        return member(__name__, name, GALLERY, WORDS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
