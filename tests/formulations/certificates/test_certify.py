"""certify() believes nothing: true answers pass, planted lies are refuted, exact gaps are exactly 0."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from formulations import (
    CertificateError,
    SolverError,
    Status,
    UnsupportedProblemError,
    certify,
    margin_dual,
    matching,
    ranking,
    solve,
)
from formulations.bridges import restated
from formulations.bridges.crossover import flow_on_support, order_on_support
from formulations.problems.assignment import shortest_path_prices
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.testing.instances import FORMS, instances

EVERYTHING = [(form, name, problem) for form in FORMS for name, problem, _ in instances(form)]
IDS = [f"{form.__name__}-{name}" for form, name, _ in EVERYTHING]


@pytest.mark.parametrize(("form", "name", "problem"), EVERYTHING, ids=IDS)
def test_true_answers_are_certified(form, name, problem):
    solution = solve(problem)
    for exact in (False, True):
        certificate = certify(problem, solution, exact=exact)
        assert certificate.violation <= problem.tolerance
        unproven = exact and np.isinf(float(certificate.bound)) and form is LinearProgram
        assert unproven or certificate.gap <= abs(solution.gap) + problem.rounding
    assert isinstance(certificate.value, Fraction)
    assert float(certificate.value) == pytest.approx(solution.value, abs=problem.rounding)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("solver", ["exact", "scipy"])
def test_the_exact_gap_of_an_optimal_ranking_is_zero(n, ties, solver):
    random = np.random.default_rng([n, ties])
    for k in {n, max(1, n // 3)}:
        scores = random.integers(0, 3, n) * 0.1 if ties else random.normal(size=n)
        weights = 1 / np.log2(np.arange(2, k + 2))
        problem = ranking(
            scores, random.integers(0, 3, n), discount=weights, position_weights=np.arange(1, k + 1) ** -0.5
        )
        solution = solve(problem, solver)
        assert certify(problem, solution, exact=True).gap == 0
        assert certify(problem.assignment(), problem.assignment().solution(solution.x), exact=True).gap <= 1e-15


def lies(solution, problem):
    sign = 1 if problem.is_maximization else -1
    step = 1e-6 * max(problem.scale, 1e-3)
    yield "claims value", replace(solution, value=solution.value + step)
    yield "claims value", replace(solution, value=float("nan"))
    yield "claims bound", replace(solution, bound=solution.value - sign * step, y=None)
    yield "claims bound", replace(solution, bound=solution.bound - sign * (solution.gap + step))
    yield "called optimal", replace(solution, bound=solution.bound + sign * step, status=Status.OPTIMAL)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("form", "name", "problem"), EVERYTHING[::3], ids=IDS[::3])
def test_planted_lies_are_refuted(form, name, problem, exact):
    solution = solve(problem)
    for message, lie in lies(solution, problem):
        with pytest.raises(CertificateError, match=message):
            certify(problem, lie, exact=exact)


@pytest.mark.parametrize("x", [[1, 0], [0, 0], [0, 5], [0]])
def test_another_order_is_refuted(x):
    problem = matching([[2.0, 1.0], [2.0, 3.0]])
    solution = solve(problem, "scipy")
    with pytest.raises(CertificateError, match=r"value|constraint"):
        certify(problem, replace(solution, x=np.array(x)))


def test_a_forbidden_cell_is_refuted():
    allowed = [[True, False], [True, True]]
    solution = solve(matching([[0.0, 9.0], [0.0, 0.0]]), "scipy")
    with pytest.raises(CertificateError, match="breaks a constraint"):
        certify(matching([[0.0, 9.0], [0.0, 0.0]], allowed=allowed), solution)


def test_a_point_outside_is_refuted_unless_it_says_so():
    program = restated(matching(np.eye(2)), LinearProgram)
    solution = solve(program, "highs")
    outside = replace(solution, x=solution.x * 1.5, value=program.value(solution.x * 1.5))
    with pytest.raises(CertificateError, match=r"breaks a constraint by 0\.5"):
        certify(program, outside)
    told = certify(program, replace(outside, status=Status.INACCURATE))
    assert told.violation == 0.5


def test_the_solution_of_another_problem_is_refuted():
    one, other = matching(np.eye(3)), matching(np.eye(3) * 1.01)
    with pytest.raises(CertificateError):
        certify(other, solve(one, "scipy"))


def test_a_suboptimal_order_keeps_an_honest_bound():
    profit = np.random.default_rng(0).normal(size=(6, 9))
    problem = matching(profit)
    best = solve(problem, "scipy").value
    poor = problem.solution(np.arange(6))
    assert poor.status is Status.BOUNDED_GAP
    for exact in (False, True):
        certificate = certify(problem, poor, exact=exact)
        assert certificate.value <= best <= certificate.bound


def test_weak_duality_in_rational_numbers():
    random = np.random.default_rng(1)
    hessian = csr_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
    quadratic = QuadraticProgram(
        hessian, np.array([-1.0, 0.3]), csr_array(np.ones((1, 2))), np.array([-1.0]), np.array([1.0]),
        np.full(2, -1.0), np.full(2, 1.0),
    )  # fmt: skip
    groups, capacity = [0, 1, 0, 1, 0], [0.5, 0.5]
    master = margin_dual(random.normal(size=(5, 3)), random.random(5), lam=0.1, groups=groups, group_mass=capacity)
    for problem, size in ((quadratic, 3), (master, 3)):
        solution = solve(problem)
        for _ in range(20):
            y = random.normal(size=size)
            loose = replace(solution, y=y, bound=problem.bound(y), status=Status.BOUNDED_GAP)
            certificate = certify(problem, loose, exact=True)
            sign = 1 if problem.is_maximization else -1
            assert sign * (certificate.bound - certificate.value) >= -problem.rounding


def test_a_form_without_a_rule_for_rational_numbers_says_so():
    import cvxpy

    x = cvxpy.Variable(2, nonneg=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1])
    solution = solve(problem, "cvxpy:CLARABEL")
    assert certify(problem, solution).bound == -np.inf
    with pytest.raises(UnsupportedProblemError, match="exact=False"):
        certify(problem, solution, exact=True)


# Prices


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 6), (6, 20), (60, 60), (30, 200)])
@pytest.mark.parametrize("kind", ["random", "ties", "zero", "ranking", "forbidden"])
def test_recovered_prices_close_the_gap_of_every_optimal_order(shape, kind):
    k, n = shape
    random = np.random.default_rng([k, n])
    profit = {
        "random": random.normal(size=shape),
        "ties": random.integers(0, 2, shape).astype(float),
        "zero": np.zeros(shape),
        "ranking": np.outer(np.arange(1, k + 1) ** -0.5, random.normal(size=n)) - random.integers(0, 2, n),
        "forbidden": random.normal(size=shape),
    }[kind]
    allowed = (random.random(shape) < 0.5) | np.eye(k, n, dtype=bool) if kind == "forbidden" else None
    problem = matching(profit, allowed=allowed)
    _, order = linear_sum_assignment(problem.masked_profit(), maximize=True)
    prices = shortest_path_prices(problem.masked_profit(), order)
    assert abs(problem.bound(prices) - problem.value(order)) <= problem.rounding
    if n > k:
        assert prices.min() >= 0.0
        assert np.delete(prices, order).max(initial=0.0) == 0.0


def test_prices_of_a_thousand_documents_settle():
    random = np.random.default_rng(2)
    problem = ranking(
        random.normal(size=1000), random.integers(0, 3, 1000),
        discount=1 / np.log2(np.arange(2, 1002)), position_weights=np.arange(1, 1001) ** -0.5,
    )  # fmt: skip
    solution = solve(problem, "exact")
    assert solution.status is Status.OPTIMAL
    certify(problem, solution)


# Vertices


def test_points_inside_the_optimal_face_are_driven_to_a_vertex():
    problem = matching(np.ones((3, 3)))
    rows, columns = np.divmod(np.arange(9), 3)
    for mass in (np.full(9, 1 / 3), np.array([0.5, 0.5, 0, 0.5, 0.5, 0, 0, 0, 1]) + 1e-9):
        assert sorted(order_on_support(problem, rows, columns, mass)) == [0, 1, 2]
    assert order_on_support(problem, rows, columns, np.array([0.5, 0.5, 0, 0.5, 0.5, 0, 0, 0, 1.0]))[2] == 2
    with pytest.raises(SolverError, match="should hold 1"):
        order_on_support(problem, rows, columns, np.zeros(9))


def test_flows_inside_the_optimal_face_are_driven_to_a_vertex():
    flow = restated(matching(np.ones((3, 4))), MinCostFlow)
    inside = np.concatenate([np.full(12, 0.25), np.full(4, 0.75)])
    whole = flow_on_support(flow, inside + 1e-5)
    assert flow.violation(whole) == 0.0
    assert flow.value(whole) == flow.value(inside)
    assert set(whole) <= {0.0, 1.0}
