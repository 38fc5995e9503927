"""What `CofiRanker` settles before it trains: the prior of items, its pull under every loss, the strength in time."""

import warnings
from time import perf_counter

import numpy as np
import pytest
from problems.rated import tastes
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative import regularization as choice
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.errors import DataError, NoProgressWarning, OptionError
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.rankers import CofiRanker
from rankopt.rankers.cofi_training import SHORT
from rankopt.ratings.table import Ratings


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["nDCG@5", "ordinal", "preferences"])
def test_the_prior_counts_for_as_many_ratings_under_every_loss(loss):
    """μ is 10 Σψ²/(2Σl) at b⁰, which is 10 for a squared loss, whatever it is multiplied by."""
    ratings = tastes()
    ranker = CofiRanker(loss, factors=2, reg=0.6, item_prior="mean", compute_bound=False).fit(ratings)
    known = UserLoss.named(loss, "convex", "shifted(0.25)")
    rated = known.seen(EncodedRatings.from_ratings(ratings))
    at = known.blocks(Penalties(0.1, 1.0, None).problem(rated), None)
    start = at.at(at.problem.without_factors())
    assert ranker.bias_reg_ == pytest.approx(10 * (start.slopes @ start.slopes) / (2 * start.value))
    twice = CofiRanker(loss, factors=2, reg=0.6, item_prior="mean", compute_bound=False)
    twice.fit(ratings, user_weight=np.full(40, 2.0))
    assert twice.bias_reg_ == pytest.approx(ranker.bias_reg_)
    assert CofiRanker(factors=2, reg=0.6).fit(ratings).bias_reg_ == 10.0


@pytest.mark.study
def test_items_may_be_pulled_to_their_own_means():
    ratings = tastes()
    ranker = CofiRanker("nDCG@5", factors=2, reg=0.6, item_prior="means", popularity_prior=0.2).fit(ratings)
    counts = np.bincount(ratings.columns, minlength=ratings.n_items)
    popular = 0.2 * np.log1p(counts)
    mean = (ratings.values - popular[ratings.columns]).mean()
    for j in range(ratings.n_items):
        left = ratings.values[ratings.columns == j] - popular[j] - mean
        assert ranker.item_prior_[j] == pytest.approx(mean + popular[j] + left.sum() / (left.size + 30))
    assert ranker.cold_start_bias_ == pytest.approx(mean)
    assert ranker.verify(ratings).holds
    ranker.item_prior_ = ranker.item_prior_ + 0.01
    assert any("pulled to other offsets" in one for one in ranker.verify(ratings).wrong)


def test_of_strengths_that_are_as_good_the_usual_one_is_taken_and_else_the_best():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 100))
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= noise.std(axis=1, keepdims=True) * 10  # standard errors of differences are .014
    own, tried = rng.random(100), (1.0, 0.85, 0.65, 0.55)
    for means, expected in (
        ((0.0, 0.0, 0.0, 0.0), 0.65),
        ((0.02, 0.0, 0.0, 0.0), 0.65),
        ((0.04, 0.0, 0.0, 0.0), 1.0),
        ((0.0, 0.0, -0.5, 0.01), 0.55),
        ((0.0, 0.01, -0.5, 0.0), 0.85),
        ((0.0, 0.01, -0.5, -0.5), 0.85),
        ((-0.5, -0.5, -0.5, 0.0), 0.55),
    ):
        values = own + noise + np.array(means)[:, None]
        assert choice._settled(values, tried, 0.65).reg == expected
        assert choice._is_lower(list(values)) == (max(means) - means[-1] > 0.03)
    assert choice._settled(np.full((4, 3), np.nan), tried, 0.7).reg == 0.65
    assert choice._settled(own[None, :], tried, 0.65).reg == 1.0


def test_the_prior_follows_from_the_loss_and_the_length_of_lists():
    short, long = tastes(), tastes(users=15, items=40, each=SHORT)
    for loss, bound, given, means in (
        ("nDCG@5", "convex", short, True), ("ordinal", "convex", short, True), ("ordinal", "convex", long, False),
        ("nDCG@5", "nonconvex", long, True), ("regression", "convex", short, False),
    ):  # fmt: skip
        options = {"bound": bound, "factors": 1, "reg": 0.6, "tol": 1e-2, "compute_bound": False}
        found, named = (
            CofiRanker(loss, **options, item_prior=prior).fit(given).item_prior_
            for prior in ("auto", "means" if means else "mean")
        )
        np.testing.assert_array_equal(found, named)
    with pytest.raises(OptionError, match="item_prior must be 'auto', 'mean' or 'means'; got 'medians'"):
        CofiRanker(item_prior="medians").fit(short)


def test_a_strength_is_judged_by_ratings_that_its_models_have_not_seen():
    """At ρ = 1 the scores of a fold are the offsets of the others' model, which a fit without factors has."""
    ratings = tastes(users=60, each=16)
    found = CofiRanker(factors=2, tol=1e-2).fit(ratings).chosen_
    rated = EncodedRatings.from_ratings(ratings)
    fold, scores = choice.folds_of(rated, choice.FOLDS), np.empty(rated.n_ratings)
    known = UserLoss.named("regression", "convex", "shifted(0.25)")
    for one in range(choice.FOLDS):
        blocks, _ = Penalties(0.1, 10.0, 10.0).blocks(known, rated.keep(fold != one), None)
        scores[fold == one] = blocks.offsets_only().factors.offsets[rated.columns[fold == one]]
    told = choice.rated_only(rated.bounds, rated.values, scores, "nDCG@10")
    assert found.reached[0] == pytest.approx(np.nanmean(told))


@pytest.mark.study
@pytest.mark.filterwarnings("ignore:training stopped")
def test_the_choice_of_a_strength_ends_in_half_of_the_time(monkeypatch):
    ratings = tastes(users=60, each=16)
    CofiRanker("nDCG@5", factors=3, reg=0.5, max_iter=1, tol=0.5).fit(ratings)  # kernels are loaded
    alternated = choice.alternated

    def slowly(*given):
        end = perf_counter() + 0.1
        while perf_counter() < end:
            pass
        return alternated(*given)

    monkeypatch.setattr(choice, "alternated", slowly)
    with pytest.warns(ConvergenceWarning, match=r"half of time_limit was over when reg='auto' had tried 1"):
        ranker = CofiRanker("nDCG@5", factors=3, time_limit=1.0).fit(ratings)
    assert ranker.chosen_.cut
    assert len(ranker.chosen_.tried) < len(choice.STRENGTHS)
    assert ranker.chosen_.reg in ranker.chosen_.tried


@pytest.mark.parametrize("loss", ["nDCG@5", "ordinal", "regression"])
def test_few_ratings_that_a_strength_fits_are_fitted_by_auto_too(loss):
    ratings = Ratings.from_arrays(["a", "a", "b", "b"], ["x", "y", "x", "y"], [5.0, 1.0, 4.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = CofiRanker(loss, factors=1).fit(ratings)
        CofiRanker(loss, factors=1, reg=0.5).fit(ratings)
    assert ranker.reg_ > 0
    told = loss == "regression"  # its folds have a model, others no order to learn
    assert np.isnan(ranker.chosen_.reached).all() != told


def test_a_run_that_goes_on_does_not_choose_again(tmp_path, monkeypatch):
    ratings, options = tastes(users=60, each=16), {"factors": 3, "tol": 1e-5, "compute_bound": False}
    whole = CofiRanker(**options).fit(ratings)

    def cut(step, standing):
        if step.step == 2:
            raise MemoryError

    run = CofiRanker(**options, checkpoint=Checkpoint(tmp_path, every=0.0), callbacks=[cut])
    with pytest.raises(MemoryError):
        run.fit(ratings)
    monkeypatch.setattr("rankopt.rankers.cofi_training.choose_strength", None)
    again = CofiRanker(**options, checkpoint=Checkpoint(tmp_path, every=0.0)).fit(ratings)
    assert again.chosen_ == whole.chosen_
    np.testing.assert_array_equal(again.user_factors_, whole.user_factors_)


def test_an_interruption_of_a_fold_ends_the_choice_and_leaves_the_ranker_unfitted(monkeypatch):
    from rankopt.collaborative.least_squares import Regression

    real, calls = Regression.around, []

    def third(blocks, now, precision):
        calls.append(now)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(blocks, now, precision)

    monkeypatch.setattr(Regression, "around", third)
    ranker = CofiRanker(factors=2, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(tastes())
    assert len(calls) == 3
    assert not hasattr(ranker, "user_factors_")


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "nDCG@5", "ordinal", "preferences"])
def test_from_lam_max_on_no_factors_are_the_optimum_of_the_whole(loss):
    for strength in (1.0, 3.0):
        with pytest.warns(NoProgressWarning, match="every user has the same order"):
            ranker = CofiRanker(loss, factors=3, reg=strength).fit(tastes())
        assert not ranker.user_factors_.any()
        assert not ranker.item_factors_.any()
        proved = ranker.certificate_
        assert proved.primal - proved.bound <= 3e-3 * proved.primal


def test_what_draws_nothing_and_sparse_tables_are_refused_with_the_cure():
    with pytest.raises(OptionError, match="random_state must be an integer or None; got 'x'"):
        CofiRanker(factors=2, reg=0.5, init="random", random_state="x").fit(tastes())
    with pytest.raises(DataError, match=r"Ratings\.from_csr"):
        CofiRanker(factors=2, reg=0.5).fit(tastes().to_csr())


@pytest.mark.parametrize("items", [5, 10, 12, 14, 30])
def test_no_item_of_a_complete_table_is_left_out_whole(items):
    rng = np.random.default_rng(0)
    user, item = (one.ravel() for one in np.meshgrid(np.arange(23), np.arange(items), indexing="ij"))
    rated = EncodedRatings.from_ratings(Ratings.from_arrays(user, item, rng.integers(1, 6, user.size)), None)
    fold = choice.folds_of(rated, choice.FOLDS)
    for one in range(choice.FOLDS):
        assert {*rated.columns[fold != one].tolist()} == {*range(items)}
    sizes = np.array([np.unique(rated.columns[fold == one]).size for one in range(choice.FOLDS)])
    assert (sizes == items).all()
    assert np.ptp(np.bincount(fold, minlength=choice.FOLDS)) <= 1
