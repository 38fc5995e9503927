"""Forged evidence and lying solvers: nothing false is believed, nothing but typed errors is raised.

The long run is `python -m benchmarks faults forgeries`."""

from dataclasses import replace

import numpy as np
import pytest
from planted.forgeries import ATTACKS, attack

from formulations import (
    CertificateError,
    RankingSet,
    Status,
    certify,
    constrained_ranking,
    function_solver,
    ranking,
    solve,
)
from formulations.errors import InvalidSolutionError
from formulations.gallery.masters import margin_dual
from formulations.problems.linear_program import LinearProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.solver import SolverResult


@pytest.mark.parametrize("tries", [15, pytest.param(60, marks=pytest.mark.study)])
@pytest.mark.parametrize("kind", ATTACKS)
def test_no_forgery_survives(kind, tries):
    lost, refused = attack(kind, tries, seed=7)
    assert lost == []
    assert refused > tries / 4


@pytest.fixture
def by_cases():
    """A ranking whose relaxation is fractional, proved by cases."""
    admissible = RankingSet(5, 2)
    for name, group in zip("abc", [(0, 1), (1, 2), (0, 2)], strict=True):
        admissible = admissible.at_most(1, documents=group, name=name)
    problem = constrained_ranking(np.outer([2.0, 2.0], [4.0, 4.0, 4.0, 1.0, 0.5]), admissible)
    solution = solve(problem)
    assert solution.y.ndim == 2
    return problem, solution


def test_an_incomplete_proof_by_cases_is_refused(by_cases):
    problem, solution = by_cases
    certify(problem, solution, exact=True)
    for case in range(len(solution.y)):
        some = replace(solution, y=np.delete(solution.y, case, axis=0))
        with pytest.raises(CertificateError, match="incomplete"):
            certify(problem, some, exact=True)
    rows = problem.admissible.compiled.lower.size - problem.positions
    for cell in (0.5, 99.0, -1e300):
        changed = solution.y.copy()
        changed[0, rows] = cell
        with pytest.raises(CertificateError, match="incomplete"):
            certify(problem, replace(solution, y=changed), exact=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": np.array([1j, 0j, 2j])}, "no array of numbers"),
        ({"x": [0, 1, 2]}, "no array of numbers"),
        ({"x": np.array([0, 1, -(2**63)])}, "breaks a constraint"),
        ({"value": "3"}, "must be a number"),
        ({"bound": 1j}, "must be a number"),
        ({"bound": True}, "must be a number"),
        ({"status": "OPTIMAL"}, "status"),
        ({"y": [0.0, 0.0, 0.0]}, "duals must be finite numbers"),
        ({"y": np.zeros(2)}, "duals must be finite numbers"),
        ({"y": np.full(3, np.nan)}, "duals must be finite numbers"),
        ({"y": np.zeros(3, dtype=complex)}, "duals must be finite numbers"),
    ],
)
def test_malformed_solutions_are_refuted(change, said):
    problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6, 0.5], position_weights=[2.0, 1.0, 0.5])
    solution = solve(problem)
    with pytest.raises(CertificateError, match=said):
        certify(problem, replace(solution, **change), exact=True)
    with pytest.raises(CertificateError, match="no Solution"):
        certify(problem, solution.value)


def test_a_row_whose_sum_overflows_is_broken():
    """inf - inf is no proof that a row holds."""
    program = LinearProgram(
        np.ones(2), np.array([[1e10, -1e10]]), -np.ones(1), np.ones(1), np.full(2, -np.inf), np.full(2, np.inf)
    )
    with np.errstate(all="ignore"):
        assert program.violation(np.array([1e300, 1e300])) == np.inf


@pytest.mark.parametrize("message", [None, 7, b"x"])
def test_whatever_a_solver_says_beside_its_point_is_kept_or_left(message):
    problem = ranking([0.5, 0.2], [3.0, 0.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    liar = function_solver(
        lambda p: SolverResult(np.array([0, 1]), message=message, details=message), accepts=RankTwoAssignment
    )
    solution = solve(problem, liar)
    assert solution.message == str(message)
    assert solution.status in (Status.OPTIMAL, Status.BOUNDED_GAP)


def test_weights_of_too_few_planes_are_no_answer():
    problem = margin_dual(np.eye(3), np.ones(3), lam=1.0)
    for x in (np.ones(2), np.ones((3, 1)), np.array(1.0)):
        with pytest.raises(InvalidSolutionError):
            solve(problem, function_solver(lambda p, x=x: SolverResult(x), accepts=type(problem)))


@pytest.mark.parametrize("y", [np.zeros(99), np.zeros((2, 2)), "prices", np.array(["a"]), np.full(8, 1e308)])
def test_prices_that_are_none_do_not_cross_a_bridge(y):
    problem = ranking([0.5, 0.2], [3.0, 0.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])

    def liar(program):
        point = np.zeros(program.objective.size)
        point[[0, 3]] = 1.0
        return SolverResult(point, y)

    solution = solve(problem, function_solver(liar, accepts=LinearProgram))
    assert np.isfinite(solution.bound)
    certify(problem, solution, exact=True)
