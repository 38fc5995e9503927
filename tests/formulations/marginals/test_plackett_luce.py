"""Marginals of Plackett-Luce rankings: those of all orders, for scores of any spread."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from formulations import birkhoff_decomposition, plackett_luce_marginals
from formulations.errors import InvalidProblemError


def by_enumeration(scores, k):
    u, P = np.exp(scores - scores.max()), np.zeros((k, scores.size))
    for order in permutations(range(scores.size)):
        left = np.cumsum(u[list(order)][::-1])[::-1]
        P[np.arange(k), order[:k]] += np.prod(u[list(order)] / left)
    return P


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 10.0, 100.0])
def test_they_are_those_of_all_orders(spread):
    random = np.random.default_rng(int(spread))
    for _ in range(20):
        n = int(random.integers(1, 7))
        k, scores = int(random.integers(1, n + 1)), spread * random.normal(size=n)
        assert_allclose(plackett_luce_marginals(scores, k), by_enumeration(scores, k), atol=1e-12)


def test_equal_scores_share_and_a_constant_changes_nothing():
    assert_allclose(plackett_luce_marginals(np.zeros(40), 5), 1 / 40, atol=1e-12)
    scores = np.random.default_rng(0).normal(size=60)
    P = plackett_luce_marginals(scores, 60)
    assert_allclose(P.sum(axis=0), 1.0, atol=1e-10)
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-10)
    assert_allclose(plackett_luce_marginals(scores + 1e3, 10), P[:10], atol=1e-9)
    assert_allclose(birkhoff_decomposition(P[:10]).marginals(), P[:10], atol=1e-6)
    order = np.random.default_rng(1).permutation(60)
    assert_allclose(plackett_luce_marginals(scores[order], 10), P[:10, order], atol=1e-12)


def test_positions_that_cannot_be():
    for scores, k in (([1.0, 2.0], 3), ([1.0], 0), ([], 1)):
        with pytest.raises(InvalidProblemError, match="positions must be"):
            plackett_luce_marginals(scores, k)
    with pytest.raises(InvalidProblemError):
        plackett_luce_marginals([np.nan, 1.0], 1)
