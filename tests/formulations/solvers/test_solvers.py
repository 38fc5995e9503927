"""Every solver gives the same value on the same problem, to its stated bound; what is no problem never reaches one."""

import logging
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from planted.solvers import OneGroup
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

import formulations.solvers
from formulations import (
    CertificateError,
    FormulationError,
    InfeasibleError,
    InvalidProblemError,
    InvalidSolutionError,
    QuadraticProgram,
    SolverError,
    Status,
    UnboundedError,
    UnknownSolverError,
    UnsupportedProblemError,
    certify,
    compatible_solvers,
    function_solver,
    get_solver,
    margin_dual,
    matching,
    ranking,
    solve,
)
from formulations.bridges import restated
from formulations.bridges.widening import rounded_costs
from formulations.certificates.rational import exact_costs
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.solvers import SOLVERS, back_ends, list_solvers
from formulations.solvers.back_ends import CVXPY, QPSOLVERS, present
from formulations.solvers.cvxpy import Cvxpy, back_end_of
from formulations.solvers.highs import Highs
from formulations.solvers.ortools import OrTools
from formulations.solvers.qpsolvers import QpSolvers
from formulations.solvers.solver import SolverResult
from formulations.testing import check_problem, check_solver

INF = np.inf


def test_every_file_of_solvers_is_in_the_table():
    folder = Path(formulations.solvers.__file__).parent
    files = {path.stem for path in folder.glob("*.py")}
    shared = {"__init__", "solver", "function_solver", "batch_solution", "back_ends", "models", "cvxpy_models"}
    named_for = {place.split(":")[0].rpartition(".")[2] for place in SOLVERS.values()}
    assert files == named_for | shared
    assert set(SOLVERS) - named_for == {"block_ascent"}


def test_every_name_that_is_listed_can_be_parsed_back():
    for spec in list_solvers():
        assert get_solver(spec).spec == spec
        assert replace(get_solver(spec)) == get_solver(spec)


@dataclass(frozen=True)
class Greedy:
    """A user's own solver: the best document that is left, position by position. Not optimal."""

    accepts = (Assignment,)
    package = "numpy"
    spec = "greedy"

    def reason_unsupported(self, problem):
        return None

    def solve(self, problem, warm_start=None):
        left, order = problem.masked_profit().copy(), []
        for row in left:
            order.append(int(row.argmax()))
            left[:, order[-1]] = -INF
        return SolverResult(np.array(order))


@dataclass(frozen=True)
class Thorough(Greedy):
    """Another one: all orders."""

    spec = "thorough"

    def solve(self, problem, warm_start=None):
        from itertools import permutations

        orders = permutations(range(problem.documents), problem.positions)
        return SolverResult(
            np.array(max(orders, key=lambda order: problem.masked_profit()[range(len(order)), order].sum()))
        )


def test_a_users_own_solver_of_ten_lines_is_checked_and_used():
    assert "Assignment: forbidden" in check_solver(Thorough())
    assert solve(
        ranking([1.0, 2.0], [1.0, 0.0], discount=[1.0], position_weights=[1.0]), Thorough()
    ).order.tolist() == [1]


def test_a_solver_of_a_cost_matrix_needs_one_attribute():
    problem = matching([[2.0, np.inf, 5.0], [4.0, 1.0, 3.0]], sense="min")
    assert problem.costs.tolist() == [[2.0, INF, 5.0], [4.0, 1.0, 3.0]]
    assert solve(problem, lambda problem: linear_sum_assignment(problem.costs)).value == 3.0
    assert matching([[2.0, -INF, 0.0]]).costs.tolist() == [[-2.0, INF, 0.0]]
    for mistaken in (linear_sum_assignment, lambda problem: problem.cost, lambda problem: float(problem)):
        with pytest.raises(SolverError, match=r"crashed: .* receives this Assignment; read problem\.costs"):
            solve(problem, mistaken)
    with pytest.raises(UnknownSolverError, match=r"Pass function_solver\(f, accepts=\.\.\.\)"):
        solve(problem, type("Own", (), {"solve": staticmethod(linear_sum_assignment)})())
    with pytest.raises(SolverError, match=r"this LinearProgram; read problem\.program\.objective"):
        solve(restated(problem, LinearProgram), lambda program: float(program))


def test_a_solver_of_integers_is_checked_on_the_instances_that_it_accepts():
    def integers(problem):
        assert not (problem.profit % 1).any()
        return linear_sum_assignment(problem.costs)

    reason = function_solver(
        integers, accepts=Assignment, rejects=lambda problem: "integers only" if (problem.profit % 1).any() else None
    )
    checked = check_solver(reason)
    assert "Assignment: tied" in checked
    assert "Assignment: random" not in checked


def test_a_solver_that_is_not_optimal_does_not_pass():
    with pytest.raises(AssertionError, match=r"'greedy' on .* the optimum is"):
        check_solver(Greedy())
    solution = solve(matching([[2.0, 1.9], [2.0, 0.0]]), Greedy())
    assert solution.status is Status.BOUNDED_GAP
    assert solution.value == 2.0
    assert solution.bound >= 3.9 - 1e-15
    certify(solution.problem, solution)


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        ([0, 0], r"document \(column\) 0 at position \(row\) 1 is also at an earlier one$"),
        ([0, 7], r"7 at position \(row\) 1 is not one of 0 to 1$"),
        ([0], "must be 2 integers"),
        ([0.0, 1.0], "must be 2 integers"),
        ([-1, 0], r"-1 at position \(row\) 0 is not one of 0 to 1$"),
        ([1, 0], "a document is at a position that is forbidden for it$"),
    ],
)
def test_an_answer_that_is_no_order_is_a_failure(answer, flaw):
    @dataclass(frozen=True)
    class Broken(Greedy):
        def solve(self, problem, warm_start=None):
            return SolverResult(np.array(answer))

    with pytest.raises(SolverError, match=f"infeasible or malformed point .*{flaw}"):
        solve(matching(np.eye(2), allowed=[[True, True], [False, True]]), Broken())


def test_check_problem_compares_all_solvers_that_reach_it():
    found = check_problem(ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0]))
    assert set(found) == set(compatible_solvers(ranking([1.0], [1.0], discount=[1.0], position_weights=[1.0])))
    assert {solution.order.tolist().__repr__() for solution in found.values()} == {"[1, 2]"}


@pytest.mark.parametrize(
    "problem",
    [
        matching([[1.0, 2.0, 0.0], [1.0, 0.0, 0.0]], allowed=[[True, False, True], [True, True, True]]),
        restated(matching(np.eye(3)), MinCostFlow),
        margin_dual([[1.0, 0.0], [-1.0, 0.5]], [1.0, 0.3], lam=0.5),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_check_problem_passes_what_the_gallery_states(problem):
    fast = [spec for spec in compatible_solvers(problem) if not spec.startswith("cvxpy:")]
    assert set(check_problem(problem, solvers=fast)) == set(fast)


def test_check_problem_catches_a_bound_that_is_too_good(monkeypatch):
    honest = Assignment.bound
    monkeypatch.setattr(Assignment, "bound", lambda self, y: honest(self, y) - 0.5)
    with pytest.raises(AssertionError, match="beats the bound"):
        check_problem(matching(np.eye(3)), solvers=["scipy", "ortools"])


def test_a_form_that_no_solver_knows_says_so():
    class Unknown(Assignment):
        pass

    with pytest.raises(UnsupportedProblemError, match="no installed solver accepts this Unknown"):
        solve(Unknown(np.eye(3)))


# What never reaches a solver


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: ranking([np.nan, 1.0], [1.0, 0.0], discount=[1.0], position_weights=[1.0]), r"scores\[0\] is nan"),
        (lambda: ranking([1.0, 2.0], [1.0, np.inf], discount=[1.0], position_weights=[1.0]), r"gain\[1\] is inf"),
        (lambda: ranking([1e140, 1.0], [1.0, 0.0], discount=[1.0], position_weights=[1e140]), "Rescale"),
        (lambda: ranking([1.0, 2.0], [1.0], discount=[1.0], position_weights=[1.0]), "one entry a document"),
        (lambda: ranking([1.0, 2.0], [1.0, 0.0], discount=[1.0, 2.0], position_weights=[1.0]), "must not increase"),
        (lambda: ranking([], [], discount=[1.0], position_weights=[1.0]), "one document"),
        (lambda: ranking(["a"], [1.0], discount=[1.0], position_weights=[1.0]), "read as numbers|could not convert"),
        (lambda: matching([[1.0, np.nan]]), r"profit\[0, 1\] is nan; write a finite profit, or -inf to forbid"),
        (lambda: matching([[1.0, np.inf]]), r"profit\[0, 1\] is inf; write a finite profit, or -inf to forbid"),
        (lambda: matching([[1.0, np.nan]], sense="min"), r"cost\[0, 1\] is nan; write a finite cost, or inf to forbid"),
        (lambda: matching([[1.0, -np.inf]], sense="min"), r"cost\[0, 1\] is -inf; write a finite cost, or inf"),
        (lambda: matching([[1.0]], sense="minimize"), "sense must be 'max' for profits or 'min' for costs; got"),
        (lambda: matching([[1.0, 1e300]]), "magnitude"),
        (lambda: matching([1.0, 2.0]), "dimension"),
        (lambda: matching([[1.0]], allowed=[[1.0]]), "boolean"),
        (lambda: margin_dual([[np.nan]], [1.0], lam=1.0), r"slopes\[0, 0\] is nan"),
        (lambda: margin_dual([[1.0]], [1.0], lam=0.0), "lam"),
        (lambda: margin_dual([[1.0]], [1.0, 2.0], lam=1.0), "an entry a plane"),
        (lambda: margin_dual([[1.0]], [1.0], lam=1.0, groups=[1], group_mass=[1.0]), "groups run from 0"),
        (lambda: program([1.0], [[np.inf]], [0.0], [1.0], [0.0], [1.0]), "matrix entries"),
        (lambda: program([1.0], [[1.0]], [np.nan], [1.0], [0.0], [1.0]), "row_lower"),
    ],
)
def test_numbers_that_state_no_problem_are_refused(wrong, error):
    with pytest.raises((InvalidProblemError, ValueError), match=error):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: matching([[-np.inf, 1.0], [-np.inf, 2.0]]), r"positions \[0, 1\] share only 1 allowed"),
        (lambda: matching(np.zeros((3, 2))), "3 positions cannot be filled by 2 documents"),
        (
            lambda: matching(np.zeros((3, 3)), allowed=[[True, False, False]] * 2 + [[True] * 3]),
            r"positions \[0, 1\] share only 1 allowed document",
        ),
        (lambda: program([1.0], [[1.0]], [2.0], [1.0], [0.0], [1.0]), r"row\[0\] must be at least 2"),
        (lambda: network([0], [1], [1], [1.0], [1, 0]), "must sum to 0; got 1"),
        (lambda: network([0], [1], [-1], [1.0], [0, 0]), "negative capacity"),
    ],
)
def test_problems_that_are_empty_say_why(wrong, error):
    with pytest.raises(InfeasibleError, match=error):
        wrong()


def program(objective, rows, row_lower, row_upper, lower, upper, **more):
    limits = (np.array(part, dtype=float) for part in (row_lower, row_upper, lower, upper))
    return LinearProgram(np.array(objective), csr_array(np.array(rows, dtype=float)), *limits, **more)


def network(tail, head, capacity, cost, supply):
    return MinCostFlow(*(np.array(part) for part in (tail, head, capacity)), np.array(cost), np.array(supply))


# Statuses


LINEAR = [spec for spec in compatible_solvers(LinearProgram) if spec not in ("cvxpy:PDLP", "cp_sat")]
"""PDLP does not tell; CP-SAT takes whole numbers only."""


@pytest.mark.parametrize("spec", LINEAR)
def test_infeasible_and_unbounded_programs_are_told_apart(spec):
    impossible = program([1.0, 1.0], [[1.0, 1.0]], [3.0], [INF], [0, 0], [1, 1])
    endless = program([1.0, 1.0], [[1.0, -1.0]], [0.0], [0.0], [0, 0], [INF, INF])
    assert outcome(impossible, spec) in (InfeasibleError, SolverError, Status.INACCURATE)
    assert outcome(endless, spec) in (UnboundedError, InfeasibleError, SolverError, Status.FEASIBLE, Status.INACCURATE)


@pytest.mark.parametrize("spec", [spec for spec in compatible_solvers(QuadraticProgram) if "qpsolvers" in spec])
def test_every_back_end_of_qpsolvers_says_that_no_point_exists(spec):
    """qpsolvers keeps the status of some back ends to itself: the rows are then solved as a linear program."""
    rows, free = csr_array(np.array([[1.0, 1.0], [1.0, 1.0]])), np.full(2, INF)
    statement = (csr_array(np.eye(2)), np.zeros(2), rows)
    with pytest.raises(InfeasibleError, match=r"Conflict: row\[0\], row\[1\]$"):
        solve(QuadraticProgram(*statement, np.array([-INF, 3.0]), np.array([1.0, INF]), -free, free), spec)


def outcome(problem, spec):
    """The status of the solution, or the type of the error."""
    try:
        return solve(problem, spec).status
    except FormulationError as error:
        return type(error)


def test_highs_names_the_conflict():
    wrong = program([1.0, 1.0], [[1.0, 1.0], [1.0, 0.0]], [3.0, 0.0], [INF, 5.0], [0, 0], [1, 1])
    with pytest.raises(InfeasibleError, match=r"Conflict: row\[0\], limits of x\[0\], limits of x\[1\]$"):
        solve(wrong, "highs")


def test_the_conflict_has_only_limits_that_are_needed():
    rows = [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]
    for low in (-INF, 0.0):  # c1 + c2 + c3 conflict whatever the variables' limits are
        with pytest.raises(InfeasibleError, match=r"Conflict: row\[0\], row\[1\], row\[2\]$"):
            solve(program([1.0, 2.0], rows, [5, -INF, -INF, -INF], [INF, 2, 2, 10], [low, low], [INF, INF]), "highs")


def test_the_conflict_of_an_integer_program_whose_relaxation_is_feasible_is_found():
    rows, integer = [[2.0, 2.0], [1.0, 0.0], [1.0, 1.0]], np.ones(2, dtype=bool)
    odd = program([1.0, 1.0], rows, [3, 0, -9], [3, 5, 9], [0, 0], [9, 9], integer=integer)  # 2 x + 2 y = 3
    with pytest.raises(InfeasibleError, match=r"Conflict for integers: row\[0\]$"):
        solve(odd, "highs")


def test_a_point_that_breaks_an_integer_program_is_an_error_that_names_the_row():
    rows, integer = [[1.0, 1.0], [1.0, -1e6]], np.array([True, False])
    stated = program([1.0, 1.0], rows, [2, -INF], [INF, 0], [0, 0], [9, 5], integer=integer)
    for point, words in (
        ([0.0, 0.0], r"row\[0\] is 0 and must be at least 2\.$"),
        ([3.0, 0.0], r"row\[1\] is 3 and must be at most 0\. Make its large coefficient \(big M\) smaller"),
        ([3.0, 6.0], r"x\[1\] is 6 and must be at most 5\.$"),
        ([1.5, 1.0], r"x\[0\] is 1\.5 and must be an integer\.$"),
    ):
        with pytest.raises(InvalidSolutionError, match=words):
            solve(stated, lambda _, point=point: np.array(point))


def test_a_function_is_a_solver_of_the_problem():
    profit = np.eye(3)
    solution = solve(matching(profit), lambda problem: problem.profit.argmax(axis=1))
    assert (solution.status, solution.value) == (Status.OPTIMAL, 3.0)
    with pytest.raises(UnknownSolverError, match="such as Assignment or LinearProgram; got none"):
        function_solver(lambda problem: problem)


def test_a_refusal_names_the_problem_once_and_its_variable():
    mixed = program([1.0] * 3, [[1.0] * 3], [1], [3], [0] * 3, [1] * 3, integer=np.array([True, False, False]))
    with pytest.raises(UnsupportedProblemError, match=r"variables: it accepts integer .*, and 2 .* continuous"):
        solve(mixed, "cp_sat")
    endless = replace(mixed, integer=np.ones(3, dtype=bool), upper=np.array([1, INF, 1]))
    with pytest.raises(UnsupportedProblemError, match=r"variable x\[1\] has no lower or upper limit"):
        solve(endless, "cp_sat")


def test_solvers_that_are_much_too_slow_for_the_size_are_not_listed():
    small, large = (matching(np.random.default_rng(0).random((n, n))) for n in (5, 20))
    assert set(compatible_solvers(small)) - set(compatible_solvers(large)) <= {"cvxpy:DAQP"}
    assert "cvxpy:DAQP" not in compatible_solvers(large)


def test_scipy_through_cvxpy_has_a_time_limit():
    rng = np.random.default_rng(0)
    weights = rng.integers(10, 99, (30, 300)).astype(float)
    hard = program(rng.random(300), weights, [-INF] * 30, weights.sum(axis=1) // 2, [0] * 300, [1] * 300)
    assert solve(hard, "cvxpy:SCIPY", time_limit=60.0).status is Status.OPTIMAL
    hard = replace(hard, integer=np.ones(300, dtype=bool))
    assert solve(hard, "cvxpy:SCIPY", time_limit=1.0).reported_status == "TIME_LIMIT"


def test_limits_of_integer_rows_are_rounded_inwards():
    rows, integer = [[1.0, 1.0], [1.0, 0.5], [1.0, 1.0]], np.array([True, True])
    stated = program([1, 1], rows, [-0.5, -0.5, -INF], [3.5, 2.5, INF], [0.2, -INF], [1.7, 4], integer=integer)
    rounded = stated.with_integer_limits()
    assert (rounded.row_lower.tolist(), rounded.row_upper.tolist()) == ([0, -0.5, -INF], [3, 2.5, INF])
    assert (rounded.lower.tolist(), rounded.upper.tolist()) == ([1, -INF], [1, 4])
    real = replace(stated, integer=None)
    assert real.with_integer_limits() is real


def test_the_bound_of_integer_costs_is_a_multiple_of_their_divisor():
    row, integer = [[5.0, 4.0, 3.0]], np.ones(3, dtype=bool)
    for sign in (1.0, -1.0):
        knapsack = program(sign * np.array([18.0, 16.0, 12.0]), row, [-INF], [10], [0] * 3, [1] * 3, integer=integer)
        knapsack = replace(knapsack, is_maximization=sign > 0)
        solution = solve(knapsack, "highs")
        assert (solution.value, solution.bound) == (sign * 34.0, sign * 38.0)  # of the relaxation: 38.8
        certify(knapsack, solution)
    real = replace(knapsack, integer=np.array([True, True, False]))
    assert solve(real, "highs").bound != np.round(solve(real, "highs").bound)


def test_the_bound_of_a_weak_assignment_is_the_optimum():
    profit = np.random.default_rng(0).integers(-99, 99, (12, 15)).astype(float)
    problem = matching(profit)
    weak = solve(problem, function_solver(lambda p: np.arange(p.positions), accepts=Assignment))
    assert weak.value < weak.bound == solve(problem).value
    assert weak.status is Status.BOUNDED_GAP
    assert "by SciPy" in weak.message
    certify(problem, weak)


def test_a_denied_assignment_is_the_solvers_failure():
    @dataclass(frozen=True)
    class Denying(Greedy):
        def solve(self, problem, warm_start=None):
            raise InfeasibleError("no order")

    with pytest.raises(SolverError, match="every Assignment is solvable"):
        solve(matching(np.eye(2)), Denying())


def test_a_point_that_breaks_a_row_is_not_called_feasible():
    @dataclass(frozen=True)
    class Sloppy(Greedy):
        accepts = (LinearProgram,)

        def solve(self, problem, warm_start=None):
            return SolverResult(np.array([1.0, 1.0]))

    solution = solve(program([1.0, 1.0], [[1.0, 1.0]], [0.0], [1.5], [0, 0], [1, 1]), Sloppy())
    assert solution.status is Status.INACCURATE
    assert solution.violation == 0.5


def test_auto_replaces_a_solver_that_failed_and_says_so(monkeypatch, caplog):
    monkeypatch.setitem(formulations.solvers.AUTOMATIC, "Assignment", ("networkx", "scipy"))
    monkeypatch.setattr("networkx.network_simplex", lambda graph: (0, {0: {2: {0: 0}}}))
    with caplog.at_level(logging.WARNING, logger="formulations"):
        solution = solve(matching(np.eye(3)))
    assert solution.solver == "scipy"
    assert "networkx failed, the next solver is tried" in caplog.text
    monkeypatch.setitem(formulations.solvers.AUTOMATIC, "Assignment", ("networkx",))
    with pytest.raises(SolverError, match="every solver failed"):
        solve(matching(np.eye(3)))


def test_a_forced_solver_is_never_replaced():
    with pytest.raises(UnsupportedProblemError, match="accepts GroupedSimplexQP"):
        solve(matching(np.eye(2)), "active_set")
    with pytest.raises(UnsupportedProblemError, match="one group"):
        solve(margin_dual(np.eye(2), [1.0, 1.0], lam=1.0, groups=[0, 1], group_mass=[0.5, 0.5]), OneGroup())


# Names and options


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("hihgs", "did you mean 'highs'"),
        ("scipy:fast", "has no variants"),
        ("cvxpy:NOTHING", "no installed solver"),
        ("qpsolvers:nothing", "no installed solver"),
        ("ortools:walk", "one variant"),
        ("clarabel", "did you mean 'cvxpy:CLARABEL'"),
        ("HIGHS", "did you mean 'highs'"),
        ("scip", "did you mean 'cvxpy:SCIP'"),
        ("pyscipopt", "did you mean 'cvxpy:SCIP'"),
        ("clarabell", "did you mean 'cvxpy:CLARABEL'"),
        ("scipi", "did you mean 'scipy'"),
        ("cvxpy:CLARABLE", "did you mean 'CLARABEL'"),
    ],
)
def test_unknown_names_are_refused(spec, error):
    with pytest.raises(UnknownSolverError, match=error):
        get_solver(spec)


@pytest.mark.parametrize(
    "solver",
    [
        *(QpSolvers(backend, options={"nonsense": 1}) for backend in ("clarabel", "osqp", "daqp", "scs")),
        *(Cvxpy(backend, options={"nonsense": 1}) for backend in ("CLARABEL", "OSQP", "SCS", "PIQP")),
        Cvxpy("HIGHS", options={"nonsense": 1}),
    ],
    ids=lambda solver: solver.spec,
)
def test_unknown_options_are_refused_when_solving(solver):
    with pytest.raises(UnknownSolverError, match="refuses the options"):
        solve(margin_dual([[1.0]], [1.0], lam=1.0), solver)


@pytest.mark.parametrize(
    "make",
    [
        lambda: QpSolvers("piqp", options={"nonsense": 1}),
        lambda: QpSolvers("highs", options={"nonsense": 1}),
        lambda: QpSolvers("piqp", time_limit=1.0),
        lambda: Cvxpy("GLOP", options={"nonsense": 1}),
        lambda: Cvxpy("DAQP", options={"nonsense": 1}),
        lambda: Cvxpy("PIQP", time_limit=1.0),
        lambda: Highs(method="magic"),
    ],
)
def test_options_that_a_back_end_would_ignore_are_refused_at_once(make):
    with pytest.raises(UnknownSolverError):
        make()


@pytest.mark.parametrize("backend", ["clarabel", "daqp", "osqp", "scs"])
def test_time_limits_reach_the_back_end(backend):
    problem = margin_dual(np.eye(2), [1.0, 0.5], lam=1.0)
    assert solve(problem, QpSolvers(backend, time_limit=10.0)).gap < 1e-5


# HiGHS: what it would do silently


@pytest.mark.parametrize("method", ["choose", "simplex", "ipm", "pdlp"])
def test_highs_methods_agree(method):
    problem = matching(np.random.default_rng(3).normal(size=(5, 7)))
    assert solve(problem, Highs(method=method, threads=1)).value == pytest.approx(solve(problem, "scipy").value)


def test_coefficients_that_highs_would_drop_are_rescaled_or_refused():
    tiny = program([1.0, 2.0], [[1e-12, 2e-12]], [-INF], [2e-12], [0, 0], [5, 5])
    assert solve(tiny, "highs").value == pytest.approx(2.0)
    far = program([1.0, 2.0], [[1.0, 1e-10]], [-INF], [1.0], [0, 0], [5, 5])
    assert solve(far, "highs").value == pytest.approx(11.0 - 5e-10, rel=1e-15)
    with pytest.raises(UnsupportedProblemError, match="drops coefficients"):
        solve(program([1.0, 2.0], [[1e15, 1e-10]], [-INF], [1.0], [0, 0], [5, 5]), "highs")
    with pytest.raises(UnsupportedProblemError, match="for infinite"):
        solve(program([1.0], [[1.0]], [-INF], [1e21], [0], [INF]), "highs")


def test_auto_names_a_solver_that_it_does_not_try():
    endless = program([1.0, 1.0], [[1.0, 0.5]], [-INF], [1e21], [0, 0], [3, 3], integer=[True, False])
    with pytest.raises(UnsupportedProblemError, match="no solver that 'auto' tries") as refused:
        solve(endless)
    named = str(refused.value).partition("such as '")[2].partition("'")[0]
    assert named in compatible_solvers(endless)
    assert solve(endless, named).value == pytest.approx(6.0)


def test_highs_takes_costs_of_any_size():
    problem = program([1e40, 2e40], [[1.0, 1.0]], [-INF], [1.0], [0, 0], [1, 1])
    solution = solve(problem, "highs")
    assert solution.value == 2e40
    assert solution.status is Status.OPTIMAL


def test_highs_bounds_programs_with_integers_by_their_relaxation():
    whole = program(
        [5.0, 4.0, 3.0], [[2, 3, 1], [4, 1, 2], [3, 4, 2]], [-INF] * 3, [5, 11, 8.5], [0] * 3, [10] * 3,
        integer=np.ones(3, dtype=bool),
    )  # fmt: skip
    problem = replace(whole, objective=np.array([2.5, 2.0, 1.5]))
    solution = solve(problem, "highs")
    relaxed = solve(replace(problem, integer=None), "highs")
    assert solution.value == 6.5
    assert solution.details["reported_bound"] == pytest.approx(6.5)
    assert solution.bound == pytest.approx(relaxed.value)
    assert solution.status is Status.BOUNDED_GAP
    certify(problem, solution, exact=True)
    rounded = solve(whole, "highs")  # twice the costs, which are integers: 13.5 is rounded to 13
    assert (rounded.value, rounded.bound, rounded.status) == (13.0, 13.0, Status.OPTIMAL)
    certify(whole, rounded, exact=True)


def test_a_time_limit_returns_the_point_found_or_raises():
    random = np.random.default_rng(0)
    rows = random.integers(0, 100, (4, 30)).astype(float)  # market split: hard to prove, easy to satisfy
    slack = np.hstack([rows, np.eye(4), -np.eye(4)])
    half = np.floor(rows.sum(axis=1) / 2)
    whole = np.arange(38) < 30
    hard = program(-(~whole).astype(float), slack, half, half, np.zeros(38), np.where(whole, 1.0, INF), integer=whole)
    with pytest.raises(SolverError, match="Time limit"):
        solve(hard, Highs(time_limit=1e-9))
    start = hard.solution(np.concatenate([np.zeros(30), half, np.zeros(4)]))
    stopped = solve(hard, Highs(time_limit=0.3), warm_start=start)
    assert "limit" in stopped.message
    assert start.value <= stopped.value <= stopped.bound
    assert stopped.status is Status.BOUNDED_GAP


# Whole costs


def test_rounded_costs_leave_the_bound_they_report():
    random = np.random.default_rng(5)
    for scale in (1e-12, 1.0, 1e12):
        profit = random.normal(size=(12, 12)) * scale
        problem = matching(profit)
        for solver in (OrTools(), OrTools(flow=True)):
            solution = solve(problem, solver)
            assert solution.gap <= solution.details["rounding_bound"] + problem.rounding
            assert solution.details["rounding_bound"] <= 1e-10 * scale
    assert rounded_costs(np.zeros(3), 3, 3, shift=True).left == 0.0
    assert exact_costs(np.array([0.1, -3.0, 2.0**-60])).left == 0.0


def test_exact_costs_are_exact():
    costs = np.array([0.1, -3.0, 2.0**-60, 1e20])
    found = exact_costs(costs)
    assert [value / 2**found.exponent for value in found.values] == costs.tolist()


# Real queries


@pytest.fixture(scope="module")
def queries(data_folder):
    """Features, grades and rows of the three smallest queries of a part of OHSUMED."""
    path = data_folder / "letor3-ohsumed" / "Feature-min" / "S1.txt.gz"
    features, grades, query = load_svmlight_file(str(path), query_id=True, zero_based=False)
    small = sorted(np.unique(query), key=lambda q: (query == q).sum())[:3]
    return [(features[query == q].toarray(), grades[query == q]) for q in small]


REAL = ["exact", "scipy", "ortools", "ortools:flow", "networkx", "highs", "cvxpy:CLARABEL", "cvxpy:HIGHS"]


@pytest.mark.every(5)
@pytest.mark.parametrize("spec", REAL)
def test_real_queries_have_one_value(queries, spec):
    for features, grades in queries:
        n = grades.size
        discount = 1 / np.log2(np.arange(2, n + 2))
        for w in (np.zeros(features.shape[1]), np.ones(features.shape[1]), np.eye(features.shape[1])[3]):
            problem = ranking(
                features @ w, 2**grades - 1, discount=discount, position_weights=np.arange(1, n + 1) ** -0.5
            )
            solution = solve(problem, spec)
            assert solution.status is Status.OPTIMAL
            assert solution.value == pytest.approx(solve(problem, "exact").value, rel=1e-12, abs=problem.rounding)


def test_refuted_is_told_from_unsupported():
    assert not issubclass(CertificateError, UnsupportedProblemError)
    assert issubclass(InfeasibleError, ValueError)
    assert restated(matching(np.eye(2)), LinearProgram).objective.size == 4
    with pytest.raises(UnsupportedProblemError, match="cannot be restated"):
        restated(margin_dual([[1.0]], [1.0], lam=1.0), LinearProgram)


@pytest.mark.parametrize("answer", [None, SolverResult(None), RuntimeError("segmentation fault"), SystemExit(3)])
def test_a_solver_that_dies_or_answers_nothing_has_failed(answer):
    """Whatever a solver of the user's own does, the caller sees SolverError."""

    @dataclass(frozen=True)
    class Dying:
        accepts = (Assignment,)
        package = ""
        spec = "dying"

        def reason_unsupported(self, problem):
            return None

        def solve(self, problem, warm_start=None):
            if isinstance(answer, BaseException):
                raise answer
            return answer

    with pytest.raises(SolverError, match="dying"):
        solve(matching(np.eye(2)), Dying())


# cvxpy, OR-Tools and HiGHS load into one process in every order, and solve there.


LOAD = {
    "cvxpy": "import cvxpy",
    # Not ortools.linear_solver.pywraplp: its SWIG module warns while it loads, and dies where warnings are errors.
    "ortools": "from ortools.graph.python import linear_sum_assignment, min_cost_flow",
    "highspy": "import highspy",
    "numba": "import numba",
    "sklearn": "import sklearn.utils.validation",
}

SOLVE = """
assignment = linear_sum_assignment.SimpleLinearSumAssignment()
assignment.add_arcs_with_cost([0, 0, 1, 1], [0, 1, 0, 1], [5, 1, 2, 9])
assert assignment.solve() == assignment.OPTIMAL and assignment.optimal_cost() == 3

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
x = highs.addVariable(lb=2.0, obj=1.0)
assert highs.run() == highspy.HighsStatus.kOk and highs.getObjectiveValue() == 2.0

y = cvxpy.Variable(2)
cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(y)), [y >= 1]).solve(solver="HIGHS")
assert abs(y.value.sum() - 2.0) < 1e-6
print("solved")
"""

THREE = list(permutations(("cvxpy", "ortools", "highspy")))
BEFORE = (("numba", "sklearn"), ("sklearn", "numba"))
ORDERS = THREE + [(*BEFORE[i % 2], *order) for i, order in enumerate(THREE)]
FEW = [("ortools", "highspy", "cvxpy"), ("sklearn", "numba", "cvxpy", "highspy", "ortools")]
"""Each of the three comes before each other in one of these; the rest are a study."""
assert set(FEW) < set(ORDERS)


def run(order):
    """Load in this order and solve with all three, in a fresh interpreter."""
    script = "\n".join([*(LOAD[package] for package in order), SOLVE])
    command = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.study
@pytest.mark.parametrize(
    "order", [order if order in FEW else pytest.param(order, marks=pytest.mark.study) for order in ORDERS], ids="-".join
)
def test_all_three_load_and_solve(order):
    done = run(order)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["solved"]


# What is known of back ends without importing them agrees with what cvxpy and qpsolvers say themselves.


LISTED = """
import sys, formulations
from formulations.problems.simplex_qp import GroupedSimplexQP
formulations.compatible_solvers(formulations.matching([[1.0, 2.0]])), formulations.compatible_solvers(GroupedSimplexQP)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_installed_back_ends_are_those_that_the_packages_find():
    import cvxpy
    import qpsolvers

    assert set(present(CVXPY)) == set(cvxpy.installed_solvers()) & set(CVXPY)
    assert set(present(QPSOLVERS)) == set(qpsolvers.available_solvers) & set(QPSOLVERS)


def test_the_table_claims_no_more_than_cvxpy(monkeypatch):
    listed = {name: CVXPY[name] for name in present(CVXPY)}
    monkeypatch.setattr("formulations.solvers.cvxpy.CVXPY", {})
    for name, entry in listed.items():
        own = back_end_of(name)
        assert entry.quadratic <= own.quadratic
        # Of quadratic programs alone cvxpy lists back ends without a word on whole numbers.
        assert entry.integer <= own.integer
        assert Cvxpy(name).accepts == Cvxpy(name).accepts


def test_listing_solvers_imports_no_solver_package():
    loaded = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True).stdout.split()
    assert not {"cvxpy", "qpsolvers", "highspy", "ortools", "networkx", *(e.module for e in CVXPY.values())} & (
        set(loaded) - {"scipy"}
    )


@pytest.mark.parametrize("name", ["gurobi", "GUROBI", "cvxpy:gurobi"])
def test_a_back_end_that_is_not_installed_names_what_to_install(name, monkeypatch):
    monkeypatch.setattr(back_ends, "_importable", lambda module: module not in ("gurobipy", "mosek"))
    with pytest.raises(UnknownSolverError, match="not installed: pip install gurobipy"):
        get_solver(name)
    with pytest.raises(UnknownSolverError, match="pip install mosek"):
        get_solver("qpsolvers:mosek")


# A user's own cvxpy problem is solved and judged; linear and quadratic ones are in test_models.py.


def test_a_cone_program_of_cvxpy_is_solved_and_judged():
    import cvxpy

    w = cvxpy.Variable(3, nonneg=True, name="w")
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(w - np.array([1.0, 2.0, -1.0]))), [cvxpy.sum(w) <= 2])
    for solver in ("cvxpy:CLARABEL", "cvxpy:SCS", "auto"):
        solution = solve(problem, solver)
        assert solution.value == pytest.approx(np.sqrt(1.5), abs=1e-6)
        assert solution.bound == -np.inf
        assert solution.status is Status.FEASIBLE
        np.testing.assert_allclose(solution.primal["w"], [0.5, 1.5, 0.0], atol=1e-5)
        certify(problem, solution)
    assert str(solution.problem) == str(problem)
    assert {"cvxpy:CLARABEL", "cvxpy:SCS"} == set(compatible_solvers(problem)) - {"cvxpy:ECOS", "cvxpy:MOSEK"}
    with pytest.raises(UnsupportedProblemError, match="'highs' accepts LinearProgram"):
        solve(problem, "highs")
    with pytest.raises(UnsupportedProblemError, match="cvxpy refuses it"):
        solve(problem, "cvxpy:GLOP")
    whole = cvxpy.Variable(2, integer=True)
    squares = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(whole - 0.3)), [cvxpy.sum(whole) >= 1])
    assert not {"cvxpy:CLARABEL", "cvxpy:HIGHS", "cvxpy:OSQP"} & set(compatible_solvers(squares))


def test_a_semidefinite_program_of_cvxpy_goes_to_a_solver_that_is_accurate_enough():
    """min trace P, P semidefinite, P_01 = 1: cvxpy's own choice breaks a constraint by 1e-5."""
    import cvxpy

    matrix = cvxpy.Variable((2, 2), PSD=True)
    solution = solve(cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(matrix)), [matrix[0, 1] == 1]))
    assert solution.value == pytest.approx(2.0, abs=1e-5)


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


AFTERWARDS = """
import signal
import numpy as np
from scipy.sparse import csr_array
from formulations import FormulationError, LinearProgram, compatible_solvers, solve

one = csr_array([[1.0, 1.0]])
for integer in (None, [True, True]):
    problem = LinearProgram([1.0, 2.0], one, [1.0], [np.inf], [0.0, 0.0], [5.0, 5.0], False, integer)
    for solver in compatible_solvers(problem):
        try:
            solve(problem, solver, time_limit=20.0)
        except FormulationError:
            pass
        try:
            signal.raise_signal(signal.SIGINT)
            print("ignored after", solver)
        except KeyboardInterrupt:
            pass
print("done")
"""


def test_ctrl_c_is_an_exception_after_every_solver():
    """OR-Tools leaves the handler of the operating system, by which Ctrl-C would end the process."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AFTERWARDS], capture_output=True, text=True, timeout=300
    )
    assert (ran.returncode, ran.stdout.split()) == (0, ["done"]), ran.stdout + ran.stderr


def interval(low, **changes):
    """min x, at least `low` by one row and at most 1 by another, 0 <= x <= 5."""
    sides = [-np.inf, low], [1.0, np.inf]
    return LinearProgram([1.0], [[1.0], [1.0]], *sides, [0.0], [5.0], is_maximization=False, **changes)


@pytest.mark.parametrize("solver", ["highs", "cvxpy:CLARABEL", "auto"])
def test_a_conflict_below_the_tolerance_is_no_false_verdict(solver):
    """x <= 1 and x >= 1 + 1e-7: a point within the tolerance does not refute "infeasible"."""
    with pytest.raises(InfeasibleError, match=r"row\[0\], row\[1\]"):
        solve(interval(1.0 + 1e-7), solver)


def test_a_value_that_gains_by_a_violation_is_not_optimal():
    solution = solve(interval(1.0 + 1e-7), "cvxpy:GLOP")
    assert solution.value < solution.bound
    assert solution.status is Status.INACCURATE
    assert solve(interval(1.0), "cvxpy:GLOP").status is Status.OPTIMAL


@pytest.mark.parametrize("solver", ["highs", "cvxpy:CLARABEL", "cvxpy:PIQP", "cvxpy:SCS", "auto"])
def test_an_infeasible_program_is_not_called_unbounded(solver):
    """min -x, x >= 0, with y at least 2 and at most 1: solvers may report either."""
    sides = [2.0, -np.inf], [np.inf, 1.0]
    program = LinearProgram(
        [-1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], *sides, [0.0, 0.0], [np.inf, np.inf], is_maximization=False
    )
    with pytest.raises(InfeasibleError, match=r"row\[0\], row\[1\]"):
        solve(program, solver)
    free = replace(program, row_lower=np.array([0.0, -np.inf]))
    with pytest.raises(UnboundedError):
        solve(free, solver)


def test_limits_of_variables_bound_what_a_big_m_hides():
    """min -x + y / 1000, x <= 1e7 y, x <= 10: the relaxation's duals prove -635, the limits -10."""
    program = LinearProgram(
        [-1.0, 0.001], [[1.0, -1e7]], [-np.inf], [0.0], [0.0, 0.0], [10.0, 1.0], is_maximization=False,
        integer=[False, True],
    )  # fmt: skip
    for solver in ("highs", "auto"):
        solution = solve(program, solver)
        assert solution.value == pytest.approx(-9.999)
        assert -10.0 <= solution.bound <= solution.value


def test_versions_name_the_back_end():
    solution = solve(interval(0.5), "cvxpy:CLARABEL")
    assert re.fullmatch(r"1\.\d+\.\d+, clarabel \d+\.\d+\.\d+", solution.version)


def test_osqp_is_refused_where_pulp_was_imported_before_it():
    """It ends the process: a fault of the two packages."""
    code = (
        "import pulp; from formulations import compatible_solvers, LinearProgram\n"
        "p = LinearProgram([1.0], [[1.0]], [0.0], [1.0], [0.0], [1.0])\n"
        "print('cvxpy:OSQP' in compatible_solvers(p), 'cvxpy:CLARABEL' in compatible_solvers(p))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False True\n", done.stderr
    chosen = (
        "import pulp, cvxpy as cp; from formulations import solve\n"
        "x = cp.Variable(2); P = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= 1])\n"
        "print(round(solve(P, 'cvxpy').value, 6))"
    )
    done = subprocess.run([sys.executable, "-c", chosen], capture_output=True, text=True, check=False)
    assert done.stdout == "2.0\n", done.stderr
    done = subprocess.run([sys.executable, "-c", "import osqp; " + code], capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.parametrize("solver", ["qpsolvers:clarabel", "qpsolvers:scs", "cvxpy:CLARABEL", "auto"])
def test_unbounded_quadratic_programs_are_called_so(solver):
    """min y_0^2 - y_1: qpsolvers raises an error of its own."""
    program = QuadraticProgram(
        np.diag([2.0, 0.0]), [0.0, -1.0], np.zeros((1, 2)), [0.0], [0.0], np.full(2, -np.inf), np.full(2, np.inf)
    )
    with pytest.raises(UnboundedError):
        solve(program, solver)
