"""Lotteries: a marginal ranking taken apart into a few rankings, as Birkhoff and von Neumann say."""

import math
from itertools import permutations

import numpy as np
import pytest
from problems.orders import SHAPES, all_orders

from formulations.errors import FormulationError, InvalidProblemError
from formulations.gallery.assignments import marginal_ranking
from formulations.marginals.birkhoff import SHRINK, birkhoff_decomposition
from formulations.marginals.exposure import DemographicParity
from formulations.solving.solve import solve


def most(k, n):
    """How many rankings are enough: the dimension of the polytope, plus one."""
    return (n - 1) ** 2 + 1 if k == n else k * (n - 1) + 1


def check(lottery, P):
    k, n = P.shape
    assert 1 <= len(lottery) <= most(k, n)
    assert lottery.orders.shape == (len(lottery), k)
    assert all(np.unique(order).size == k and 0 <= order.min() <= order.max() < n for order in lottery.orders)
    assert np.unique(lottery.orders, axis=0).shape[0] == len(lottery)
    assert (lottery.probabilities > 0).all()
    assert lottery.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(lottery.probabilities) <= 0).all()
    summed = sum(probability * np.eye(n)[order] for probability, order in lottery)
    np.testing.assert_allclose(lottery.marginals(), summed, atol=1e-12)
    np.testing.assert_allclose(summed, P, atol=1e-9)


def mixture(rng, k, n, count):
    """A convex combination of `count` random rankings."""
    weights = rng.dirichlet(np.ones(count))
    return sum(weight * np.eye(n)[rng.permutation(n)[:k]] for weight in weights)


@pytest.mark.parametrize(("k", "n"), [*SHAPES, (7, 20), (20, 20), (10, 100), (50, 50)])
def test_mixtures_of_rankings_are_taken_apart(k, n):
    rng = np.random.default_rng([k, n, 3])
    for count in (1, 2, 3, 10, 300):
        P = mixture(rng, k, n, count)
        check(birkhoff_decomposition(P), P)
    P = np.eye(n)[rng.permutation(n)[:k]]
    assert len(birkhoff_decomposition(P)) == 1
    P = np.full((k, n), 1 / n)
    check(birkhoff_decomposition(P), P)
    assert len(birkhoff_decomposition(P)) == n


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_dense_matrices_need_no_more_rankings_than_the_bound(n):
    rng = np.random.default_rng(n)
    for k in range(1, n + 1):
        for _ in range(30):
            P = np.tensordot(rng.dirichlet(np.full(math.factorial(n), 0.3)), all_orders(n, n), 1)[:k]
            check(birkhoff_decomposition(P), P)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_likeliest_ranking_is_nearly_as_likely_as_one_can_be(n):
    rng = np.random.default_rng([n, 5])
    for _ in range(20):
        P = mixture(rng, n, n, 8)
        largest = P[np.arange(n), np.array(list(permutations(range(n))))].min(axis=1).max()
        assert SHRINK * largest - 1e-12 <= birkhoff_decomposition(P).probabilities[0] <= largest + 1e-12


@pytest.mark.parametrize("noise", [1e-17, 1e-13, 1e-9, 1e-8])
@pytest.mark.parametrize(("k", "n"), [(4, 4), (3, 6), (10, 30)])
def test_rounding_makes_no_rankings(noise, k, n):
    rng = np.random.default_rng([k, n, 6])
    for _ in range(10):
        order = rng.permutation(n)[:k]
        lottery = birkhoff_decomposition(np.eye(n)[order] + noise * rng.uniform(-1, 1, (k, n)))
        assert lottery.orders.tolist() == [order.tolist()]
        assert lottery.moved <= n * noise + 1e-12


def test_tiny_probabilities_are_kept():
    P = (1 - 2e-8) * np.eye(4) + 1e-8 * np.eye(4)[[1, 2, 3, 0]] + 1e-8 * np.eye(4)[[3, 0, 1, 2]]
    check(birkhoff_decomposition(P), P)
    assert len(birkhoff_decomposition(P)) == 3
    assert birkhoff_decomposition(P).probabilities[1:] == pytest.approx([1e-8, 1e-8], rel=1e-6)


@pytest.mark.parametrize("noise", [1e-17, 1e-12, 1e-9, 2e-8])
@pytest.mark.parametrize(("k", "n"), [(4, 4), (3, 6), (10, 30)])
def test_what_solvers_leave_of_rounding_is_mended(noise, k, n):
    rng = np.random.default_rng([k, n, 4])
    for _ in range(10):
        P = mixture(rng, k, n, 4)
        given = P + noise * rng.uniform(-1, 1, (k, n))
        lottery = birkhoff_decomposition(given)
        difference = np.abs(lottery.marginals() - given).max()
        assert difference == pytest.approx(lottery.moved, abs=1e-11)
        assert lottery.moved <= 4 * n * noise + 1e-11
        assert len(lottery) <= most(k, n)
        mended = lottery.marginals()
        np.testing.assert_allclose(mended.sum(axis=1), 1, atol=1e-12)
        assert mended.sum(axis=0).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("P", "words"),
    [
        ([[0.5, 0.5], [0.5, 0.5 + 1e-5]], r"position 1 holds 1.00001 documents|document 1 stands at 1.00001"),
        ([[0.5, 0.49, 0.0], [0.0, 0.5, 0.5]], "position 0 holds 0.99 documents, but must hold 1"),
        ([[1.0, 0.0, 0.0], [0.2, 0.8, 0.0]], "document 0 has total probability 1.2, but must have 1 at most"),
        ([[1.1, -0.1], [-0.1, 1.1]], "position 0 has document 1 with probability -0.1"),
        ([[0.5, np.nan], [0.5, 0.5]], r"P\[0, 1\] is nan"),
        ([[np.inf, 0.0], [0.5, 0.5]], r"P\[0, 0\] is inf"),
        ([[1.0], [1.0]], r"got \(2, 1\)"),
        (np.empty((0, 3)), r"got \(0, 3\)"),
        ([1.0, 0.0], "2 dimension"),
    ],
)
def test_what_is_no_marginal_ranking_is_refused(P, words):
    with pytest.raises(InvalidProblemError, match=words):
        birkhoff_decomposition(P)


def test_a_tolerance_admits_what_first_order_solvers_return():
    P = np.array([[0.5, 0.50001], [0.5, 0.49999]])
    with pytest.raises(FormulationError):
        birkhoff_decomposition(P)
    lottery = birkhoff_decomposition(P, tolerance=1e-4)
    assert 0 < lottery.moved <= 2e-5


def test_accuracy_buys_fewer_rankings_and_is_kept():
    P = mixture(np.random.default_rng(7), 10, 30, 200)
    counts = []
    for accuracy in (1e-12, 1e-4, 1e-2, 0.1):
        lottery = birkhoff_decomposition(P, accuracy=accuracy)
        counts.append(len(lottery))
        assert np.abs(lottery.marginals() - P).max() <= accuracy
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]
    problem = marginal_ranking(
        np.random.default_rng(1).normal(size=(7, 20)), constraints=DemographicParity(["a", "b"] * 10)
    )
    dusty = solve(problem, "cvxpy:CLARABEL").primal["P"]
    assert len(birkhoff_decomposition(dusty)) > 4
    assert len(birkhoff_decomposition(dusty, accuracy=1e-6)) == 2
    with pytest.raises(InvalidProblemError, match="accuracy must be at least 0 and below 1"):
        birkhoff_decomposition(P, accuracy=1.0)


def test_expectation_is_the_inner_product_with_the_marginals():
    rng = np.random.default_rng(8)
    P, profit = mixture(rng, 3, 6, 9), rng.normal(size=(3, 6))
    assert birkhoff_decomposition(P).expected(profit) == pytest.approx((P * profit).sum(), abs=1e-12)
    with pytest.raises(InvalidProblemError, match=r"not \(3, 6\)"):
        birkhoff_decomposition(P).expected(profit.T)


def test_samples_follow_the_marginals():
    P = mixture(np.random.default_rng(9), 3, 5, 6)
    lottery = birkhoff_decomposition(P)
    drawn = lottery.sample(20_000, random_state=0)
    frequency = np.eye(5)[drawn].mean(axis=0)
    np.testing.assert_allclose(frequency, P, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_array_equal(drawn, lottery.sample(20_000, random_state=0))
    one = lottery.sample(random_state=np.random.default_rng(1))
    assert one.tolist() in lottery.orders.tolist()
    assert {tuple(lottery.sample()) for _ in range(200)} > {tuple(one)}  # other draws every time


def test_long_lotteries_print_their_likeliest_rankings():
    lottery = birkhoff_decomposition(np.full((2, 14), 1 / 14))
    lines = str(lottery).splitlines()
    assert lines[0] == "14 rankings of 14 documents at 2 positions"
    assert len(lines) == 12
    assert lines[-1] == "0.286  4 more"
    assert str(birkhoff_decomposition(np.eye(2))) == "1 ranking of 2 documents at 2 positions\n1  0 1"
    with pytest.raises(ValueError, match="read-only"):
        lottery.probabilities[0] = 1.0
