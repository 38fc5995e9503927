"""A user's own cvxpy problem is solved and judged."""

import numpy as np
import pytest

from formulations import (
    InfeasibleError,
    SolverError,
    Status,
    UnboundedError,
    UnsupportedProblemError,
    certify,
    compatible_solvers,
    solve,
)


def test_a_cvxpy_problem_is_solved_and_judged():
    import cvxpy

    w = cvxpy.Variable(3, nonneg=True, name="w")
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w - np.array([1.0, 2.0, -1.0]))), [cvxpy.sum(w) <= 2])
    for solver in ("cvxpy:CLARABEL", "cvxpy:SCS", "auto"):
        solution = solve(problem, solver)
        assert solution.value == pytest.approx(1.5, abs=1e-6)
        assert solution.bound == -np.inf
        assert solution.status is Status.FEASIBLE
        np.testing.assert_allclose(solution.primal["w"], [0.5, 1.5, 0.0], atol=1e-5)
        certify(problem, solution)
    assert str(solution.problem) == str(problem)
    assert {"cvxpy:CLARABEL", "cvxpy:GLOP"} <= set(compatible_solvers(solution.problem))
    with pytest.raises(UnsupportedProblemError, match="'highs' accepts LinearProgram"):
        solve(problem, "highs")
    with pytest.raises(SolverError, match="gave up"):
        solve(problem, "cvxpy:GLOP")


def test_statuses_of_a_cvxpy_problem_are_errors():
    import cvxpy

    x = cvxpy.Variable(2)
    with pytest.raises(InfeasibleError):
        solve(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1, x <= 0]), "cvxpy:CLARABEL")
    with pytest.raises(UnboundedError):
        solve(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(x)), [x >= 1]), "cvxpy:CLARABEL")
    whole = cvxpy.Variable(integer=True)
    best = solve(cvxpy.Problem(cvxpy.Maximize(whole), [whole <= 2.5]), "cvxpy:HIGHS")
    assert best.value == 2.0
    assert best.violation == 0.0
