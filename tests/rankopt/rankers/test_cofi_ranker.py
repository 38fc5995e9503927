"""`CofiRanker`: the same model for any names, conventions, files, checkpoints, and certificates that hold."""

import re
import tracemalloc
import warnings
from functools import partial
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from problems.rated import few, tastes
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, cross_val_score

from rankopt.collaborative import alternation, encoded_ratings, plane_blocks, regularization
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.global_bound import global_bound
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.verification import verify_global_bound
from rankopt.errors import (
    DataError,
    MeasureError,
    ModelError,
    NoProgressWarning,
    OptionError,
    TrainingInterruptedWarning,
)
from rankopt.losses import OrdinalHinge, PreferenceHinge
from rankopt.measures import nDCG
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.rankers import CofiRanker, load_model
from rankopt.rankers.cofi_training import SHORT
from rankopt.ratings.table import Ratings

FITTED = ("user_factors_", "item_factors_", "item_bias_", "user_bias_", "user_dual_coef_", "user_dual_intercept_")
QUICK = {"factors": 3, "reg": 0.5}


def triplets(ratings):
    return ratings.users[ratings.user_of()], ratings.items[ratings.columns], ratings.values


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "nDCG@5", "ordinal"])
def test_names_and_the_order_of_rows_play_no_part(loss):
    ratings = tastes()
    user, item, value = triplets(ratings)
    draws = np.random.default_rng(1)
    users, items = draws.permutation(1000)[:40], [f"film {i}" for i in draws.permutation(30)]
    shuffled = draws.permutation(user.size)
    other = Ratings.from_arrays(users[user][shuffled], [items[i] for i in item[shuffled]], value[shuffled])
    one, two = (CofiRanker(loss, **QUICK).fit(some) for some in (ratings, other))
    u, j = other.user_index(users), other.item_index(items)
    np.testing.assert_allclose(two.user_factors_[u], one.user_factors_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(two.item_factors_[j], one.item_factors_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(two.item_bias_[j], one.item_bias_, rtol=0, atol=1e-12)
    assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-13)
    pairs = np.column_stack([users[user], np.array(items, dtype=object)[item]])
    np.testing.assert_allclose(two.predict(pairs), one.predict(np.column_stack([user, item])), rtol=0, atol=1e-12)


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "options",
    [
        {"loss": "regression"},
        {"loss": "nDCG@5"},
        {"loss": "preferences"},
        {"loss": "regression", "weight_by_count": True},
    ],
)
def test_the_certificate_holds(options):
    ratings = tastes()
    ranker = CofiRanker(**options, **QUICK).fit(ratings)
    proved = ranker.certificate_
    assert proved.kind == "global"
    assert max(proved.users_gap, proved.items_gap) <= 1e-3
    assert proved.bound <= min(proved.users, proved.items) <= proved.primal
    assert np.all(np.diff(ranker.history_.primal) <= 1e-9 * ranker.history_.primal[:-1])
    for seed in range(5):
        other = CofiRanker(**options, **{**QUICK, "factors": 6}, init="random", random_state=seed, compute_bound=False)
        other.set_params(reg=0.5, lam=ranker.lam_).fit(ratings)
        assert other.certificate_.primal >= proved.bound
        assert other.certificate_.kind == "blocks"


def test_the_bound_of_the_whole_is_verified_by_other_code():
    ratings = tastes()
    ranker = CofiRanker("nDCG@5", factors=3, lam=0.5).fit(ratings)
    table = ratings.to_csr()
    table.data = ranker.user_dual_coef_
    given = (table, float(ranker.user_dual_intercept_.sum()), ranker.item_prior_, 0.5, 0.5, ranker.bias_reg_)
    found = global_bound(*given)
    assert verify_global_bound(found, *given).holds
    assert found.value * (1 - 1e-12) <= ranker.certificate_.bound <= ranker.certificate_.primal


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_free_factors_close_the_whole(loss):
    ratings = tastes()
    narrow = CofiRanker(loss, factors=1, reg=0.3).fit(ratings)
    free = CofiRanker(loss, factors="free", reg=0.3, tol=2e-3).fit(ratings)
    assert free.item_factors_.shape[1] > 1
    assert free.certificate_.relative_gap < 0.5 * narrow.certificate_.relative_gap


def test_above_lam_max_no_factors_are_left():
    with pytest.warns(NoProgressWarning, match="reg = 1.05 is too large: no factors help"):
        ranker = CofiRanker(factors=4, reg=1.05, tol=1e-9, max_iter=2000).fit(tastes())
    assert ranker.similar(ranker.item_ids_.item(0)) == []
    assert abs(ranker.user_factors_ @ ranker.item_factors_.T).max() < 1e-3
    ranker = CofiRanker(factors=4, reg=0.9, tol=1e-9, max_iter=2000).fit(tastes())
    assert abs(ranker.user_factors_ @ ranker.item_factors_.T).max() > 0.05


def test_a_strength_at_which_nothing_is_learned_is_told_when_it_was_chosen(monkeypatch):
    monkeypatch.setattr(regularization, "USUAL", {"levels": 1.0, "orders": 1.0})
    rng = np.random.default_rng(0)
    user, item = (one.ravel() for one in np.meshgrid(np.arange(40), np.arange(12), indexing="ij"))
    noise = Ratings.from_arrays(user, item, rng.integers(1, 6, user.size))
    with pytest.warns(NoProgressWarning, match="reg='auto' found no value: no factors help"):
        ranker = CofiRanker(factors=2).fit(noise)
    assert ranker.reg_ == ranker.chosen_.reg == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"reg": 1.0},
        {"reg": 0.3, "max_iter": 1},
        {"time_limit": 1e-9},
    ],
    ids=str,
)
def test_warnings_point_at_the_line_that_fits(options):
    with pytest.warns((NoProgressWarning, ConvergenceWarning)) as told:
        CofiRanker(factors=2, **options).fit(few())
    assert {one.filename for one in told} == {__file__}


def test_an_end_by_patience_is_told_as_such():
    ratings = tastes(users=60, each=20)
    mask = np.arange(len(ratings)) % 4 > 0
    ranker = CofiRanker(factors=6, reg=0.1, tol=1e-9, patience=1)
    ranker.fit(ratings.select(mask), eval_set=ratings.select(~mask))
    last = ranker.history_
    assert last.primal[-1] - min(last.users[-1], last.items[-1]) > 1e-9 * last.primal[-1]
    assert "nothing better for as many rounds as patience allows" in str(ranker.certificate_)


def test_a_measure_by_value_is_that_by_name():
    by_name, by_value = (CofiRanker(loss, **QUICK).fit(few()) for loss in ("nDCG@5", nDCG @ 5))
    np.testing.assert_array_equal(by_name.item_factors_, by_value.item_factors_)
    assert by_value.verify(few())


@pytest.mark.parametrize("loss", ["regression", "ordinal", partial(OrdinalHinge, cost="one")])
def test_what_is_of_measures_is_refused_with_another_loss(loss):
    with pytest.raises(OptionError, match="bound 'convexx' is unknown"):
        CofiRanker(loss, bound="convexx").fit(few())
    with pytest.raises(OptionError, match=r"bound = 'nonconvex' is of a measure's regret, which loss = .* has not"):
        CofiRanker(loss, bound="nonconvex").fit(few())
    with pytest.raises(OptionError, match=r"position_weights = 'log' weigh positions, which loss = .* has not"):
        CofiRanker(loss, position_weights="log").fit(few())


def test_names_of_other_libraries_are_refused_with_ours():
    for name, own in (("n_factors", "factors"), ("regularization", "reg"), ("n_epochs", "max_iter")):
        with pytest.raises(OptionError, match=f"is called {own} here"):
            CofiRanker(**{name: 4})


def test_the_squared_loss_is_the_regression():
    with pytest.raises(OptionError, match="levels want offsets of users; take 'regression'"):
        CofiRanker("squared").fit(few())


def test_a_loss_of_ours_with_other_costs_has_a_bound_of_the_whole():
    one, pairwise = (CofiRanker(loss, **QUICK).fit(few()) for loss in (partial(OrdinalHinge, cost="one"), "pairwise"))
    assert one.certificate_.kind == "global"
    assert one.certificate_.bound <= pairwise.certificate_.primal * (1.0 + 1e-9)
    assert pairwise.certificate_.bound <= one.certificate_.primal * (1.0 + 1e-9)


def test_costs_of_ones_own_are_a_function_and_never_below_0(tmp_path):
    steep = CofiRanker(partial(OrdinalHinge, cost=lambda low, high: (high - low) ** 2), **QUICK)
    assert steep.fit(few()).certificate_.kind == "global"
    with pytest.raises(OptionError, match="checkpoint cannot identify loss"):
        steep.set_params(checkpoint=tmp_path / "run").fit(few())
    with pytest.raises(OptionError, match="it must be 0 or more"):
        CofiRanker(partial(OrdinalHinge, cost=lambda low, high: low - high), **QUICK).fit(few())


def test_rows_frames_and_ratings_are_one():
    ratings = tastes()
    user, item, value = triplets(ratings)
    rows = np.column_stack([user, item])
    frame = pd.DataFrame({"userId": user, "movieId": item, "rating": value, "timestamp": 0})
    models = [
        CofiRanker(**QUICK).fit(ratings), CofiRanker(**QUICK).fit(rows, value), CofiRanker(**QUICK).fit(frame),
        CofiRanker(**QUICK).fit(frame[["userId", "movieId"]], frame["rating"]),
    ]  # fmt: skip
    for model in models[1:]:
        for name in FITTED:
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))
    np.testing.assert_array_equal(models[0].predict(rows), models[0].predict(frame))
    assert models[0].score(rows, value) == models[0].score(ratings)


def test_columns_of_a_frame_go_by_their_names():
    ratings = tastes()
    user, item, _ = triplets(ratings)
    ranker, rows = CofiRanker(**QUICK).fit(ratings), np.column_stack([user, item])
    for names in (("movie_id", "user"), ("item", "who"), ("what", "userID")):
        frame = pd.DataFrame({names[0]: item, names[1]: user})
        np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(rows))
    for names in (("who", "what"), ("user", "what"), ("who", "film")):
        frame = pd.DataFrame({names[0]: user, names[1]: item})
        np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(rows))
    for names in (("user", "rating"), ("item", "score"), ("user", "userId"), ("movie", "film")):
        with pytest.raises(DataError, match="no clear pair of user and item"):
            ranker.predict(pd.DataFrame(rows, columns=list(names)))


def test_unknown_users_and_items_get_priors():
    ranker = CofiRanker(**QUICK).fit(tastes())
    found = ranker.predict([(0, 0), ("nobody", 0), (0, "nothing"), ("nobody", "nothing")])
    assert np.isfinite(found).all()
    assert found[1] == ranker.item_bias_[0]
    assert found[3] == ranker.cold_start_bias_
    assert found[2] == ranker.cold_start_bias_ + ranker.user_bias_[0]


def test_weights_count_as_ratings_do():
    """A regression with weights 2 at λ is one with weights 1 at λ/2 and μ/2."""
    ratings = tastes()
    options = {"factors": 3, "tol": 1e-9, "max_iter": 3000}
    one = CofiRanker(lam=2.0, bias_reg=4.0, **options).fit(ratings, user_weight=np.full(40, 2.0))
    two = CofiRanker(lam=1.0, bias_reg=2.0, **options).fit(ratings)
    three = CofiRanker(lam=2.0, bias_reg=4.0, **options).fit(ratings, sample_weight=np.full(len(ratings), 2.0))
    np.testing.assert_allclose(one.predict(ratings), two.predict(ratings), atol=1e-3)
    np.testing.assert_allclose(three.predict(ratings), one.predict(ratings), atol=1e-12)
    by_name = CofiRanker(lam=2.0, bias_reg=4.0, **options).fit(ratings, user_weight=dict.fromkeys(range(40), 2.0))
    np.testing.assert_array_equal(by_name.predict(ratings), one.predict(ratings))


def test_weights_of_users_may_name_others():
    """A fold of a cross-validation lacks some users; one who is there and is not weighed is an error."""
    ratings = tastes()
    whole = dict.fromkeys(range(40), 2.0)
    one, two = (CofiRanker(**QUICK).fit(ratings, user_weight=some) for some in (whole, {**whole, "ghost": 3.0}))
    np.testing.assert_array_equal(one.predict(ratings), two.predict(ratings))
    with pytest.raises(DataError, match="no weight for user 7"):
        CofiRanker(**QUICK).fit(ratings, user_weight={u: 1.0 for u in range(40) if u != 7})


def test_ratings_below_zero_have_a_cure_of_their_own():
    rows, values = (
        [(u, i) for u in range(6) for i in range(6)],
        [float((u * i) % 5 - 2) for u in range(6) for i in range(6)],
    )
    with pytest.raises(MeasureError, match=r"measure nDCG@10 cannot judge ratings below 0 .*; add 2 to all ratings"):
        CofiRanker(factors=2).fit(rows, values)
    with pytest.raises(MeasureError, match=r"loss nDCG@5 cannot judge ratings below 0 .*another loss"):
        CofiRanker("nDCG@5", **QUICK).fit(rows, values)
    assert CofiRanker(factors=2, measure="ERU(d=0)").fit(rows, values).score(rows, values) >= 0
    for loss in ("ordinal", "ERU(d=0)"):
        CofiRanker(loss, **QUICK).fit(rows, values)


@pytest.mark.parametrize("loss", ["regression", "ordinal", "ERU(d=0)"])
@pytest.mark.parametrize("size", [1e300, -1e300, 1.7e308])
def test_ratings_whose_squares_overflow_are_refused(loss, size):
    ratings = few()
    values = ratings.values.copy()
    values[3] = size
    user, item, _ = triplets(ratings)
    with pytest.raises(DataError, match=r"the rating -?1.*e\+30. of user 'u0' and item .* is too large"):
        CofiRanker(loss, **QUICK).fit(Ratings.from_arrays(user, item, values))
    with pytest.raises(DataError, match=r"beyond 1e-100 to 1e.100"):
        CofiRanker(loss, **QUICK).fit(ratings, user_weight=np.full(ratings.n_users, abs(size)))
    values[3] = 1e100
    if loss == "regression":  # hinges of such height are honest work without an end
        CofiRanker(loss, **QUICK).fit(Ratings.from_arrays(user, item, values))


def test_the_strength_is_chosen_inside_the_training_ratings():
    ratings = tastes(users=60, each=16)
    ranker = CofiRanker(factors=3).fit(ratings)
    assert ranker.chosen_.reg in ranker.chosen_.tried
    assert ranker.reg_ == pytest.approx(ranker.chosen_.reg)
    assert ranker.lam_ == pytest.approx(ranker.reg_ * ranker.lam_max_)
    assert not hasattr(CofiRanker(**QUICK).fit(ratings), "chosen_")


def test_the_best_round_on_other_ratings_is_kept():
    ratings = tastes(users=60, each=20)
    mask = np.arange(len(ratings)) % 4 > 0
    train, other = ratings.select(mask), ratings.select(~mask)
    ranker = CofiRanker(factors=6, reg=0.1, tol=1e-6, patience=2).fit(train, eval_set=other)
    judged = ranker.history_.judged
    assert ranker.best_score_ == judged.max() == pytest.approx(ranker.score(other), abs=1e-12)
    assert len(judged) - 1 - judged.argmax() <= 2
    assert np.isnan(CofiRanker(**QUICK).fit(train).history_.judged).all()


@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_saved_and_loaded(loss, tmp_path):
    ratings = few()
    ranker = CofiRanker(loss, **QUICK).fit(ratings)
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(ratings), ranker.predict(ratings))
    assert str(loaded.certificate_) == str(ranker.certificate_)
    assert loaded.get_params() == ranker.get_params()
    loaded.item_factors_ = loaded.item_factors_[:-1]
    with pytest.raises(ModelError, match="item_factors_"):
        loaded.save(tmp_path / "other")


@pytest.mark.study
@pytest.mark.parametrize("deaths", [(3,), pytest.param((1, 3), marks=pytest.mark.study)])
@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_a_run_that_died_goes_on_to_the_same_bits(loss, deaths, tmp_path):
    from rankopt.persistence.checkpoint import Checkpoint

    ratings, options = tastes(), {"factors": 4, "reg": 0.2, "tol": 1e-4}
    whole = CofiRanker(loss, **options).fit(ratings)
    assert whole.n_iter_ > 3
    for dies in deaths:
        folder = tmp_path / f"{dies}"

        def die(step, now, last=dies):
            if step.step == last:
                raise ZeroDivisionError

        kept = Checkpoint(folder, every=0)
        with pytest.raises(ZeroDivisionError):
            CofiRanker(loss, **options, checkpoint=kept, callbacks=[die]).fit(ratings)
        steps = []
        went_on = CofiRanker(
            loss, **options, checkpoint=kept, callbacks=[lambda step, now, seen=steps: seen.append(step)]
        )
        went_on.fit(ratings)
        assert steps[0].step > dies - 1
        for name in FITTED:
            assert getattr(went_on, name).tobytes() == getattr(whole, name).tobytes()
        with pytest.raises(OptionError, match="reg differ"):
            CofiRanker(loss, **{**options, "reg": 0.3}, checkpoint=kept).fit(ratings)


def interrupted_in_the_items_block(monkeypatch, ranker, ratings):
    """Ctrl-C amid the third round, when planes of the second have been written to."""
    seen, calls, real = [], [], plane_blocks.ascend_users

    def ascend(*given):
        real(*given)
        if seen and seen[-1] == 2:
            calls.append(1)
            if len(calls) == 6:
                raise KeyboardInterrupt

    ranker.set_params(callbacks=[lambda step, now: seen.append(step.step)])
    with monkeypatch.context() as patched:
        patched.setattr(plane_blocks, "ascend_users", ascend)
        with pytest.warns(TrainingInterruptedWarning):
            ranker.fit(ratings)
    assert len(calls) == 6
    return ranker.set_params(callbacks=())


@pytest.mark.filterwarnings("ignore:.*of items that the model does not know")
@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_a_guest_who_knows_only_unknown_items_has_the_prior(loss):
    ratings = tastes()
    ranker = CofiRanker(loss, **QUICK).fit(ratings)
    known = ranker.fold_in(
        Ratings.from_arrays(["guest"] * 2, ["a film", "another"], [5, 1], items=["a film", "another"])
    )
    first = ratings.items[:4]
    pairs = np.array([["guest", item] for item in first], dtype=object)
    np.testing.assert_allclose(np.diff(known.predict(pairs)), np.diff(ranker.item_bias_[:4]), atol=1e-12)
    assert known.proved.value == known.proved.bound == known.proved.relative_gap == 0.0


@pytest.mark.filterwarnings("ignore:training stopped")
def test_the_losses_that_an_error_names_are_fitted():
    with pytest.raises(OptionError, match="is none of") as raised:
        CofiRanker("bogus").fit(tastes())
    named = re.findall(r"'(\w+)'", str(raised.value).split("nor a measure")[0].split("none of")[1])
    assert {"regression", "ordinal", "preferences"} <= {*named}
    for loss in named:
        assert CofiRanker(loss, **QUICK, max_iter=1).fit(tastes()).n_iter_ == 1


HARD = {"loss": "nDCG@5", "factors": 4, "reg": 0.2, "tol": 1e-7, "item_prior": "mean"}


def test_ctrl_c_amid_a_round_leaves_the_model_of_the_last_one(monkeypatch):
    ratings = tastes()
    whole = CofiRanker(**HARD, callbacks=[lambda step, now: step.step == 2]).fit(ratings)
    ranker = interrupted_in_the_items_block(monkeypatch, CofiRanker(**HARD), ratings)
    assert ranker.n_iter_ == whole.n_iter_ == 2
    for name in ("user_factors_", "item_factors_", "item_bias_", "user_dual_coef_"):
        assert getattr(ranker, name).tobytes() == getattr(whole, name).tobytes()
    proved, before = ranker.certificate_, whole.certificate_
    assert proved.primal == before.primal
    assert proved.items > before.items  # the block had gone on
    assert ranker.verify(ratings)


def test_a_run_with_a_checkpoint_goes_on_after_ctrl_c_to_the_same_bits(monkeypatch, tmp_path):
    from rankopt.persistence.checkpoint import Checkpoint

    ratings, options = tastes(), {**HARD, "max_iter": 5}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        whole = CofiRanker(**options).fit(ratings)
    kept = Checkpoint(tmp_path / "run", every=3600)
    ranker = interrupted_in_the_items_block(monkeypatch, CofiRanker(**options, checkpoint=kept), ratings)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ranker.fit(ratings)
    for name in FITTED:
        assert getattr(ranker, name).tobytes() == getattr(whole, name).tobytes()


def test_what_ends_a_fit():
    ratings = tastes()
    hard = {"factors": 4, "reg": 0.1, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert CofiRanker(**hard, max_iter=2).fit(ratings).n_iter_ == 2
    assert CofiRanker(**hard, callbacks=[lambda step, now: step.step == 3]).fit(ratings).n_iter_ == 3

    def interrupt(step, now):
        if step.step == 2:
            raise KeyboardInterrupt

    whole = CofiRanker(**hard, callbacks=[lambda step, now: step.step == 2]).fit(ratings)
    ranker = CofiRanker(**hard, callbacks=[interrupt])
    with pytest.warns(TrainingInterruptedWarning):
        ranker.fit(ratings)
    assert ranker.n_iter_ == 2
    np.testing.assert_array_equal(ranker.item_factors_, whole.item_factors_)
    assert ranker.certificate_.stop is Stop.INTERRUPTED


FREE = {"factors": "free", "reg": 0.1, "tol": 2e-3}


def widths(loss, ratings, **options):
    """The width of the factors after each round of a run with free ones."""
    seen = []
    options = {**FREE, **options}
    CofiRanker(loss, **options, callbacks=[lambda step, now: seen.append(now.factors.dimensions)]).fit(ratings)
    return seen


def test_the_best_round_of_all_widths_is_kept_with_free_factors():
    ratings = tastes(users=60, each=20)
    mask = np.arange(len(ratings)) % 4 > 0
    train, other = ratings.select(mask), ratings.select(~mask)
    seen, options = [], {**FREE, "patience": 50, "tol": 1e-3}
    ranker = CofiRanker(**options, callbacks=[lambda step, now: seen.append(now.factors.dimensions)])
    ranker.fit(train, eval_set=other)
    judged = ranker.history_.judged
    assert len({*seen}) > 1
    assert len(judged) == len(seen) + 1
    assert ranker.best_score_ == judged.max() == pytest.approx(ranker.score(other), abs=1e-12)
    best = int(judged.argmax())
    assert ranker.item_factors_.shape[1] == ([seen[0], *seen])[best]
    short = CofiRanker(**{**options, "patience": 2}).fit(train, eval_set=other)
    assert len(short.history_) - 1 - short.history_.judged.argmax() <= 2


def test_rounds_of_all_widths_count():
    ratings = tastes()
    seen = widths("regression", ratings)
    first = seen.index(16) + 1  # the first round with more factors
    for most in (first - 1, first, first + 1):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            assert CofiRanker(**FREE, max_iter=most).fit(ratings).n_iter_ == most


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "preferences"])
def test_a_run_with_free_factors_goes_on_to_the_same_bits(loss, tmp_path):
    from rankopt.persistence.checkpoint import Checkpoint

    ratings = tastes(users=20, items=18, each=9)
    seen = widths(loss, ratings)
    whole = CofiRanker(loss, **FREE).fit(ratings)
    later = 1 + next(i for i, width in enumerate(seen) if width > seen[0])
    for dies in (1, later - 1, later, later + 1):
        kept = Checkpoint(tmp_path / f"{dies}", every=0)

        def die(step, now, last=dies):
            if step.step == last + 1:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            CofiRanker(loss, **FREE, checkpoint=kept, callbacks=[die]).fit(ratings)
        steps = []
        again = CofiRanker(loss, **FREE, checkpoint=kept, callbacks=[lambda step, now, to=steps: to.append(step)])
        again.fit(ratings)
        assert steps[0].step == dies + 1
        for name in FITTED:
            assert getattr(again, name).tobytes() == getattr(whole, name).tobytes()
        assert again.history_.primal.tolist() == whole.history_.primal.tolist()
        assert str(again.certificate_) == str(whole.certificate_)


def test_an_interruption_after_a_widening_keeps_the_fit(monkeypatch):
    from rankopt.collaborative.least_squares import Regression

    ratings, real = tastes(), Regression.around
    narrow = CofiRanker(**{**FREE, "factors": 8}).fit(ratings)

    def in_its_first_round(blocks, now, precision):
        if now.factors.dimensions > 8:
            raise KeyboardInterrupt
        return real(blocks, now, precision)

    def between(*given):
        raise KeyboardInterrupt

    for place, name, at in ((Regression, "around", in_its_first_round), (alternation, "_with_pairs", between)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, at)
            ranker = CofiRanker(**FREE)
            with pytest.warns(TrainingInterruptedWarning):
                ranker.fit(ratings)
        assert ranker.certificate_.stop is Stop.INTERRUPTED
        np.testing.assert_array_equal(ranker.item_factors_, narrow.item_factors_)


def test_an_interruption_of_the_bound_of_the_whole_keeps_the_factors(monkeypatch):
    from rankopt.rankers import cofi_training

    ratings, real = tastes(), cofi_training.certificate_of
    sound = CofiRanker(**QUICK).fit(ratings)

    def late(blocks, now, stop, whole):
        if whole:
            raise KeyboardInterrupt
        return real(blocks, now, stop, whole)

    monkeypatch.setattr(cofi_training, "certificate_of", late)
    ranker = CofiRanker(**QUICK)
    with pytest.warns(TrainingInterruptedWarning):
        ranker.fit(ratings)
    assert ranker.certificate_.stop is Stop.INTERRUPTED
    assert ranker.certificate_.kind == "blocks"
    np.testing.assert_array_equal(ranker.item_factors_, sound.item_factors_)


def test_more_factors_than_the_table_can_use_are_refused_before_they_take_memory():
    with pytest.raises(OptionError, match=r"factors = 1000000000 .* at most 30, or 'free'"):
        CofiRanker(factors=10**9, reg=0.5).fit(tastes())
    assert CofiRanker(factors=50, reg=0.5, compute_bound=False).fit(tastes()).item_factors_.shape == (30, 50)


def test_conventions_of_scikit_learn():
    ratings = tastes(users=60, each=20)
    user, item, value = triplets(ratings)
    ranker = CofiRanker("regression", **QUICK)
    assert clone(ranker).get_params() == ranker.get_params()
    with pytest.raises(NotFittedError):
        ranker.predict([(0, 1)])
    found = cross_val_score(ranker, np.column_stack([user, item]), value, cv=KFold(3, shuffle=True, random_state=0))
    assert (found > 0.5).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"loss": "nonsense"}, "nonsense"), ({"factors": 0}, "factors"), ({"factors": "many"}, "factors"),
        ({"reg": "much"}, "reg"), ({"reg": -1.0}, "reg"), ({"lam": 0.0}, "lam"),
        ({"bias_reg": 0}, "bias_reg"), ({"popularity_prior": -1}, "popularity_prior"), ({"init": "there"}, "init"),
        ({"patience": 0}, "patience"), ({"item_bias": "yes"}, "item_bias"), ({"max_iter": 0}, "max_iter"),
        ({"loss": "smooth"}, "planes"), ({"loss": "nDCG@5", "bound": "tight"}, "tight"),
    ],
)  # fmt: skip
def test_options_that_cannot_work(options, told):
    with pytest.raises(OptionError, match=told):
        CofiRanker(**options).fit(few())


@pytest.mark.parametrize(
    "rows", [[{1, 2}], [{"user": 1, "item": 2}], ["ab"], [(1, 2, 3)], {"a": 1}, 3, np.ones((3, 3))]
)
def test_what_is_no_pair_is_refused(rows):
    from scipy.sparse import csr_array

    ranker = CofiRanker(**QUICK).fit(few())
    for given in (rows, csr_array(np.ones((2, 2)))):
        with pytest.raises(DataError, match="pairs"):
            ranker.predict(given)


def test_an_eval_set_that_judges_nothing_is_refused():
    ratings = tastes()
    for given, told in (
        ([("0", 1), ("0", 2)], "user '0' is text"), ([("x", "a"), ("x", "b")], "no item of training"),
        ([("x", 1), ("x", 2)], "no user of training"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=told):
            CofiRanker(**QUICK).fit(ratings, eval_set=(given, [1, 2]))
    for given in ((ratings,), (ratings, None, None)):
        with pytest.raises(DataError, match=r"eval_set has . parts"):
            CofiRanker(**QUICK).fit(ratings, eval_set=given)


@pytest.mark.parametrize("name", ["reg", "lam", "bias_reg", "popularity_prior"])
def test_numbers_whose_products_overflow_are_refused(name):
    for value in (1e300, 1e-300)[: 1 if name == "popularity_prior" else 2]:
        with pytest.raises(OptionError, match=name):
            CofiRanker(**{**QUICK, name: value}).fit(few())


def test_data_that_cannot_be_used():
    ratings = few()
    with pytest.raises(DataError, match="y cannot be passed"):
        CofiRanker().fit(ratings, ratings.values)
    with pytest.raises(DataError, match="target y is None"):
        CofiRanker().fit([(1, 2)])
    with pytest.raises(DataError, match="twice"):
        CofiRanker().fit([(1, 2), (1, 2)], [3, 4])
    with pytest.raises(DataError, match="give user_weight"):
        CofiRanker("nDCG@5").fit(ratings, sample_weight=np.ones(len(ratings)))
    with pytest.raises(DataError, match="no order to learn"):
        CofiRanker("nDCG@5").fit([(1, 2), (2, 2)], [3, 4])
    with pytest.raises(DataError, match="positive"):
        CofiRanker().fit(ratings, user_weight=np.zeros(5))
    ranker = CofiRanker(**QUICK).fit(ratings)
    with pytest.raises(DataError, match="no user has two"):
        ranker.score([(ratings.users[0], ratings.items[0])], [3])


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_all_engines_agree_bit_for_bit(loss, workers, monkeypatch):
    from rankopt.collaborative import least_squares, plane_blocks

    monkeypatch.setattr(plane_blocks, "CHUNK", 100)  # five shards
    monkeypatch.setattr(least_squares, "SHARD_ROWS", 100)
    ratings = tastes()
    found = {}
    for engine, n_jobs in (("serial", None), ("threads", 3), (workers, None)):
        options = {**QUICK, "max_iter": 3, "tol": 1e-2}
        ranker = CofiRanker(loss, **options, engine=engine, n_jobs=n_jobs).fit(ratings)
        found[str(engine)] = [getattr(ranker, name).tobytes() for name in FITTED]
    assert found["serial"] == found["threads"] == found[str(workers)]


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # three rounds are enough here
def test_users_whose_fold_tells_nothing_are_left_out_of_it():
    """With three ratings a user, some part of four fifths of them is all equal."""
    ranker = CofiRanker("nDCG@5", factors=2, max_iter=3, tol=1e-2).fit(tastes(users=30, each=3))
    assert ranker.chosen_.reg in ranker.chosen_.tried


@pytest.mark.parametrize("loss", ["AP", "P@1", "nDCG@10 + P@1"])
def test_a_measure_to_which_every_star_is_relevant_names_its_cure(loss):
    stars = Ratings.from_arrays(["a", "a", "a", "b", "b", "c", "c"], [1, 2, 3, 1, 3, 2, 4], [1, 2, 5, 4, 3, 1, 3])
    asked = "AP(rel=4)" if loss == "AP" else "P(rel=4)@1"
    with pytest.raises(DataError, match="count as relevant; set the smallest relevant one") as caught:
        CofiRanker(loss, **QUICK).fit(stars)
    assert str(caught.value).endswith(asked)
    CofiRanker(loss.replace("AP", asked).replace("P@1", asked), **QUICK).fit(stars)


def test_a_measure_to_which_every_star_is_relevant_judges_nothing():
    """Neither a score, nor held-out ratings, nor a strength: all of them would be 1."""
    ratings = tastes()
    stars = Ratings.from_arrays(*triplets(ratings)[:2], 1.0 + np.arange(ratings.n_ratings) % 5)
    says = r"measure AP cannot judge these ratings .*; all are above 0 .*: AP\(rel=4\)"
    with pytest.raises(MeasureError, match=says):
        CofiRanker(measure="AP").fit(stars)
    with pytest.raises(MeasureError, match=says):
        CofiRanker(measure="AP", **QUICK).fit(stars, eval_set=stars)
    ranker = CofiRanker(measure="AP", **QUICK).fit(stars)
    with pytest.raises(MeasureError, match=says):
        ranker.score(stars)
    assert 0 < ranker.set_params(measure="AP(rel=4)").score(stars) < 1


def test_the_certificate_speaks_of_the_blocks_where_their_gaps_are_closed():
    proved = CofiRanker(**QUICK).fit(few()).certificate_
    assert proved.stop is Stop.GAP
    assert str(proved).endswith("the gaps of both blocks are within the tolerance")


@pytest.mark.parametrize("loss", ["preferences", "regression"])
def test_items_without_ratings_change_nothing(loss):
    ratings = tastes()
    user, item, value = triplets(ratings)
    more = Ratings.from_arrays(user, item, value, items=[*ratings.items.tolist(), *range(-40, 0)])
    one, two = (CofiRanker(loss, **QUICK).fit(some) for some in (ratings, more))
    pairs = np.column_stack([user, item])
    np.testing.assert_array_equal(one.predict(pairs), two.predict(pairs))
    assert one.certificate_ == two.certificate_
    np.testing.assert_array_equal(
        two.predict([[user[0], -1], [user[0], 999]]), two.cold_start_bias_ + two.user_bias_[0]
    )
    assert two.verify(more).holds


def test_free_factors_make_room_where_a_table_has_no_more():
    open_, narrow = [], []
    for seed in range(6):
        draws = np.random.default_rng(seed)
        user, item = np.nonzero(draws.random((5, 8)) < 0.8)
        ratings = Ratings.from_arrays(user, item, draws.integers(1, 6, user.size))
        options = {"reg": 0.3, "tol": 1e-5, "max_iter": 1000}
        for factors, found in ((8, narrow), ("free", open_)):
            found.append(CofiRanker("preferences", factors=factors, **options).fit(ratings).certificate_.relative_gap)
    assert all(free <= fixed + 1e-6 for free, fixed in zip(open_, narrow, strict=True))
    assert np.mean(open_) < 0.5 * np.mean(narrow)


def test_what_does_not_go_together_is_blamed_on_what_is_wrong():
    with pytest.raises(OptionError, match=r"^bound 'convexx' is unknown"):
        CofiRanker("nDCG@5", bound="convexx").fit(tastes())
    with pytest.raises(OptionError, match=r"^position_weights = 'foo' is none of"):
        CofiRanker("nDCG@5", position_weights="foo").fit(tastes())
    with pytest.raises(OptionError, match=r"lam must be a number >= 1e-100 and <= 1e\+100 or None; got 1e\+300"):
        CofiRanker(lam=1e300).fit(tastes())
    ranker = CofiRanker("nDCG@5", **QUICK).fit(tastes())
    for reg in (1e-300, 1e300, 0.0):
        with pytest.raises(OptionError, match="reg must be a number >= 1e-100"):
            ranker.fold_in(tastes(seed=1), reg=reg)


def test_an_eval_set_may_stand_in_a_list_as_lightgbm_has_it():
    ratings = tastes()
    user, item, value = triplets(ratings)
    held = (np.column_stack([user, item]), value)
    one, two = (CofiRanker(**QUICK).fit(ratings, eval_set=given) for given in (held, [held]))
    assert one.best_score_ == two.best_score_


def generated(users, each=100, items=1100):
    """Ratings 1 to 5, `each` of every user, on items that lie in a row."""
    draws = np.random.default_rng(0)
    item = (draws.integers(items, size=users)[:, None] + 11 * np.arange(each)) % items
    rating = draws.integers(1, 6, size=item.size)
    return Ratings.from_arrays(np.repeat(np.arange(users), each), item.ravel(), rating)


@pytest.mark.filterwarnings("ignore:training stopped")
def test_a_regression_takes_at_most_48_bytes_a_rating():
    """Beyond what it keeps, 8 of dual slopes: 24 of ratings in both orders, 8 of slopes, and some of the factors."""
    ratings = generated(1000)
    ranker = CofiRanker(reg=0.6, compute_bound=False, max_iter=2, n_jobs=1).fit(ratings)  # kernels are loaded
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
    ranker = CofiRanker("nDCG@5", reg=0.6, max_iter=2, item_prior="mean", n_jobs=1)
    for lasting in (ratings.n_ratings, ratings.n_ratings - 1):
        monkeypatch.setattr(encoded_ratings, "LASTING", lasting)
        ranker.fit(ratings)
        found.append((ranker.user_factors_.tobytes(), ranker.item_bias_.tobytes(), ranker.certificate_.bound))
    assert found[0] == found[1]


# What `CofiRanker` settles before it trains: the prior of items, its pull under every loss, the strength in time.


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
        assert regularization._choose(values, tried, 0.65).reg == expected
        assert regularization._is_lower(list(values)) == (max(means) - means[-1] > 0.03)
    assert regularization._choose(np.full((4, 3), np.nan), tried, 0.7).reg == 0.65
    assert regularization._choose(own[None, :], tried, 0.65).reg == 1.0


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
    fold, scores = regularization.folds_of(rated, regularization.FOLDS), np.empty(rated.n_ratings)
    known = UserLoss.named("regression", "convex", "shifted(0.25)")
    for one in range(regularization.FOLDS):
        blocks, _ = Penalties(0.1, 10.0, 10.0).blocks(known, rated.select(fold != one), None)
        scores[fold == one] = blocks.offsets_only().factors.offsets[rated.columns[fold == one]]
    told = regularization.rated_only(rated.bounds, rated.values, scores, "nDCG@10")
    assert found.reached[0] == pytest.approx(np.nanmean(told))


@pytest.mark.study
@pytest.mark.filterwarnings("ignore:training stopped")
def test_the_choice_of_a_strength_ends_in_half_of_the_time(monkeypatch):
    ratings = tastes(users=60, each=16)
    CofiRanker("nDCG@5", factors=3, reg=0.5, max_iter=1, tol=0.5).fit(ratings)  # kernels are loaded
    alternated = regularization.alternated

    def slowly(*given):
        end = perf_counter() + 0.1
        while perf_counter() < end:
            pass
        return alternated(*given)

    monkeypatch.setattr(regularization, "alternated", slowly)
    with pytest.warns(ConvergenceWarning, match=r"half of time_limit was over when reg='auto' had tried 1"):
        ranker = CofiRanker("nDCG@5", factors=3, time_limit=1.0).fit(ratings)
    assert ranker.chosen_.cut
    assert len(ranker.chosen_.tried) < len(regularization.STRENGTHS)
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
    monkeypatch.setattr("rankopt.collaborative.regularization.choose_strength", None)
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
    fold = regularization.folds_of(rated, regularization.FOLDS)
    for one in range(regularization.FOLDS):
        assert {*rated.columns[fold != one].tolist()} == {*range(items)}
    sizes = np.array([np.unique(rated.columns[fold == one]).size for one in range(regularization.FOLDS)])
    assert (sizes == items).all()
    assert np.ptp(np.bincount(fold, minlength=regularization.FOLDS)) <= 1


@pytest.mark.parametrize("unit", [0.2, 0.25, 20.0, 1024.0])
def test_the_unit_of_the_ratings_changes_no_choice_and_no_list(unit):
    user, item, value = triplets(tastes())
    pairs = np.column_stack([user, item])
    one, other = (CofiRanker(factors=2).fit(pairs, value * c) for c in (1.0, unit))
    assert other.chosen_.reached == pytest.approx(one.chosen_.reached, rel=1e-9)
    assert other.reg_ == one.reg_
    np.testing.assert_allclose(other.predict(pairs) / unit, one.predict(pairs), rtol=1e-9)


def test_ratings_too_large_for_the_measure_are_refused_with_a_measure_that_works():
    ratings = tastes()
    user, item, value = triplets(ratings)
    large = Ratings.from_arrays(user, item, value * 1000.0)
    ranker = CofiRanker(factors=2).fit(large)
    with pytest.raises(MeasureError, match=r"measure nDCG@10 .* up to 5000 .* measure=\"nDCG\(gain='linear'\)@10\""):
        ranker.score(large)
    assert CofiRanker("nDCG(gain='linear')@10", measure="nDCG(gain='linear')@10", **QUICK).fit(large).score(large) > 0.5
    with pytest.raises(MeasureError, match=r"loss nDCG@10 .* loss=\"nDCG\(gain='linear'\)@10\""):
        CofiRanker("nDCG@10", **QUICK).fit(large)
    with pytest.raises(OptionError, match="overflows for the grade 5000"):
        CofiRanker("preferences", **QUICK).fit(large)
    assert CofiRanker(partial(PreferenceHinge, gain="linear"), **QUICK).fit(large).user_factors_.any()
