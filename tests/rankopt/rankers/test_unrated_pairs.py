"""`CofiRanker(unrated_weight=α)`: (α/2) F² over all pairs without a rating is part of J and of every certificate."""

import numpy as np
import pytest
from click.testing import CliRunner
from problems.rated import tastes

from rankopt.cli import rankopt
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.rankers import CofiRanker, load_model
from rankopt.ratings import Ratings, evaluate_ratings, load_ratings_sample, weak_split

ALPHA = 0.1
OPTIONS = [{}, {"item_bias": False}, {"weight_by_count": True}, {"factors": "free", "tol": 1e-3}]


def ranker(**options):
    return CofiRanker(**{"factors": 3, "reg": 0.3, "unrated_weight": ALPHA, "tol": 1e-8, "max_iter": 2000, **options})


def dense(ratings):
    """(n, m) the targets and the weights of all pairs."""
    target, weight = np.zeros((ratings.n_users, ratings.n_items)), np.full((ratings.n_users, ratings.n_items), ALPHA)
    at = ratings.user_of(), ratings.columns
    target[at], weight[at] = ratings.values, 1.0
    return target, weight


def centered():
    """Ratings whose mean over all pairs is 0."""
    ratings = tastes()
    return Ratings(
        ratings.users, ratings.items, ratings.bounds, ratings.columns, ratings.values - ratings.values.mean()
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_objective_is_the_sum_over_all_pairs_and_is_verified(options):
    ratings = tastes()
    own = ranker(**options).fit(ratings)
    target, weight = dense(ratings)
    scores = own.user_factors_ @ own.item_factors_.T + own.user_bias_[:, None] + own.item_bias_
    by_count = options.get("weight_by_count", False)
    users, items = (np.diff(ratings.bounds), ratings.counts) if by_count else (1.0, 1.0)
    costs = own.lam_ * users * np.einsum("ij,ij->i", own.user_factors_, own.user_factors_)
    costs = np.sum(costs) + np.sum(own.lam_ * items * np.einsum("ij,ij->i", own.item_factors_, own.item_factors_))
    costs += np.sum(10.0 * users * own.user_bias_**2) + np.sum(own.bias_reg_ * items * own.item_bias_**2)
    objective = 0.5 * (float((weight * (scores - target) ** 2).sum()) + costs)
    assert own.certificate_.primal == pytest.approx(objective, rel=1e-12)
    assert own.certificate_.kind == "global"
    assert own.certificate_.bound <= objective
    assert own.verify(ratings)
    own.user_dual_intercept_ = own.user_dual_intercept_ + 0.1
    assert "user" in own.verify(ratings).wrong[0]


def test_the_items_are_the_ridge_solutions_over_all_users():
    ratings = tastes()
    own = ranker().fit(ratings)
    target, weight = dense(ratings)
    x = np.column_stack([own.user_factors_, np.ones(ratings.n_users)])
    penalty = np.diag([*[own.lam_] * 3, own.bias_reg_])
    for j in range(ratings.n_items):
        right = x.T @ (weight[:, j] * (target[:, j] - own.user_bias_))
        found = np.linalg.solve(x.T @ (weight[:, j, None] * x) + penalty, right)
        np.testing.assert_allclose([*own.item_factors_[j], own.item_bias_[j]], found, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_it_is_the_regression_on_the_full_table(options):
    ratings = centered()
    own = ranker(**options).fit(ratings)
    target, weight = dense(ratings)
    user, item = (one.ravel() for one in np.indices(target.shape))
    full = Ratings.from_arrays(ratings.users[user], ratings.items[item], target.ravel())
    options = {**options, "unrated_weight": 0.0, "popularity_prior": 0.0}
    other = ranker(**options, item_prior="mean").fit(full, sample_weight=weight.ravel())
    assert own.lam_max_ == pytest.approx(other.lam_max_, rel=1e-9)
    assert own.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-7)
    assert own.certificate_.bound == pytest.approx(other.certificate_.bound, rel=1e-4)
    np.testing.assert_allclose(own.predict(full), other.predict(full), rtol=0, atol=1e-3)


def test_names_the_order_of_rows_and_threads_play_no_part():
    ratings = tastes()
    shuffled = np.random.default_rng(0).permutation(ratings.n_ratings)
    names = np.array([f"user {9 * u % 1000}" for u in ratings.users])
    parts = names[ratings.user_of()], ratings.items[ratings.columns], ratings.values
    one, two = ranker(n_jobs=1).fit(ratings), ranker(n_jobs=4).fit(Ratings.from_arrays(*(p[shuffled] for p in parts)))
    pairs = [
        np.column_stack([users, parts[1].astype(object)]) for users in (ratings.users[ratings.user_of()], parts[0])
    ]
    np.testing.assert_allclose(one.predict(pairs[0]), two.predict(pairs[1]), rtol=0, atol=1e-9)


def test_a_user_who_is_folded_in_has_the_factors_of_training():
    ratings = tastes()
    own = ranker().fit(ratings)
    known = ratings.select_users(np.arange(5))
    guests = own.fold_in(known)
    pairs = Ratings.from_arrays(
        np.repeat(ratings.users[:5], ratings.n_items), np.tile(ratings.items, 5), np.ones(5 * ratings.n_items)
    )
    np.testing.assert_allclose(guests.predict(pairs), own.predict(pairs), rtol=0, atol=1e-4)


def test_users_without_ratings_do_not_count_and_items_do():
    ratings = tastes()
    own = ranker().fit(ratings)
    more = Ratings.from_arrays(*triplets(ratings), users=[*ratings.users, 7777], items=ratings.items)
    assert ranker().fit(more).certificate_.primal == pytest.approx(own.certificate_.primal, rel=1e-9)
    more = Ratings.from_arrays(*triplets(ratings), items=[*ratings.items, 7777])
    other = ranker().fit(more)
    assert other.certificate_.primal != pytest.approx(own.certificate_.primal, rel=1e-9)
    assert other.verify(more)


def triplets(ratings):
    return ratings.users[ratings.user_of()], ratings.items[ratings.columns], ratings.values


def test_the_strength_is_chosen_among_all_items_and_lists_gain():
    draws, kind = np.random.default_rng(0), np.arange(60) % 3
    user = np.repeat(np.arange(90), 20)
    taste = [
        np.where(kind == u % 3, 12.0, 1.0) for u in range(90)
    ]  # a user rates, rather than likes, one kind of items
    item = np.concatenate([draws.choice(60, 20, replace=False, p=one / one.sum()) for one in taste])
    split = weak_split(Ratings.from_arrays(user, item, draws.integers(1, 6, user.size)), 10, seed=0)
    own = CofiRanker(factors=4, unrated_weight=0.05).fit(split.train)
    assert own.reg_ == own.chosen_.tried[int(np.argmax(own.chosen_.reached))] < 1.0
    plain = CofiRanker(factors=4, reg=0.9).fit(split.train)
    found = [evaluate_ratings(split, one, candidates="all").mean for one in (own, plain)]
    assert found[0] > found[1] + 0.02


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
@pytest.mark.parametrize("seed", range(3))
def test_few_users_are_judged_in_every_fold_so_that_noise_does_not_choose(seed):
    split = weak_split(load_ratings_sample(), 15, seed=seed)
    options = {"factors": 4, "unrated_weight": 0.05}
    auto = CofiRanker(**options).fit(split.train)
    values = [evaluate_ratings(split, CofiRanker(reg=reg, **options).fit(split.train), candidates="all").mean
              for reg in (0.85, 0.09)]  # fmt: skip
    chosen = evaluate_ratings(split, auto, candidates="all").mean
    assert chosen > values[0] - 0.03 > values[1] + 0.04


def test_ratings_that_are_all_0_are_named():
    ratings = tastes()
    zeros = Ratings(ratings.users, ratings.items, ratings.bounds, ratings.columns, 0.0 * ratings.values)
    with pytest.raises(MeasureError, match=r"^measure nDCG@10 cannot judge ratings that are all 0; give some above 0$"):
        CofiRanker(factors=3, unrated_weight=0.1).fit(zeros)


def test_saved_and_loaded(tmp_path):
    own = ranker().fit(tastes())
    own.save(tmp_path / "model")
    other = load_model(tmp_path / "model")
    assert other.unrated_weight == ALPHA
    assert other.verify(tastes())
    assert list(other.recommend(k=3)) == list(own.recommend(k=3))


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"unrated_weight": 1.0}, ">= 0 and < 1"),
        ({"loss": "nDCG@10"}, "needs loss='regression'"),
        ({"popularity_prior": 0.1}, "omit item_prior and popularity_prior"),
    ],
)
def test_what_does_not_go_together(options, cure):
    with pytest.raises(OptionError, match=cure):
        ranker(**options).fit(tastes())


def test_ratings_count_more_than_unrated_pairs():
    ratings = tastes()
    with pytest.raises(OptionError, match="less than the weights of the ratings"):
        ranker().fit(ratings, sample_weight=np.full(ratings.n_ratings, ALPHA))
    heavy = ranker().fit(ratings, sample_weight=np.full(ratings.n_ratings, 2.0))
    assert heavy.verify(ratings, sample_weight=np.full(ratings.n_ratings, 2.0))
    with pytest.raises(DataError):
        heavy.verify(centered().select_users(np.arange(3)))


def test_on_the_command_line(tmp_path):
    path = str(tmp_path / "model")
    done = CliRunner().invoke(
        rankopt, ["cofi", "--unrated-weight", "0.05", "--reg", "0.5", "--factors", "3", "--model", path]
    )
    assert done.exit_code == 0, done.output
    assert load_model(path).unrated_weight == 0.05
