"""Where factors start: at singular pairs of what offsets leave over; bounds that are not convex, at a regression."""

from dataclasses import replace

import numpy as np
import pytest
from problems.rated import tastes

from rankopt.collaborative.blocks.user_loss import UserLoss
from rankopt.collaborative.levels import Levels
from rankopt.collaborative.prior import Penalties
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import LEVELS, start_of
from rankopt.engines.serial import Serial
from rankopt.rankers import CofiRanker


def blocks_of(ratings, loss, bound="convex"):
    known = UserLoss.named(loss, bound, "shifted(0.25)")
    penalties = Penalties(0.1, 10.0, 10.0 if known.sees_levels else None)
    return penalties.blocks(known, known.seen(Rated.of(ratings)), Serial())[0]


def levels_of(rated):
    return Penalties(0.1, 10.0, 10.0).blocks(UserLoss(), rated, Serial())[0]


def test_pairs_are_those_of_the_dual_state_at_the_best_offsets():
    blocks = blocks_of(tastes(), "nDCG@5")
    start = start_of(blocks, 3)
    dense = blocks.problem.rated.table(blocks.offsets_only().slopes).toarray()
    left, size, right = np.linalg.svd(dense)
    assert start.lam_max == pytest.approx(size[0])
    best = -(left[:, :3] * size[:3]) @ right[:3]
    np.testing.assert_allclose(start.factors.users @ start.factors.items.T, best, atol=1e-9)


def test_a_bound_that_is_not_convex_starts_at_the_factors_of_a_regression():
    ratings = tastes()
    blocks = blocks_of(ratings, "nDCG@5", "nonconvex")
    assert blocks.problem.rated.n_users == ratings.n_users
    start, plain = (start_of(blocks, 4, levels) for levels in (levels_of, None))
    known = CofiRanker(factors=4, strength=LEVELS, offset_strength=10.0, n_jobs=1).fit(ratings)
    rated = blocks.problem.rated
    for found, expected in (
        (start.factors.users, known.user_factors_[rated.users]),
        (start.factors.items, known.item_factors_[rated.items]),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert start.lam_max == plain.lam_max
    assert start.factors.offsets.tobytes() == plain.factors.offsets.tobytes()


def test_where_a_regression_leaves_nothing_over_pairs_are_the_start():
    blocks = blocks_of(tastes(), "nDCG@5", "nonconvex")

    def levels(rated):
        flat = replace(rated, values=Levels.of(np.full(rated.values.size, 3.0)))
        return Penalties(0.0, 10.0, 10.0).blocks(UserLoss(), flat, Serial())[0]

    start, plain = start_of(blocks, 2, levels), start_of(blocks, 2)
    assert plain.lam_max > 0.0
    assert start.factors.users.tobytes() == plain.factors.users.tobytes()
    assert start.factors.items.tobytes() == plain.factors.items.tobytes()


@pytest.mark.parametrize("start", ["residual", "random"])
def test_the_ranker_says_where_it_starts(start, monkeypatch):
    from rankopt.rankers import cofi_training

    given, real = [], cofi_training.start_of
    monkeypatch.setattr(cofi_training, "start_of", lambda *all_of: (given.append(all_of[2]), real(*all_of))[1])
    options = {"factors": 2, "strength": 0.5, "max_iter": 1, "start": start, "random_state": 0, "n_jobs": 1}
    for bound in ("convex", "nonconvex"):
        with pytest.warns(UserWarning, match="max_iter"):
            CofiRanker("nDCG@5", bound=bound, **options).fit(tastes())
    assert [one is None for one in given] == [True, start == "random"]
