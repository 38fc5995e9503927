"""value <= optimum <= bound, literally: in rational numbers, of the very data that a problem holds."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import constrained_ranking, matching, ranking, solve, solve_batch
from formulations.bridges import restated
from formulations.constraints.ranking_set import RankingSet
from formulations.gallery.masters import margin_dual
from formulations.problems.directed_rounding import Pair, above, below, difference, products, weighted
from formulations.problems.linear_program import LinearProgram, implied_limits
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoBatch

TRIES = 150


def drawn(random, size):
    """Whole numbers, reals, numbers of very different size, tenths, or numbers that are nearly one; at some scale."""
    kinds = (
        lambda: random.integers(-3, 4, size).astype(float),
        lambda: random.normal(size=size),
        lambda: random.normal(size=size) * 10.0 ** random.integers(-8, 9, size),
        lambda: random.integers(0, 3, size) * 0.1,
        lambda: 1.0 + 1e-8 * random.normal(size=size),
    )
    return kinds[random.integers(len(kinds))]() * 10.0 ** int(random.integers(-8, 9))


def weights(random, k):
    falling = -np.sort(-np.abs(drawn(random, k)))
    return falling - falling[k // 2] if random.random() < 0.1 else falling


def exact(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def best_order(profit):
    k, n = len(profit), len(profit[0])
    return max(sum(profit[i][order[i]] for i in range(k)) for order in permutations(range(n), k))


def fractions_of(profit):
    return [exact(row) for row in profit]


def rank_two(scores, gain, discount, position_weights):
    s, b, a, c = map(exact, (scores, gain, discount, position_weights))
    return [[c[i] * s[j] - a[i] * b[j] for j in range(len(s))] for i in range(len(c))]


def between(value, optimum, bound, is_maximization=True):
    """value <= optimum <= bound as rational numbers, for a minimum the other way round."""
    low, high = (value, bound) if is_maximization else (bound, value)
    return Fraction(low) <= optimum <= Fraction(high)


@pytest.fixture(params=["kernels", "exact sums"])
def way(request, monkeypatch):
    """Both ways of judging orders, whatever the size."""
    small = request.param == "exact sums"
    monkeypatch.setattr("formulations.problems.ranking_duals.is_small", lambda offsets: small)
    monkeypatch.setattr("formulations.solvers.exact.is_small", lambda offsets: small)
    monkeypatch.setattr("formulations.problems.ranking_duals.PAIRS", 1 << 60 if small else -1)


@pytest.mark.every(3)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(4))
def test_rankings_alone_and_in_batches(seed):
    random = np.random.default_rng([10, seed])
    for _ in range(TRIES):
        n = int(random.integers(1, 6))
        k = int(random.integers(1, n + 1))
        scores, gain, discount, decay = drawn(random, n), drawn(random, n), weights(random, k), weights(random, k)
        problem = ranking(scores, gain, discount=discount, position_weights=decay)
        best = best_order(rank_two(scores, gain, discount, decay))
        for solver in ("exact", "scipy"):
            solution = solve(problem, solver)
            assert between(solution.value, best, solution.bound)
            assert 0.0 <= solution.gap <= problem.rounding
        if min(discount[-1], decay[-1]) >= 0.0:
            padded = (np.pad(part, (0, n - k)) for part in (discount, decay))
            answer = solve_batch(RankTwoBatch(scores, gain, *padded, np.array([0, n])))
            for found in (answer, answer.proved()):
                assert between(found.value[0], best, found.bound[0])


@pytest.mark.usefixtures("way")
def test_a_batch_keeps_its_bound_where_a_document_cancels():
    """Score and gain of one document are so large that what it earns is lost in rounding: the order found may be
    another, and its own numbers, which are small, do not tell."""
    random = np.random.default_rng(3)
    for _ in range(200):
        n = int(random.integers(2, 6))
        scores, gain = random.normal(size=n), random.random(n)
        scores[0], gain[0] = 1e8 + random.random(), 1e8 + random.random()
        same = -np.sort(-random.random(n))
        problem = RankTwoBatch(scores, gain, same, same, np.array([0, n]))
        answer = solve_batch(problem)
        assert between(answer.value[0], best_order(rank_two(scores, gain, same, same)), answer.bound[0])


@pytest.mark.parametrize("seed", range(3))
def test_assignments_flows_and_linear_programs(seed):
    random = np.random.default_rng([11, seed])
    for _ in range(TRIES // 3):
        n = int(random.integers(1, 6))
        k = int(random.integers(1, n + 1))
        profit = drawn(random, k * n).reshape(k, n)
        problem, best = matching(profit), best_order(fractions_of(profit))
        solution = solve(problem, "scipy")
        assert between(solution.value, best, solution.bound)
        assert 0.0 <= solution.gap <= problem.rounding
        flow = solve(restated(problem, MinCostFlow), "networkx")
        assert between(flow.value, -best, flow.bound, is_maximization=False)
        program = restated(problem, LinearProgram)
        point = np.zeros(k * n)
        point[np.arange(k) * n + solution.order] = 1.0
        assert Fraction(program.value_lower_bound(point)) <= best <= Fraction(solve(program, "highs").bound)


@pytest.mark.every(5)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(3))
def test_any_prices_whatever_bound_the_optimum(seed):
    random = np.random.default_rng([12, seed])
    for _ in range(TRIES // 3):
        n = int(random.integers(1, 5))
        k = int(random.integers(1, n + 1))
        profit = drawn(random, k * n).reshape(k, n)
        problem, best = matching(profit), best_order(fractions_of(profit))
        prices = drawn(random, n)
        assert best <= Fraction(problem.bound(prices))
        flow, program = restated(problem, MinCostFlow), restated(problem, LinearProgram)
        assert Fraction(flow.bound(drawn(random, flow.supply.size))) <= -best
        assert best <= Fraction(program.bound(drawn(random, program.row_lower.size)))
        scores, gain, discount, decay = drawn(random, n), drawn(random, n), weights(random, k), weights(random, k)
        ranked = ranking(scores, gain, discount=discount, position_weights=decay)
        assert best_order(rank_two(scores, gain, discount, decay)) <= Fraction(ranked.bound(prices))


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(3))
def test_sets_of_rankings(seed):
    random = np.random.default_rng([13, seed])
    for _ in range(TRIES // 5):
        n = int(random.integers(3, 6))
        k = int(random.integers(2, n))
        admissible = RankingSet(n, k).at_most(1, documents=range(n // 2 + 1), positions=range(2), name="few")
        if random.random() < 0.5:
            admissible = admissible.precedes(0, n - 1)
        profit = drawn(random, k * n).reshape(k, n)
        every = [order for order in permutations(range(n), k) if admissible.is_feasible(list(order))]
        exactly = fractions_of(profit)
        best = max(sum(exactly[i][order[i]] for i in range(k)) for order in every)
        solution = solve(constrained_ranking(profit, admissible))
        assert between(solution.value, best, solution.bound)
        assert solution.gap >= 0.0


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_programs_at_their_exact_optimum(seed):
    """Diagonal and in a box: the optimum is known coordinate by coordinate, as a fraction."""
    random = np.random.default_rng([14, seed])
    for _ in range(TRIES // 5):
        n = int(random.integers(1, 5))
        curved, linear = np.abs(drawn(random, n)), drawn(random, n)
        low, high = -np.abs(random.normal(size=n)), np.abs(random.normal(size=n))
        row = csr_array(np.zeros((1, n)))
        problem = QuadraticProgram(csr_array(np.diag(curved)), linear, row, np.zeros(1), np.zeros(1), low, high)
        best = Fraction(0)
        for h, q, least, most in zip(*map(exact, (curved, linear, low, high)), strict=True):
            x = min(max(-q / h, least), most) if h else (least if q > 0 else most)
            best += h * x * x / 2 + q * x
        point = np.clip(np.divide(-linear, curved, out=np.where(linear > 0, low, high), where=curved > 0), low, high)
        solution = problem.solution(point, np.concatenate([np.zeros(1), point]))
        assert between(solution.value, best, solution.bound, is_maximization=False)
        assert Fraction(problem.bound(np.concatenate([drawn(random, 1), drawn(random, n)]))) <= best


@pytest.mark.parametrize("seed", range(3))
def test_the_master_program_of_one_plane(seed):
    random = np.random.default_rng([15, seed])
    for _ in range(TRIES):
        slope, height, lam = drawn(random, 3), abs(drawn(random, 1)) + 1e-3, float(10.0 ** random.integers(-3, 4))
        problem = margin_dual(slope[None], height, lam=lam)
        square = sum(part * part for part in exact(slope))
        alpha = min(Fraction(1), Fraction(height[0]) * Fraction(lam) / square) if square else Fraction(1)
        best = Fraction(height[0]) * alpha - alpha * alpha * square / (2 * Fraction(lam))
        solution = problem.solution(np.array([float(alpha)]).clip(0.0, 1.0))
        assert between(solution.value, best, solution.bound)


def test_whole_numbers_lose_nothing():
    profit = np.array([[3.0, 1.0, 2.0], [2.0, 9.0, 1.0]])
    solution = solve(matching(profit), "scipy")
    assert solution.value == solution.bound == 12.0
    assert repr(solution.gap) == "0.0"
    quotas = RankingSet(3, 2).at_most(1, documents=[0, 1], name="one")
    solution = solve(constrained_ranking(profit, quotas))
    assert solution.value == solution.bound == 11.0
    problem = ranking([3.0, 1.0, 2.0], [0.0, 1.0, 0.0], discount=[2.0, 1.0], position_weights=[4.0, 2.0])
    solution = solve(problem, "scipy")
    assert solution.value == solution.bound
    assert repr(solution.gap) == "0.0"


def test_sums_are_rounded_once_and_outward():
    random = np.random.default_rng(16)
    for _ in range(300):
        values = drawn(random, int(random.integers(1, 9)))
        total = sum(exact(values), Fraction(0))
        low, high = below(values), above(values)
        assert Fraction(low) <= total <= Fraction(high)
        assert high in (low, np.nextafter(low, np.inf))
    assert repr(above([0.0])) == repr(below([-0.0])) == "0.0"
    assert below([1e308, 1e308]) == below([np.nan]) == -np.inf


def test_pairs_hold_what_double_precision_drops():
    random = np.random.default_rng(17)
    for _ in range(100):
        rows, columns = int(random.integers(1, 5)), int(random.integers(1, 7))
        matrix = csr_array(drawn(random, rows * columns).reshape(rows, columns))
        start, vector, weight = drawn(random, rows), drawn(random, columns), drawn(random, rows)
        pair = difference(start, matrix, vector)
        dense, total = fractions_of(matrix.toarray()), Fraction(0)
        for i in range(rows):
            true = Fraction(start[i]) - sum(a * v for a, v in zip(dense[i], exact(vector), strict=True))
            kept = Fraction(pair.high[i]) + Fraction(pair.low[i])
            assert abs(true - kept) <= Fraction(pair.off[i])
            total += Fraction(weight[i]) * true
        terms, off = weighted(weight, Pair(pair.high, pair.low, pair.off))
        assert Fraction(below(*terms, -off)) <= total <= Fraction(above(*terms, off))
    for tiny in (1e-200, 5e-324, 1e-160):
        high, low, off = products(np.array([tiny]), np.array([tiny]))
        assert abs(Fraction(tiny) ** 2 - Fraction(high[0]) - Fraction(low[0])) <= Fraction(off)


def test_what_a_row_implies_holds_every_point():
    random = np.random.default_rng(18)
    for _ in range(100):
        matrix = csr_array(random.integers(-2, 3, (2, 3)).astype(float))
        point = random.normal(size=3)
        lower = np.where(random.random(3) < 0.6, point - random.random(3), -np.inf)
        upper = np.where(random.random(3) < 0.4, point + random.random(3), np.inf)
        held = matrix @ point
        lowest, highest = implied_limits(matrix, held - random.random(2), held + random.random(2), lower, upper)
        slack = 1e-12 * (1.0 + np.abs(point))
        assert (lowest - slack <= point).all()
        assert (point <= highest + slack).all()


def test_a_variable_without_a_limit_presses_on_what_rows_imply():
    """x >= 0 and x + y = 1: a reduced cost of -1e-17 costs no more than 1e-17."""
    program = LinearProgram(
        np.array([0.3, 0.1]), csr_array(np.array([[3.0, 1.0]])), np.ones(1), np.ones(1), np.zeros(2), np.full(2, np.inf)
    )
    bound = program.bound(np.array([-0.1]))
    assert Fraction(0.1) * Fraction(1) <= Fraction(bound) <= Fraction(0.1) + Fraction(1, 10**15)
    assert 0.1 <= program.bound(np.array([-0.05])) <= 0.15 + 1e-8
