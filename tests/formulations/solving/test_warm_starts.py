"""Warm starts change the iterations and nothing else; sweeps and lists of problems equal separate solves."""

from dataclasses import replace

import numpy as np
import pytest

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    LinearProgram,
    Status,
    certify,
    compatible_solvers,
    matching,
    solve,
    solve_batch,
    solve_many,
)


def covering(rng, rows=40, columns=80, **changes):
    """A cheapest cover, whose vertices take simplex steps to reach."""
    matrix = rng.random((rows, columns)) * (rng.random((rows, columns)) < 0.2)
    return LinearProgram(
        rng.random(columns) + 0.5, matrix, 0.2 * matrix.sum(axis=1), np.full(rows, np.inf), np.zeros(columns),
        np.full(columns, 2.0), is_maximization=False, **changes,
    )  # fmt: skip


def test_a_basis_saves_iterations_on_fifty_sweeps_and_changes_no_value():
    rng = np.random.default_rng(0)
    cold, warm = 0, 0
    for _ in range(5):
        program = covering(rng)
        costs = program.objective * (1.0 + 0.02 * rng.normal(size=(5, 80)))
        limits = program.row_lower * (1.0 - 0.02 * np.arange(5)[:, None])
        for part, values in (("objective", costs), ("row_lower", limits)):
            varied = {"objectives" if part == "objective" else part: values}
            separate = [solve(replace(program, **{part: value}), "highs") for value in values]
            for one, other in zip(solve_many(program, "highs", **varied), separate, strict=True):
                assert one.status is other.status is Status.OPTIMAL
                assert one.value == pytest.approx(other.value, rel=1e-12)
                certify(one.problem, one)
                cold += other.details["iterations"]
                warm += one.details["iterations"]
    assert 3 * warm < cold, (warm, cold)


@pytest.mark.parametrize("more", ["rows", "columns", "fewer"])
def test_a_basis_serves_programs_with_more_rows_or_columns(more):
    program = covering(np.random.default_rng(1))
    solution = solve(program, "highs")
    if more == "rows":  # that the optimum breaks
        row = np.zeros((1, 80))
        row[0, np.argmax(solution.x)] = 1.0
        matrix = np.vstack([program.matrix.toarray(), row])
        ends = np.append(program.row_lower, -np.inf), np.append(program.row_upper, 0.0)
        changed = replace(program, matrix=matrix, row_lower=ends[0], row_upper=ends[1], rows=())
    elif more == "columns":
        matrix = np.hstack([program.matrix.toarray(), np.ones((40, 1))])
        changed = replace(program, matrix=matrix, variables=(), objective=np.append(program.objective, 1.0),
                          lower=np.append(program.lower, -np.inf), upper=np.append(program.upper, 1.0))  # fmt: skip
    else:
        changed = covering(np.random.default_rng(1), 30, 60)
    warm, cold = solve(changed, "highs", solution), solve(changed, "highs")
    assert warm.status is Status.OPTIMAL
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    saved = warm.details["iterations"] < cold.details["iterations"]
    assert saved is (more != "fewer")


def test_a_basis_that_misleads_changes_no_answer():
    program = covering(np.random.default_rng(2), 20, 30)
    right = solve(program, "highs")
    rng = np.random.default_rng(3)
    for _ in range(20):
        basis = {"columns": rng.integers(0, 5, 30).astype(np.int8), "rows": rng.integers(0, 5, 20).astype(np.int8)}
        wrong = replace(right, details={"basis": basis})
        found = solve(program, "highs", wrong)
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(right.value, rel=1e-12)


def test_a_point_without_a_basis_saves_iterations_and_changes_no_value():
    """Of a vertex that is feasible; a point that is not is ignored."""
    rng = np.random.default_rng(8)
    cold, warm, ignored = 0, 0, 0
    for _ in range(6):
        program = covering(rng)
        start = replace(solve(program, "highs"), details={})
        changed = replace(program, objective=program.objective * (1.0 + 0.02 * rng.normal(size=80)))
        found, separate = solve(changed, "highs", start), solve(changed, "highs")
        assert found.status is separate.status is Status.OPTIMAL
        assert found.value == pytest.approx(separate.value, rel=1e-12)
        warm, cold = warm + found.details["iterations"], cold + separate.details["iterations"]
        broken = solve(changed, "highs", replace(start, x=rng.normal(size=80)))
        assert broken.value == pytest.approx(separate.value, rel=1e-12)
        ignored += broken.details["iterations"]
    assert 2 * warm < cold == ignored, (warm, cold, ignored)
    small = replace(program, lower=program.lower * 1e-9, upper=program.upper * 1e-9, row_lower=program.row_lower * 1e-9)
    start = replace(solve(small, "highs"), details={})
    assert solve(small, "highs", start).details["iterations"] == 0


@pytest.mark.parametrize("solver", ["highs", "cp_sat"])
def test_integer_searches_start_from_a_point(solver):
    rng = np.random.default_rng(4)
    weight = rng.integers(1, 60, (3, 24)).astype(float)
    program = LinearProgram(
        rng.integers(20, 60, 24).astype(float), weight, np.full(3, -np.inf), weight.sum(axis=1) // 3, np.zeros(24),
        np.ones(24), integer=np.ones(24, dtype=bool),
    )  # fmt: skip
    best = solve(program, solver)
    again = solve(program, solver, best)
    assert again.value == best.value
    other = solve(replace(program, objective=program.objective[::-1].copy()), solver, best)
    assert other.value == solve(replace(program, objective=program.objective[::-1].copy()), solver).value


def test_sweeps_of_assignments_reach_the_values_of_every_solver():
    rng = np.random.default_rng(5)
    profits = rng.normal(size=(4, 5, 6))
    expected = [solve(matching(profit), "scipy").value for profit in profits]
    for solver in ("auto", "highs", "ortools", "networkx"):
        found = solve_many(matching(profits[0]), solver, objectives=profits)
        assert [solution.value for solution in found] == pytest.approx(expected, rel=1e-9)
    program = {"c": [-1.0, -2.0], "A_ub": [[1.0, 1.0]], "b_ub": [4.0], "bounds": (0, 3)}
    assert [solution.value for solution in solve_batch([program, program], "highs")] == [-7.0, -7.0]
    listed = solve_batch([matching(profit) for profit in profits])
    assert [solution.value for solution in listed] == pytest.approx(expected, rel=1e-12)
    assert all(solution.seconds > 0.0 for solution in listed)


def test_what_does_not_vary_or_fit_is_named():
    program, problem = covering(np.random.default_rng(6)), matching(np.eye(3))
    with pytest.raises(InvalidProblemError, match="nothing to vary"):
        solve_many(program)
    with pytest.raises(InvalidProblemError, match="Assignment has no 'row_lower'"):
        solve_many(problem, row_lower=[[1.0]])
    with pytest.raises(InvalidProblemError, match="vary together"):
        solve_many(program, objectives=np.ones((2, 80)), row_lower=np.zeros((3, 40)))
    with pytest.raises(InfeasibleError, match=r"^problem 1: "):
        solve_many(program, "highs", row_lower=[program.row_lower, program.row_lower + 1e6])
    with pytest.raises(InvalidProblemError, match="of one class"):
        solve_batch([program, problem])


def test_every_compatible_solver_copes_with_the_size():
    """CP-SAT had no answer for 60 x 60 after 60 seconds, and none for 500 documents in 40 groups."""
    problem = matching(np.random.default_rng(7).normal(size=(60, 60)))
    assert "cp_sat" in compatible_solvers(problem)
    assert solve(problem, "cp_sat", time_limit=20.0).status is Status.OPTIMAL
    large = matching(np.zeros((250, 250)))
    assert not {"cp_sat", "cvxpy:DAQP"} & set(compatible_solvers(large))
