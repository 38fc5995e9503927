"""What a fit of a `CofiRanker` holds at a time beside the ratings, and beyond what the ranker keeps of it."""

import tracemalloc

import numpy as np
import pytest

from rankopt.collaborative import plane_blocks
from rankopt.collaborative import shards as rated_shards
from rankopt.rankers import CofiRanker
from rankopt.ratings.table import Ratings


def generated(users, each=100, items=1100):
    """Ratings 1 to 5, `each` of every user, on items that lie in a row."""
    draws = np.random.default_rng(0)
    item = (draws.integers(items, size=users)[:, None] + 11 * np.arange(each)) % items
    rating = draws.integers(1, 6, size=item.size)
    return Ratings.of(np.repeat(np.arange(users), each), item.ravel(), rating)


@pytest.mark.filterwarnings("ignore:training stopped")
def test_a_regression_takes_at_most_48_bytes_a_rating():
    """Beyond what it keeps, 8 of dual slopes: 24 of ratings in both orders, 8 of slopes, and some of the factors."""
    ratings = generated(1000)
    ranker = CofiRanker(strength=0.6, certify=False, max_iter=2, n_jobs=1).fit(ratings)  # kernels are loaded
    tracemalloc.start()
    try:
        ranker.fit(ratings)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - kept <= 42 * ratings.n_ratings
    assert kept <= 12 * ratings.n_ratings


@pytest.mark.filterwarnings("ignore:training stopped")
def test_losses_of_many_ratings_are_made_anew_for_each_question_and_nothing_changes(monkeypatch):
    monkeypatch.setattr(plane_blocks, "CHUNK", 300)
    ratings, found = generated(12, each=20, items=60), []
    ranker = CofiRanker("nDCG@5", strength=0.6, max_iter=2, prior="mean", n_jobs=1)
    for lasting in (ratings.n_ratings, ratings.n_ratings - 1):
        monkeypatch.setattr(rated_shards, "LASTING", lasting)
        ranker.fit(ratings)
        found.append((ranker.user_factors_.tobytes(), ranker.item_offsets_.tobytes(), ranker.certificate_.bound))
    assert found[0] == found[1]
