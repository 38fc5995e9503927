"""Optimization problems over arrays: stated as data, solved by any compatible solver, with proven bounds.

    problem                class              integrality                       solvers
    ranking                RankTwoAssignment  bipartite incidence matrix        exact, and all solvers of a matching
    matching               Assignment         bipartite incidence matrix        scipy, ortools, highs, cvxpy:...
    diverse_retrieval      ConstrainedRanking bipartite incidence matrix        all solvers of a matching
    constrained_ranking    ConstrainedRanking depends on its rows: verify       by its structure: matching, flow, ...
    marginal_ranking       LinearProgram      (mixed by birkhoff_decomposition) highs, cvxpy:...
    relevance_ranking      RelevanceRanking   a path of a lattice is a flow     exact, and all solvers of a flow
    pairwise_ranking       RelevanceRanking   the same, pairwise feature map    as relevance_ranking
    first_relevant_ranking RelevanceRanking   the same, first-relevant map      as relevance_ranking
    margin_dual            GroupedSimplexQP   (real variables)                  active_set, qpsolvers:..., cvxpy:...
    l1_margin_dual         LinearProgram      (real variables)                  highs, cvxpy:...
    user_block_dual        GroupedSimplexQP   (real variables)                  as margin_dual
    item_block_dual        GroupedSimplexQP   (real variables)                  as margin_dual

A gallery function builds a problem from data. `solve` takes the solver as an argument. `certify` checks a solution
independently of its solver. `compatible_solvers(problem)` lists the installed solvers of a problem.

>>> from formulations import certify, matching, solve
>>> problem = matching([[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]])
>>> solution = solve(problem, "scipy")
>>> solution.order, solution.value, solution.status.name
(array([0, 2]), 11.5, 'OPTIMAL')
>>> certify(problem, solution, exact=True).gap
Fraction(0, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from formulations.certificates.certify import SolutionCertificate as SolutionCertificate
    from formulations.certificates.certify import certify as certify
    from formulations.constraints.constrained_ranking import ConstrainedRanking as ConstrainedRanking
    from formulations.constraints.constrained_ranking import PenalizedRanking as PenalizedRanking
    from formulations.constraints.ranking_set import RankingSet as RankingSet
    from formulations.constraints.rows import penalized as penalized
    from formulations.errors import CertificateError as CertificateError
    from formulations.errors import FormulationError as FormulationError
    from formulations.errors import FractionalSolutionError as FractionalSolutionError
    from formulations.errors import InfeasibleError as InfeasibleError
    from formulations.errors import InvalidProblemError as InvalidProblemError
    from formulations.errors import InvalidSolutionError as InvalidSolutionError
    from formulations.errors import SolverCrashError as SolverCrashError
    from formulations.errors import SolverError as SolverError
    from formulations.errors import UnboundedError as UnboundedError
    from formulations.errors import UnknownSolverError as UnknownSolverError
    from formulations.errors import UnsupportedProblemError as UnsupportedProblemError
    from formulations.gallery.assignments import constrained_ranking as constrained_ranking
    from formulations.gallery.assignments import diverse_retrieval as diverse_retrieval
    from formulations.gallery.assignments import matching as matching
    from formulations.gallery.marginal_ranking import marginal_ranking as marginal_ranking
    from formulations.gallery.masters import item_block_dual as item_block_dual
    from formulations.gallery.masters import l1_margin_dual as l1_margin_dual
    from formulations.gallery.masters import margin_dual as margin_dual
    from formulations.gallery.masters import user_block_dual as user_block_dual
    from formulations.gallery.rankings import first_relevant_ranking as first_relevant_ranking
    from formulations.gallery.rankings import pairwise_ranking as pairwise_ranking
    from formulations.gallery.rankings import ranking as ranking
    from formulations.gallery.rankings import relevance_ranking as relevance_ranking
    from formulations.integrality.checker import check_evidence as check_evidence
    from formulations.integrality.evidence import Proof as Proof
    from formulations.integrality.evidence import Undecided as Undecided
    from formulations.integrality.evidence import Witness as Witness
    from formulations.integrality.verify import verify_integrality as verify_integrality
    from formulations.io.toml_file import read_program as read_program
    from formulations.io.toml_file import read_ranking_set as read_ranking_set
    from formulations.io.toml_file import read_solver as read_solver
    from formulations.marginals.birkhoff import RankingDistribution as RankingDistribution
    from formulations.marginals.birkhoff import birkhoff_decomposition as birkhoff_decomposition
    from formulations.marginals.exposure import DemographicParity as DemographicParity
    from formulations.marginals.exposure import DisparateImpact as DisparateImpact
    from formulations.marginals.exposure import DisparateTreatment as DisparateTreatment
    from formulations.marginals.exposure import ExposureBounds as ExposureBounds
    from formulations.marginals.plackett_luce import plackett_luce_marginals as plackett_luce_marginals
    from formulations.problems.assignment import Assignment as Assignment
    from formulations.problems.group_sequence import GroupSequence as GroupSequence
    from formulations.problems.lattice_path import LatticePath as LatticePath
    from formulations.problems.linear_program import LinearProgram as LinearProgram
    from formulations.problems.min_cost_flow import MinCostFlow as MinCostFlow
    from formulations.problems.problem import Problem as Problem
    from formulations.problems.problem import Solution as Solution
    from formulations.problems.problem import Status as Status
    from formulations.problems.quadratic_program import QuadraticProgram as QuadraticProgram
    from formulations.problems.ranking import RankTwoAssignment as RankTwoAssignment
    from formulations.problems.relevance_losses import Discounted as Discounted
    from formulations.problems.relevance_losses import RelevanceLoss as RelevanceLoss
    from formulations.problems.relevance_losses import StepwiseLoss as StepwiseLoss
    from formulations.problems.relevance_losses import TableLoss as TableLoss
    from formulations.problems.relevance_ranking import RelevanceRanking as RelevanceRanking
    from formulations.problems.relevance_values import GainTable as GainTable
    from formulations.problems.simplex_qp import GroupedSimplexQP as GroupedSimplexQP
    from formulations.solvers import compatible_solvers as compatible_solvers
    from formulations.solvers import get_solver as get_solver
    from formulations.solvers import solver_grid as solver_grid
    from formulations.solvers.batch_solution import BatchSolution as BatchSolution
    from formulations.solvers.cp_sat import CpSat as CpSat
    from formulations.solvers.cvxpy import Cvxpy as Cvxpy
    from formulations.solvers.exact import ExactArgmax as ExactArgmax
    from formulations.solvers.function_solver import function_solver as function_solver
    from formulations.solvers.highs import Highs as Highs
    from formulations.solvers.models import as_problem as as_problem
    from formulations.solvers.ortools import OrTools as OrTools
    from formulations.solvers.qpsolvers import QpSolvers as QpSolvers
    from formulations.solvers.scipy import Scipy as Scipy
    from formulations.solvers.solver import SolverResult as SolverResult
    from formulations.solving.integrality import SuggestedChange as SuggestedChange
    from formulations.solving.integrality import integrality_gap as integrality_gap
    from formulations.solving.integrality import suggest_changes as suggest_changes
    from formulations.solving.sensitivity import SensitivityCurve as SensitivityCurve
    from formulations.solving.sensitivity import sensitivity as sensitivity
    from formulations.solving.solve import solve as solve
    from formulations.solving.solve import solve_batch as solve_batch
    from formulations.solving.solve import solve_many as solve_many

FOLDERS = (
    "problems", "integrality", "argmax", "active_set", "constraints", "marginals", "bridges", "gallery",
    "certificates", "solvers", "solving", "io", "testing", "experimental",
)  # fmt: skip
"""The folders, each after all that it may import; below them stand the files of this folder."""

_NAMES = public_names(__name__)
GALLERY = {name: place for name, place in _NAMES.items() if place.startswith("formulations.gallery.")}
"""Every problem, `name: "module:function"`."""

WORDS = {name: place for name, place in _NAMES.items() if name not in GALLERY}

__all__ = [*GALLERY, *WORDS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, _NAMES)
