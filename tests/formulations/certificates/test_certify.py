"""certify() believes nothing: true answers pass, planted lies are refuted, exact gaps are exactly 0."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from planted.forgeries import ATTACKS, attack
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from formulations import (
    CertificateError,
    RankingSet,
    SolverError,
    Status,
    UnsupportedProblemError,
    certify,
    constrained_ranking,
    function_solver,
    margin_dual,
    matching,
    ranking,
    solve,
)
from formulations.bridges import restated
from formulations.bridges.widening import flow_on_support, order_on_support
from formulations.errors import InvalidSolutionError
from formulations.problems.assignment import shortest_path_prices
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.solver import SolverResult
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


def test_what_only_the_solver_claims_is_called_a_claim():
    """A knapsack with a fractional relaxation, called optimal by a liar: the relaxation proves 19 (19.4)."""
    rows = csr_array([[5.0, 4.0, 3.0]])
    program = LinearProgram(
        np.array([9.0, 8.0, 6.0]), rows, np.full(1, -np.inf), np.full(1, 10.0), np.zeros(3), np.ones(3),
        integer=np.ones(3, dtype=bool),
    )  # fmt: skip

    def liar(problem):
        return SolverResult(np.zeros(3), details={"reported_status": "OPTIMAL", "reported_bound": 0.0})

    solution = solve(program, liar)
    certificate = certify(program, solution)
    assert (solution.verdict, certificate.claim) == ("optimal (claimed)", "optimal (claimed)")
    assert certificate.gap == 19.0
    assert "claim='optimal (claimed)'" in repr(certificate)
    assert "optimal (claimed)" in certificate._repr_html_()
    assert certify(program, solution, exact=True).claim == "optimal (claimed)"
    assert certify(program, solve(program, lambda problem: np.zeros(3))).claim == ""
    with pytest.raises(CertificateError, match="it is called optimal, with value 0"):
        certify(program, replace(solution, status=Status.OPTIMAL))
    proved = replace(program, row_upper=np.full(1, 12.0))
    assert certify(proved, solve(proved, "highs")).claim == ""


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
    checked = certify(program, replace(outside, status=Status.INACCURATE))
    assert checked.violation == 0.5


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
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(x)), [x >= 1])
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


# Forged evidence and lying solvers: nothing false is believed, nothing but typed errors is raised.


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


# Quadratic programs whose variables have no end: what solvers round away costs digits of the bound, not all of it.


def random_program(seed, curved=True):
    """min ½ |Fx|² + q·x, Ax >= b, x >= 0, with a point and prices that are optimal by construction."""
    rng = np.random.default_rng(seed)
    size, rows = 6, 4
    factor = rng.normal(size=(size if curved else 2, size))
    matrix = np.abs(rng.normal(size=(rows, size))) + 0.1
    z = np.where(rng.random(size) < 0.5, rng.random(size) + 0.5, 0.0)
    prices = np.where(np.arange(rows) < 2, rng.random(rows) + 0.5, 0.0)
    reduced = np.where(z > 0, 0.0, rng.random(size))
    low = matrix @ z - (prices == 0.0)
    linear = reduced + matrix.T @ prices - factor.T @ (factor @ z)
    program = QuadraticProgram(
        csr_array(factor.T @ factor), linear, csr_array(matrix), low, np.full(rows, np.inf), np.zeros(size),
        np.full(size, np.inf),
    )  # fmt: skip
    return program, z, prices


@pytest.mark.every(5)
@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-6])
def test_a_small_error_of_the_solver_is_a_small_error_of_the_bound(seed, noise, curved):
    program, z, prices = random_program(seed, curved)
    rng = np.random.default_rng(seed + 100)
    checked = np.concatenate([prices, z]) + noise * rng.normal(size=prices.size + z.size)
    optimum = program.value(z)
    bound = program.bound(checked)
    assert bound <= optimum + 1e-12 * max(1.0, abs(optimum))
    assert bound >= optimum - 1e-8 - 1e4 * noise


def test_what_has_no_near_proof_has_no_bound():
    """min -x has no least value over x >= 0."""
    empty, endless = csr_array((1, 2)), np.array([-np.inf])
    program = QuadraticProgram(
        csr_array(np.diag([0.0, 1.0])), np.array([-1.0, 0.0]), empty, endless, -endless, np.zeros(2), np.full(2, np.inf)
    )
    assert program.bound(np.zeros(3)) == -np.inf
    assert program.bound(np.array([0.0, 1e100, 1e100])) == -np.inf
