"""Numbers of any magnitude: no wrong value, bound or verdict, whatever solver answers."""

from collections import Counter
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
from problems.magnitudes import (
    INF,
    big_m_program,
    integer_program,
    linear_program,
    quadratic_program,
    singular_program,
    soft_set,
    sparse_program,
)
from scipy.sparse import csr_array

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    LinearProgram,
    MinCostFlow,
    QuadraticProgram,
    SolverError,
    Status,
    UnboundedError,
    UnsupportedProblemError,
    function_solver,
    solve,
)
from formulations.errors import InvalidSolutionError

CLOSE = 1e-6  # of the terms of the value

KINDS = {
    "linear": (linear_program, ("auto", "highs", "cvxpy:CLARABEL", "cvxpy:GLOP", "cvxpy:SCIPY")),
    "quadratic": (quadratic_program, ("auto", "qpsolvers:piqp", "qpsolvers:daqp", "cvxpy:CLARABEL")),
    "singular": (singular_program, ("auto", "qpsolvers:piqp", "qpsolvers:daqp", "cvxpy:CLARABEL")),
    "integer": (integer_program, ("auto", "highs", "cp_sat", "cvxpy:SCIPY")),
    "big M": (big_m_program, ("auto", "highs", "cvxpy:HIGHS", "cvxpy:SCIPY")),
    "soft": (soft_set, ("auto", "highs", "cp_sat")),
}


def judged(problem, optimum, solver):
    """right: the optimum within CLOSE; unknown: the answer says that it may not be; else what is wrong."""
    try:
        found = solve(problem, solver)
    except UnboundedError:
        return "false unbounded"
    except InfeasibleError:
        return "right" if optimum is None else "false infeasible"
    except (SolverError, UnsupportedProblemError):
        return "unknown"
    if optimum is None:
        return "unknown" if found.status is Status.INACCURATE else "a point of an empty set"
    sign = 1 if problem.is_maximization else -1
    slack = CLOSE * problem.magnitude_at(found.x)
    if np.isfinite(found.bound) and sign * (Fraction(found.bound) - optimum) < 0:
        return "false bound"
    if found.status is Status.INACCURATE:
        return "unknown"
    behind = float(sign * (optimum - Fraction(found.value)))
    gained = 0.0
    if isinstance(problem, QuadraticProgram):  # what violations within the tolerance may gain
        rows = problem.linearized(problem.linear)
        gained = CLOSE * float(np.abs(problem.linear) @ rows.units_at(found.x)[1])
    if behind < -slack - gained:
        return "false value"
    if behind > slack:
        return "false claim" if found.verdict.startswith("optimal") else "unknown"
    return "right" if found.gap <= slack or found.verdict.startswith("optimal") else "unknown"


def tallied(kind, seeds):
    """How many answers of each solver were right, unknown, or wrong; the seeds of wrong ones."""
    made, solvers = KINDS[kind]
    counts, wrong = {solver: Counter() for solver in solvers}, []
    for seed in seeds:
        problem, optimum = made(seed)
        for solver in solvers:
            word = judged(problem, optimum, solver)
            counts[solver][word] += 1
            if word not in ("right", "unknown"):
                wrong.append((kind, seed, solver, word))
    return counts, wrong


@pytest.mark.parametrize(
    ("kind", "number"),
    [("linear", 120), ("quadratic", 80), ("singular", 40), ("integer", 100), ("big M", 40), ("soft", 60)],
)
def test_no_answer_is_wrong(kind, number):
    counts, wrong = tallied(kind, range(number))
    assert not wrong
    assert counts["auto"]["right"] >= 0.95 * number, counts


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(5))
def test_no_answer_of_many_is_wrong(kind, part):
    counts, wrong = tallied(kind, range(1000 + 250 * part, 1250 + 250 * part))
    assert not wrong
    assert counts["auto"]["right"] >= 0.95 * 250, counts


@pytest.mark.parametrize("solver", ["highs", "cvxpy:PIQP", "auto"])
def test_programs_without_upper_limits_have_bounds(solver):
    """Of 60 programs like those of Netlib at most one is refused or has no bound next to the optimum."""
    closed, number = 0, 60
    for seed in range(number):
        problem, optimum = sparse_program(seed)
        try:
            found = solve(problem, solver)
        except (SolverError, UnsupportedProblemError):
            continue
        assert not np.isfinite(found.bound) or Fraction(found.bound) <= optimum
        closed += abs(found.bound - float(optimum)) <= CLOSE * abs(float(optimum))
    assert closed >= number - 1


@pytest.mark.parametrize("solver", ["highs", "cvxpy:HIGHS", "cvxpy:SCIPY", "auto"])
def test_rows_of_coefficients_far_apart(solver):
    """HiGHS drops what is 1e-9 of the largest in its row, unless the row is scaled by its smallest."""
    programs = [linear_program(seed) for seed in range(300)]
    sizes = [np.abs(problem.matrix.toarray()) for problem, _ in programs]
    far = [(np.ma.masked_equal(size, 0.0).min(axis=1) * 1e9 <= size.max(axis=1)).any() for size in sizes]
    words = [judged(*program, solver) for program, is_far in zip(programs, far, strict=True) if is_far]
    assert len(words) >= 20
    assert words.count("right") >= len(words) - 1, words


def test_tolerances_of_highs_through_cvxpy_lose_no_integer_optimum():
    assert {judged(*integer_program(seed), "cvxpy:HIGHS") for seed in range(480, 500)} == {"right"}


def linear(cost, rows, lower, upper, low, high, *, maximum=False, integer=None):
    parts = (np.array(part, dtype=float) for part in (lower, upper, low, high))
    matrix = csr_array(np.array(rows, dtype=float))
    return LinearProgram(np.array(cost, dtype=float), matrix, *parts, is_maximization=maximum, integer=integer)


@pytest.mark.parametrize("most", [10.0, INF])
@pytest.mark.parametrize("large", [1e3, 1e7, 1e12])
@pytest.mark.parametrize("solver", ["highs", "auto", "cvxpy:GLOP"])
def test_one_large_cost(solver, large, most):
    """min M z + 2 a + b + 3 c, z + a + b + c >= 1, z + b <= 5 has the optimum 1 for every M >= 1."""
    rows = [[1, 1, 1, 1], [1, 0, 1, 0]]
    problem = linear([large, 2, 1, 3], rows, [1, -INF], [INF, 5], [0] * 4, [most] * 4)
    found = solve(problem, solver)
    assert found.value == pytest.approx(1.0, abs=1e-9)
    assert found.bound == pytest.approx(1.0, abs=1e-9)


def test_costs_below_the_tolerance_of_a_solver():
    problem = linear([1e-2, 2e-9, 1e-9, 3e-9], [[1, 1, 1, 1]], [1], [INF], [0] * 4, [INF] * 4)
    assert solve(problem, "highs").value == pytest.approx(1e-9)


@pytest.mark.parametrize("solver", ["highs", "auto", "cp_sat", "cvxpy:SCIPY", "cvxpy:HIGHS"])
def test_integer_programs_end_at_a_gap_of_zero(solver):
    random = np.random.default_rng(4)
    weight, worth = random.integers(20, 60, 25) * 1.0, 1e6 + random.integers(0, 400, 25)
    limit = int(weight.sum() * 0.4)
    best = np.full(limit + 1, -INF)
    best[0] = 0.0
    for size, value in zip(weight.astype(int), worth, strict=True):
        best[size:] = np.maximum(best[size:], best[:-size] + value)
    problem = linear(
        worth, [weight], [-INF], [limit], [0] * 25, [1] * 25, maximum=True, integer=np.ones(25, dtype=bool)
    )
    found = solve(problem, solver)
    assert found.value == best.max()
    assert found.verdict == "optimal (claimed)"
    assert "optimal (claimed)" in repr(found)
    if solver != "cp_sat":  # a wanted gap ends a search before
        loose = solve(problem, solver, rel_gap=1e-3)
        assert loose.value <= best.max() <= loose.bound


@pytest.mark.parametrize("large", [1e3, 1e5, 1e7])
def test_a_large_coefficient_hides_no_breach(large):
    """x <= M b is broken by 10 at x = 10, b = 0, whatever M."""
    switch = [False, True]
    problem = linear([1.0, -9.9], [[1.0, -large]], [-INF], [0.0], [0, 0], [10, 1], maximum=True, integer=switch)
    with pytest.raises(InvalidSolutionError, match="integers rounded"):
        solve(problem, function_solver(lambda problem: np.array([10.0, 0.0]), accepts=LinearProgram))
    almost = function_solver(lambda problem: np.array([10.0, 10.0 / large]), accepts=LinearProgram, name="almost")
    if 10.0 / large <= 1e-5:  # rounded to 0, and x with it
        assert solve(problem, almost).value == 0.0
    assert solve(problem, "highs").value == pytest.approx(0.1)
    every = linear([1.0, -9.9], [[1.0, -large]], [-INF], [-1.0], [0, 0], [10, 1], maximum=True, integer=[True, True])
    assert every.violation(np.array([large, 1.0])) >= 1.0 > every.tolerance


def test_a_far_limit_hides_no_breach():
    """x <= 5 is broken by 10, however far away the lower limit is; likewise for rows."""
    of_variable = linear([1.0], [[1.0]], [-INF], [INF], [-1e12], [5.0], maximum=True)
    of_row = linear([1.0], [[1.0]], [-1e12], [5.0], [-INF], [INF], maximum=True)
    switch = linear([1.0, -2.0], [[1.0, -1e12]], [-1e12], [0.0], [0, 0], [10, 1], maximum=True, integer=[False, True])
    for problem, point in ((of_variable, [10.0]), (of_row, [10.0]), (switch, [10.0, 0.0])):
        assert problem.violation(np.array(point)) > 0.5
    assert solve(of_row, "highs").value == 5.0
    assert solve(switch, "highs").value < 10.0


def test_a_free_variable_of_a_convex_quadratic_program():
    """The least 3/2 x² - x is -1/6, and every point of linearization gives a bound."""
    one = np.ones(1)
    problem = QuadraticProgram(
        csr_array([[3.0]]), -one, csr_array([[1.0]]), -INF * one, 10 * one, -INF * one, INF * one
    )
    for solver in ("auto", "qpsolvers:daqp", "qpsolvers:piqp", "qpsolvers:clarabel", "cvxpy:CLARABEL"):
        found = solve(problem, solver)
        assert -1 / 6 - 1e-9 <= found.bound <= -1 / 6
    for far in (-1e3, 0.0, 1e3):
        assert -1 / 6 - 1e-6 <= problem.bound(np.array([0.0, far])) <= -1 / 6


@pytest.mark.parametrize(("dependent", "bounded"), [(False, True), (True, True), (True, False)])
def test_free_variables_need_duals_that_exist(dependent, bounded):
    """A cost that is a combination of the rows has a bound; one that is not has none, and none is claimed."""
    rows = np.array([[0.1, 0.7, 0.3], [0.9, 0.2, 0.4]])
    rows[1] = 2.0 * rows[0] if dependent else rows[1]
    cost = rows[0] * 4.0 + (0.0 if bounded else np.array([0.0, 1e-9, 0.0]))
    problem = linear(cost, rows, [1, -INF if dependent else 1], [1, INF], [-INF] * 3, [INF] * 3)
    bound = problem.bound(np.array([4.0, 0.0]))
    assert bound == (4.0 if bounded else -INF)


def test_verdicts_that_the_data_contradict_are_not_passed_on():
    def liar(error):
        def lie(problem):
            raise error("so it is")

        return function_solver(lie, accepts=LinearProgram)

    box = linear([1.0, -2.0], [[1.0, 1.0]], [-INF], [3.0], [0, 0], [2, 2])
    cone = linear([1.0, 1.0], [[1.0, -1.0]], [0.0], [0.0], [0, 0], [INF, INF])
    for problem in (box, cone):
        for error in (InfeasibleError, UnboundedError):
            with pytest.raises(InvalidSolutionError, match="is wrong"):
                solve(problem, liar(error))
    endless = linear([-1.0, 0.0], [[1.0, -1.0]], [0.0], [0.0], [0, 0], [INF, INF])
    for error in (InfeasibleError, UnboundedError):
        with pytest.raises(UnboundedError):
            solve(endless, liar(error))
    empty = linear([1.0], [[1.0], [1.0]], [2, -INF], [INF, 1], [0], [INF])
    with pytest.raises(InfeasibleError):
        solve(empty, liar(InfeasibleError))


def test_the_conflict_of_an_integer_program_is_within_the_limit():
    """A covering of random triples with one set fewer than it needs: its relaxation is feasible."""
    random, n, m = np.random.default_rng(1), 30, 160
    matrix = np.zeros((m + 1, n))
    for row in matrix[:m]:
        row[random.choice(n, 3, replace=False)] = 1
    matrix[m] = 1
    whole = np.ones(n, dtype=bool)

    def covering(most):
        sides = [1] * m + [-INF], [INF] * m + [most]
        return linear(np.ones(n), matrix, *sides, [0] * n, [1] * n, integer=whole)

    needed = solve(covering(n), "cp_sat").value
    began = perf_counter()
    with pytest.raises(InfeasibleError, match="without its integers"):
        solve(covering(needed - 1), "highs", time_limit=20.0)
    assert perf_counter() - began < 25.0


def test_flows_of_whole_floats_and_without_capacities():
    table = np.array([[0.0, 1.0, 5.0, 2.0]])
    assert solve(MinCostFlow(*table.T, np.array([3.0, -3.0]))).value == 6.0
    assert solve(MinCostFlow([0], [1], [INF], [2.0], [3, -3])).value == 6.0
    with pytest.raises(InvalidProblemError, match=r"sum of the positive supplies"):
        MinCostFlow([0], [1], [INF], [-2.0], [3, -3])
    with pytest.raises(InvalidProblemError, match=r"tail\[0\] must be an integer of 64 bits"):
        MinCostFlow([0.5], [1], [1], [2.0], [3, -3])
    # A finite arc of negative cost: flow may circulate through it and the arc without a capacity.
    circle = MinCostFlow([0, 1], [1, 0], [4.0, INF], [-3.0, 1.0], [0, 0])
    assert solve(circle).value == -8.0


def eliminated(matrix, right):
    """The solution of a square system as fractions."""
    rows = [[Fraction(value) for value in row] + [Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("seed", range(6))
def test_free_variables_of_a_singular_hessian_under_equations(seed):
    """Curvature on the directions that the equations leave is enough; the optimum solves the optimality conditions."""
    random, n, m = np.random.default_rng([56, seed]), 5, 3
    system: list = [[0]]
    while np.linalg.matrix_rank(np.array(system)) < n + m:  # until the optimum is one point
        root, rows = random.integers(-3, 4, (n, 2)), random.integers(-3, 4, (m, n))
        hessian, linear, sides = root @ root.T, random.integers(-9, 10, n), random.integers(-5, 6, m)
        system = np.block([[hessian, -rows.T], [rows, np.zeros((m, m), dtype=int)]]).tolist()
    x = eliminated(system, [*(-linear).tolist(), *sides.tolist()])[:n]
    bent = [sum(int(h) * v for h, v in zip(row, x, strict=True)) for row in hessian]
    optimum = sum(v * (b / 2 + int(q)) for v, b, q in zip(x, bent, linear, strict=True))
    free = np.full(n, INF)
    parts = (sides.astype(float), sides.astype(float), -free, free)
    problem = QuadraticProgram(csr_array(hessian * 1.0), linear * 1.0, csr_array(rows * 1.0), *parts)
    for solver in ("auto", "qpsolvers:daqp", "cvxpy:CLARABEL"):
        found = solve(problem, solver)
        assert Fraction(found.bound) <= optimum
        assert found.bound == pytest.approx(float(optimum), rel=1e-8, abs=1e-8)


def test_least_squares_with_a_column_twice_and_no_rows_ends():
    none = np.zeros(0)
    free = np.full(2, np.inf)
    problem = QuadraticProgram(csr_array(np.ones((2, 2))), np.ones(2), csr_array((0, 2)), none, none, -free, free)
    assert solve(problem).value == pytest.approx(-0.5, abs=1e-6)
