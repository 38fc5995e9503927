"""Long lists from few ratings: the measure itself where all are rated, and its mean where some are."""

from itertools import combinations

import numpy as np
import pytest
from problems.rated import tastes

from rankopt.collaborative import regularization as lists
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.regularization import levelled, long_lists, rated_only, shares_above


def drawn(rng, n):
    """Ratings, scores, and the share of the others that is scored higher."""
    values, scores = rng.integers(1, 6, size=n).astype(float), rng.normal(size=n)
    values[:2] = 1.0, 5.0
    return values, scores, (scores[:, None] < scores[None, :]).sum(axis=1) / (n - 1)


@pytest.mark.parametrize("measure", ["nDCG@10", "DCG@10", "ERU(d=3)", "P(rel=4)@5", "nDCG"])
def test_of_a_list_that_is_long_enough_it_is_the_measure(measure):
    rng = np.random.default_rng(0)
    values, scores, shares = (np.concatenate(one) for one in zip(*(drawn(rng, n) for n in (60, 80, 60)), strict=True))
    bounds = np.array([0, 60, 140, 200])
    expected = rated_only(bounds, values, scores, measure)
    np.testing.assert_allclose(long_lists(measure, bounds, values, shares), expected, rtol=1e-12)


@pytest.mark.parametrize("measure", ["DCG@3", "ERU(d=2)"])
def test_of_some_of_its_items_it_is_the_measure_in_the_mean(measure, monkeypatch):
    """Over all draws of 5 of 10 items, for gains that are no quotients: those of a list follow what is drawn."""
    monkeypatch.setattr(lists, "LISTED", 10)
    values, scores, shares = drawn(np.random.default_rng(1), 10)
    values = np.arange(1.0, 11.0)  # none are alike, so every draw tells something
    found = [
        long_lists(measure, np.array([0, 5]), values[list(some)], shares[list(some)])
        for some in combinations(range(10), 5)
    ]
    expected = rated_only(np.array([0, 10]), values, scores, measure)
    np.testing.assert_allclose(np.mean(found, axis=0), expected, rtol=1e-12)


def test_users_who_tell_nothing_have_none():
    values, shares = np.array([1.0, 2, 3, 4, 3, 3, 3, 3, 3, 1, 2, 3, 4, 5]), np.linspace(0, 1, 14)
    found = long_lists("nDCG@10", np.array([0, 4, 9, 9, 14]), values, shares)
    assert np.isnan(found).tolist() == [True, True, True, False]
    assert np.isnan(long_lists("ERU(d=6)", np.array([0, 4, 9, 9, 14]), values, shares)).all()


def test_a_measure_that_is_no_sum_orders_the_ratings_by_their_shares():
    values, _, shares = drawn(np.random.default_rng(2), 12)
    bounds = np.array([0, 12])
    assert long_lists("AP(rel=4)", bounds, values, shares) == rated_only(bounds, values, -shares, "AP(rel=4)")


def test_shares_are_of_the_items_that_a_user_has_not_rated(monkeypatch):
    monkeypatch.setattr(lists, "CANDIDATES", 37)
    monkeypatch.setattr(lists, "ENTRIES", 8)
    rated, rng = EncodedRatings.of(tastes(users=12, each=9)), np.random.default_rng(0)
    out = rng.random(rated.values.size) < 0.3
    kept, left = rated.keep(~out), rated.keep(out)
    n, m = rated.n_users, rated.n_items
    factors = Factors(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)), rng.normal(size=m), rng.normal(size=n))
    score = factors.users @ factors.items.T + factors.offsets
    expected, popular = np.empty(left.values.size), np.repeat(np.arange(m), np.diff(kept.item_bounds))
    drawn_items = popular[(popular.size * (np.arange(37) + 0.5) / 37).astype(int)]
    for u in range(n):
        seen = kept.columns[kept.bounds[u] : kept.bounds[u + 1]]
        others = score[u, drawn_items[~np.isin(drawn_items, seen)]]
        for e in range(left.bounds[u], left.bounds[u + 1]):
            own = score[u, left.columns[e]]
            expected[e] = ((others > own + 1e-12).mean() + (others >= own - 1e-12).mean()) / 2
    np.testing.assert_allclose(shares_above(left, kept, factors), expected, atol=1e-15)


def test_levelled_shares_are_even():
    shares = np.array([0.3, 0.9, 0.3, 0.1, 0.95])
    np.testing.assert_allclose(levelled(shares), [0.4, 0.7, 0.4, 0.1, 0.9])
    assert levelled(np.zeros(0)).size == 0
