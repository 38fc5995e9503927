"""A solver of one's own is judged like any other; commercial ones appear where they are installed."""

import numpy as np
import pytest
from planted.solvers import HONEST, backwards, boasting, honest, raising
from scipy.optimize import linear_sum_assignment

import formulations
from formulations import (
    Assignment,
    GroupedSimplexQP,
    RankTwoAssignment,
    SolverResult,
    UnknownSolverError,
    compatible_solvers,
    function_solver,
    solve,
)
from formulations.errors import InvalidSolutionError, SolverCrashError
from formulations.solvers import back_ends, get_solver, list_solvers
from formulations.solvers.back_ends import CVXPY, present
from formulations.solvers.cvxpy import Cvxpy
from formulations.solvers.function_solver import imported
from formulations.testing import check_solver
from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker

COMMERCIAL = ("COPT", "CUOPT", "GUROBI", "MOSEK", "XPRESS")


def matched(problem):
    return linear_sum_assignment(problem.masked_profit(), maximize=True)[1]


@pytest.mark.parametrize("solver", [function_solver(matched, accepts=Assignment), HONEST], ids=lambda one: one.spec)
def test_an_honest_function_passes_the_checks_that_our_solvers_pass(solver):
    assert "RankTwoBatch: all at once" in check_solver(solver)


def test_a_function_that_is_not_optimal_fails_them():
    with pytest.raises(AssertionError, match="own:backwards"):
        check_solver(function_solver(backwards, accepts=RankTwoAssignment))


def test_it_trains_a_ranker_to_the_same_objective():
    few = load_sample("les-miserables").train.select(range(4))
    options = {"bound": "convex", "position_weights": "linear", "lam": 1.0}
    usual = LargeMarginRanker("nDCG@3", **options).fit(few).certificate_
    swapped = (
        LargeMarginRanker("nDCG@3", argmax_solver=function_solver(matched, accepts=Assignment), **options)
        .fit(few)
        .certificate_
    )
    assert abs(swapped.primal - usual.primal) <= usual.gap + swapped.gap


def test_claims_of_a_solution_are_kept_apart_from_what_is_proven():
    problem = formulations.ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    solution = solve(problem, function_solver(boasting, accepts=RankTwoAssignment))
    assert solution.details["reported_bound"] == solution.value
    assert solution.details["reported_bound"] < solve(problem).value <= solution.bound


def test_what_goes_wrong_has_a_name():
    problem = formulations.ranking([0.5, 0.2], [1.0, 0.0], discount=[1.0], position_weights=[1.0])
    with pytest.raises(SolverCrashError, match="ZeroDivisionError: planted") as error:
        solve(problem, function_solver(raising, accepts=RankTwoAssignment))
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    for nothing in (lambda problem: None, lambda problem: np.array([0.5]), lambda problem: SolverResult(np.array([7]))):
        with pytest.raises(InvalidSolutionError):
            solve(problem, function_solver(nothing, accepts=RankTwoAssignment))
    with pytest.raises(UnknownSolverError, match="must be problem classes"):
        function_solver(honest, accepts=int)
    with pytest.raises(UnknownSolverError, match="must be problem classes"):
        function_solver(honest, accepts=())


def test_a_function_may_decline():
    solver = function_solver(
        matched, accepts=Assignment, rejects=lambda problem: "too large" if problem.documents > 2 else None
    )
    small = formulations.matching([[1.0, 2.0]])
    assert solve(small, solver).value == 2.0
    with pytest.raises(formulations.UnsupportedProblemError, match="too large"):
        solve(formulations.matching([[1.0, 2.0, 3.0]]), solver)


def test_solvers_are_found_by_place():
    assert imported("planted.solvers:HONEST") is HONEST
    assert imported("formulations.solvers.scipy:Scipy") == get_solver("scipy")
    for wrong in ("planted.solvers:honest", "planted.solvers:NEVER", "no_such_module:x", "planted"):
        with pytest.raises(UnknownSolverError):
            imported(wrong)


def test_commercial_solvers_appear_where_their_packages_are_installed(monkeypatch):
    absent = [name for name in COMMERCIAL if name not in present(CVXPY)]
    assert not {f"cvxpy:{name}" for name in absent} & set(list_solvers())
    monkeypatch.setattr(back_ends, "_importable", lambda module: True)
    names = {f"cvxpy:{name}" for name in COMMERCIAL}
    assert names <= set(list_solvers())
    assert names <= set(compatible_solvers(RankTwoAssignment))
    # Masters need quadratic objectives or second-order cones; cuOPT has neither in every cvxpy.
    assert names - {"cvxpy:CUOPT"} <= set(compatible_solvers(GroupedSimplexQP))
    assert get_solver("cvxpy:gurobi") == Cvxpy("GUROBI")
    problem = formulations.matching([[1.0, 2.0]])
    assert names <= set(compatible_solvers(problem))
