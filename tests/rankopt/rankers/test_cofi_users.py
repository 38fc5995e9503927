"""Users that are solved once more: the best for the items found at λ_U of their own, and nothing else changes."""

import pickle
from copy import deepcopy
from dataclasses import replace
from itertools import product

import cvxpy
import numpy as np
import pytest
from problems.rated import few, tastes
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative import alternation as best
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.regularization import LONG, RELAXED, Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.errors import Interrupted, ModelError, OptimumAtStart, OptionError
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.rankers import CofiRanker, load_model
from rankopt.rankers import cofi_training as cofi_users
from rankopt.ratings.table import Ratings
from rankopt.report.cofi_page import page_of_cofi

QUICK = {"factors": 3, "strength": 0.5}
WEAK = {**QUICK, "user_strength": 0.2}
LOSSES = ("regression", "ordinal", "nDCG@5", "preferences")
OF_TRAINING = (
    "trained_user_factors_", "trained_user_offsets_", "item_factors_", "item_offsets_", "item_prior_", "dual_slopes_",
    "dual_heights_", "item_dual_slopes_", "item_dual_heights_",
)  # fmt: skip
OF_USERS = ("user_factors_", "user_offsets_")


def loss_of_ordinal(ranker, ratings):
    """Σ l_u of its scores, the hinge of each pair of different stars, the mean over pairs of a user."""
    total, scores = 0.0, ranker.predict(ratings)
    for u in range(ratings.n_users):
        rows = slice(*ratings.bounds[u : u + 2].tolist())
        y, f = ratings.values[rows], scores[rows]
        worse, better = np.nonzero(y[:, None] < y[None, :])
        total += float(((y[better] - y[worse]) * np.maximum(1 + f[worse] - f[better], 0.0)).sum() / max(worse.size, 1))
    return total


def same(one, two, names=(*OF_TRAINING, *OF_USERS)):
    return all(getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in names)


def test_relaxed_users_are_the_best_for_the_items_that_were_found():
    """Five users and eight films, a hinge for each pair of different stars, against cvxpy."""
    ratings = few()
    ranker = CofiRanker("ordinal", factors=2, strength=0.3, user_strength=0.1, tol=1e-8, max_iter=500).fit(ratings)
    lam, costs = 0.1 * ranker.lam_max_, {"ours": 0.0, "trained": 0.0, "best": 0.0}
    for u in range(ratings.n_users):
        rows = slice(*ratings.bounds[u : u + 2].tolist())
        y, items = ratings.values[rows], ratings.columns[rows]
        x, b = ranker.item_factors_[items], ranker.item_offsets_[items]
        worse, better = np.nonzero(y[:, None] < y[None, :])
        cost = (y[better] - y[worse]) / worse.size
        own = cvxpy.Variable(2)
        f = b + x @ own
        program = cost @ cvxpy.pos(1 + f[worse] - f[better]) + lam / 2 * cvxpy.sum_squares(own)
        costs["best"] += cvxpy.Problem(cvxpy.Minimize(program)).solve("CLARABEL")
        for name, factors in (("ours", ranker.user_factors_), ("trained", ranker.trained_user_factors_)):
            own.value = factors[u]
            costs[name] += program.value
    assert costs["ours"] == pytest.approx(costs["best"], rel=1e-6)
    assert 0.0 <= ranker.user_gap_ <= 1e-6
    assert costs["ours"] * (1.0 - ranker.user_gap_) <= costs["best"] * (1.0 + 1e-7)
    assert costs["trained"] > 1.001 * costs["best"]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_ratings_of_the_fit_folded_in_give_its_users(loss):
    """What is within g of the least of a sum that bends as (λ/2)‖U‖² does lies within √(2g/λ) of it."""
    ratings = tastes()
    ranker = CofiRanker(loss, **WEAK, tol=1e-6, max_iter=500).fit(ratings)
    folded = ranker.fold_in(ratings)
    open_ = 1e-6 * folded.proved.value
    assert ranker.user_strength_ == 0.2
    away = np.linalg.norm(folded.factors.users - ranker.user_factors_)
    assert away <= 2 * np.sqrt(2 * open_ / (0.2 * ranker.lam_max_))
    np.testing.assert_allclose(folded.factors.user_offsets, ranker.user_offsets_, atol=1e-6)
    trained = np.linalg.norm(ranker.trained_user_factors_ - ranker.user_factors_)
    assert trained > 10 * away
    other = ranker.fold_in(ratings, strength=ranker.strength_).factors.users
    assert np.linalg.norm(other - ranker.trained_user_factors_) < trained


@pytest.mark.parametrize("loss", LOSSES)
def test_the_training_knows_nothing_of_it(loss):
    ratings = tastes()
    plain, none, weak, given = (
        CofiRanker(loss, **options).fit(ratings)
        for options in (QUICK, {**QUICK, "user_strength": None}, WEAK, {**QUICK, "user_strength": 0.5})
    )
    assert same(plain, none)
    assert same(plain, given)
    assert same(plain, weak, OF_TRAINING)
    assert str(plain.certificate_) == str(weak.certificate_)
    for one in (plain, none, given):
        assert one.user_strength_ == one.strength_
        assert one.user_factors_ is one.trained_user_factors_
        assert one.user_offsets_ is one.trained_user_offsets_
    assert weak.user_strength_ == 0.2
    assert weak.user_offsets_.any() == (loss == "regression")
    assert np.linalg.norm(weak.user_factors_) > np.linalg.norm(weak.trained_user_factors_)


def test_two_thirds_are_taken_of_a_strength_that_was_chosen_for_a_convex_loss_of_orders():
    ratings = tastes(users=15, items=40, each=LONG)
    options = {"factors": 2, "tol": 1e-2}
    ranker = CofiRanker("ordinal", **options).fit(ratings)
    assert ranker.chosen_.strength >= 0.75
    assert ranker.user_strength_ == RELAXED * ranker.chosen_.strength
    assert abs(3 * RELAXED - 2) < 1e-15
    as_trained = CofiRanker("ordinal", **options, user_strength=None).fit(ratings)
    assert as_trained.user_strength_ == as_trained.strength_
    assert same(ranker, as_trained, OF_TRAINING)
    np.testing.assert_array_equal(as_trained.user_factors_, ranker.trained_user_factors_)
    for kept in (CofiRanker(**options), CofiRanker("ordinal", **options, lam=1.0), CofiRanker("ordinal", **QUICK)):
        kept.fit(ratings)
        assert kept.user_strength_ == kept.strength_
        assert kept.user_factors_ is kept.trained_user_factors_
    short = CofiRanker("ordinal", **options).fit(tastes(users=10, items=40, each=LONG - 1))
    weak = CofiRanker("ordinal", **options).fit(tastes(users=30, items=40, each=LONG))
    assert short.strength_ >= 0.75 > weak.strength_
    assert short.user_strength_ == short.strength_
    assert weak.user_strength_ == weak.strength_


@pytest.mark.study
def test_a_bound_that_is_not_convex_keeps_the_users_of_the_training():
    ratings = tastes(users=20, items=40, each=LONG)
    ranker = CofiRanker("nDCG@5", bound="nonconvex", factors=2, tol=1e-2).fit(ratings)
    assert ranker.user_strength_ == ranker.strength_


def test_what_is_asked_for_follows_from_the_options():
    ranker = CofiRanker("ordinal", **QUICK).fit(tastes())
    found = pickle.loads(pickle.dumps(CofiRanker(factors=1, max_iter=1, tol=0.5).fit(tastes()).chosen_))
    cases = [
        ("ordinal", "convex", True), ("nDCG@5", "convex", True), ("nDCG@5", "tie-aware", False),
        ("nDCG@5", "nonconvex", False), ("regression", "convex", False),
    ]  # fmt: skip
    for (loss, bound, able), strength in product(cases, (1.0, 0.85, 0.75, 0.65, 0.25)):
        chosen = replace(found, strength=strength)
        expected = RELAXED * strength if able and strength >= 0.75 else None
        kind = UserLoss.named(loss, bound, "shifted(0.25)")
        for counts, asked in (([5, LONG, LONG + 9], expected), ([5, LONG - 1, LONG + 9], None)):
            counted = np.array(counts)
            assert ranker._asked_of_users(kind, chosen, counted) == asked
            assert ranker._asked_of_users(kind, None, counted) is None
            assert clone(ranker).set_params(user_strength=0.1)._asked_of_users(kind, chosen, counted) == 0.1
            assert clone(ranker).set_params(user_strength=None)._asked_of_users(kind, chosen, counted) is None


@pytest.mark.parametrize("loss", ["regression", "ordinal"])
def test_names_and_the_order_of_rows_play_no_part(loss):
    ratings = tastes()
    draws = np.random.default_rng(1)
    users, films = draws.permutation(1000)[:40], np.array([f"film {i}" for i in draws.permutation(30)])
    rows = draws.permutation(len(ratings))
    other = Ratings.of(users[ratings.user_of()][rows], films[ratings.columns][rows], ratings.values[rows])
    one, two = (CofiRanker(loss, **WEAK).fit(some) for some in (ratings, other))
    found = two.user_factors_[other.user_index(users)]
    np.testing.assert_allclose(found, one.user_factors_, rtol=0, atol=1e-12)
    assert one.user_strength_ == two.user_strength_ == 0.2


def test_saved_and_loaded(tmp_path):
    ratings = tastes()
    for loss in ("ordinal", "regression"):
        ranker = CofiRanker(loss, **WEAK).fit(ratings)
        ranker.save(tmp_path / "model")
        for again in (load_model(tmp_path / "model"), pickle.loads(pickle.dumps(ranker))):
            assert same(ranker, again)
            assert again.user_strength_ == 0.2
            assert again.get_params()["user_strength"] == clone(again).user_strength == 0.2
            np.testing.assert_array_equal(again.predict(ratings), ranker.predict(ratings))
            np.testing.assert_array_equal(again.fold_in(ratings).factors.users, ranker.fold_in(ratings).factors.users)
            assert again.verify(ratings)


def test_a_model_whose_users_do_not_fit_together_is_refused(tmp_path):
    whole = CofiRanker(**WEAK).fit(tastes())
    for name, value, told in (
        ("trained_user_factors_", whole.user_factors_[:-1], "trained_user_factors_ is missing or has another shape"),
        ("trained_user_factors_", whole.user_factors_ * np.nan, "trained_user_factors_ holds numbers that are not"),
        ("trained_user_offsets_", whole.user_factors_, "trained_user_offsets_ is missing or has another shape"),
        ("user_strength_", "weak", "user_strength_ is missing or no number"),
        ("user_strength_", 0.0, "user_strength_ are above 0"),
        ("user_strength", "weak", "a parameter or an id has a value that cannot work"),
    ):
        ranker = deepcopy(whole)
        setattr(ranker, name, value)
        with pytest.raises(ModelError, match=told):
            ranker.save(tmp_path / "model")
    for name in ("trained_user_factors_", "trained_user_offsets_", "user_strength_"):
        ranker = deepcopy(whole)
        delattr(ranker, name)
        with pytest.raises(ModelError, match=f"{name} is missing"):
            ranker.save(tmp_path / "model")


@pytest.mark.parametrize("loss", ["regression", "ordinal"])
def test_a_run_that_died_or_ended_goes_on_to_the_same_bits(loss, tmp_path):
    ratings, options = tastes(), {"factors": 4, "strength": 0.2, "user_strength": 0.1}
    whole = CofiRanker(loss, **options).fit(ratings)

    def die(step, now):
        if step.step == 2:
            raise ZeroDivisionError

    kept = Checkpoint(tmp_path, every=0)
    with pytest.raises(ZeroDivisionError):
        CofiRanker(loss, **options, checkpoint=kept, callbacks=[die]).fit(ratings)
    for _ in range(2):  # the second begins where the first ended
        again = CofiRanker(loss, **options, checkpoint=kept).fit(ratings)
        assert same(whole, again)
        assert again.user_strength_ == 0.1


@pytest.mark.parametrize("loss", ["regression", "ordinal"])
def test_eval_set_keeps_the_better_users(loss):
    ratings = tastes(users=60, each=20)
    mask = np.arange(len(ratings)) % 4 > 0
    train, other = ratings.keep(mask), ratings.keep(~mask)
    plain = CofiRanker(loss, **QUICK).fit(train, eval_set=other)
    taken = set()
    for strength in (0.01, 0.1, 0.3, 0.45, 0.6, 1.0, 30.0):
        alone = CofiRanker(loss, **QUICK).fit(train, eval_set=other)
        alone.user_factors_, alone.user_offsets_ = (
            getattr(alone.fold_in(train, strength=strength).factors, name) for name in ("users", "user_offsets")
        )
        ranker = CofiRanker(loss, **QUICK, user_strength=strength).fit(train, eval_set=other)
        assert ranker.eval_score_ == pytest.approx(ranker.score(other), abs=1e-12)
        relaxed = ranker.user_strength_ != ranker.strength_
        assert ranker.user_strength_ == (strength if relaxed else ranker.strength_)
        assert relaxed == (ranker.user_factors_ is not ranker.trained_user_factors_)
        assert ranker.eval_score_ >= plain.eval_score_
        if not relaxed:
            assert ranker.eval_score_ == plain.eval_score_ >= alone.score(other) - 2e-3
        assert same(plain, ranker, OF_TRAINING)
        assert ranker.verify(train)
        taken.add(relaxed)
    assert taken == {False, True}


@pytest.mark.parametrize("loss", ["regression", "ordinal"])
def test_an_interruption_leaves_the_users_of_the_training(loss, monkeypatch):
    from rankopt.rankers import cofi_training as cofi_users

    def interrupted(*given):
        raise KeyboardInterrupt

    ratings, sound = tastes(), CofiRanker(loss, **QUICK).fit(tastes())
    monkeypatch.setattr(cofi_users, "best_users", interrupted)
    ranker = CofiRanker(loss, **WEAK)
    with pytest.raises(Interrupted):
        ranker.fit(ratings)
    assert same(ranker, sound)
    assert ranker.user_strength_ == ranker.strength_
    assert ranker.certificate_.stop is Stop.INTERRUPTED
    assert ranker.certificate_.bound == sound.certificate_.bound
    assert ranker.verify(ratings)


def test_without_factors_there_is_nothing_to_solve():
    ratings = tastes()
    for loss in ("regression", "ordinal"):
        with pytest.warns(OptimumAtStart):
            ranker = CofiRanker(loss, factors=3, strength=1.5, user_strength=0.1).fit(ratings)
        assert not ranker.user_factors_.any()
        assert ranker.user_strength_ == ranker.strength_
        assert ranker.user_factors_ is ranker.trained_user_factors_
    equal = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [3.0, 3.0, 3.0, 3.0])  # λ_max = 0
    ranker = CofiRanker(factors=1, strength=0.5, user_strength=1.0, popularity=0.0).fit(equal)
    assert ranker.user_strength_ == ranker.strength_
    assert ranker.verify(equal)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{"by_counts": True}, {"offsets": False}, {"factors": "free"}, {"max_iter": 1}])
def test_it_goes_with_every_other_option(options):
    ratings = tastes()
    for loss in ("regression", "ordinal"):
        ranker = CofiRanker(loss, **{**WEAK, **options}).fit(ratings)
        assert ranker.user_strength_ == 0.2
        assert ranker.verify(ratings), str(ranker.verify(ratings))


def test_weights_count_for_it_too():
    ratings, rng = tastes(), np.random.default_rng(3)
    by_rating, by_user = rng.uniform(0.5, 2.0, ratings.n_ratings), rng.uniform(0.5, 2.0, ratings.n_users)
    for loss, weights in (("regression", {"sample_weight": by_rating}), ("ordinal", {"user_weight": by_user})):
        ranker = CofiRanker(loss, **WEAK).fit(ratings, **weights)
        assert ranker.verify(ratings, **weights)
        folded = ranker.fold_in(ratings, **weights)
        np.testing.assert_allclose(folded.factors.users, ranker.user_factors_, atol=0.05)


@pytest.mark.parametrize("bound", ["tie-aware", "nonconvex"])
def test_of_a_bound_that_is_not_convex_majorants_follow_each_other(bound):
    """J never rises from one to the next, and one alone ends above where they end."""
    ratings = tastes()
    kind = UserLoss.named("nDCG@5", bound, "shifted(0.25)")
    rated = kind.seen(EncodedRatings.of(ratings))
    blocks = kind.blocks(Penalties(0.1, 10.0, None).problem(rated).at_strength(0.02, 0.3), None)
    draws = np.random.default_rng(0)
    start = blocks.problem.without_factors()
    start = type(start)(np.zeros((40, 2)), draws.normal(size=(30, 2)), start.offsets, start.user_offsets)
    now = blocks.at(start)
    found = best.best_users(blocks, now, 1e-5)
    once = blocks.with_users(now, 1e-5)
    assert found.value < once.value < now.value
    again = best.best_users(blocks, found, 1e-5)
    assert again.value <= found.value
    assert found.value - again.value <= 1e-3 * found.value
    ranker = CofiRanker("nDCG@5", bound=bound, **WEAK, tol=1e-3).fit(ratings)
    assert ranker.user_strength_ == 0.2
    assert ranker.verify(ratings)


FORGED = {
    "shrunk": ("user_factors_", lambda ranker: 0.5 * ranker.user_factors_, "users cost"),
    "others'": ("user_factors_", lambda ranker: np.roll(ranker.user_factors_, 1, axis=0), "users cost"),
    "huge": ("user_factors_", lambda ranker: 1e200 * ranker.user_factors_, "users cost inf"),
    "no number": ("user_factors_", lambda ranker: np.nan * ranker.user_factors_, "not all finite"),
    "those of the training": ("user_factors_", lambda ranker: ranker.trained_user_factors_.copy(), "those of the tra"),
    "unproved": ("user_dual_slopes_", lambda ranker: 0.5 * ranker.user_dual_slopes_, "users"),
    "too high": ("user_dual_heights_", lambda ranker: ranker.user_dual_heights_ + 1.0, "above the loss"),
    "no proof": ("user_dual_slopes_", lambda ranker: np.zeros(0), "no dual state"),
    "trained": ("trained_user_factors_", lambda ranker: 1.01 * ranker.trained_user_factors_, "J is"),
    "final as trained": ("trained_user_factors_", lambda ranker: ranker.user_factors_, "J is"),
    "as trained": ("user_strength_", lambda ranker: ranker.strength_, "users are not those of the training"),
    "other": ("user_strength_", lambda ranker: 0.25, "user_strength_ = 0.25 is neither strength_ = 0.5 nor"),
    "asked": ("user_strength", lambda ranker: 0.3, r"neither strength_ = 0.5 nor what was asked for, 0.3"),
    "not asked": ("user_strength", lambda ranker: None, "nor what was asked for, nothing else"),
}


@pytest.mark.parametrize("loss", ["regression", "ordinal", "nDCG@5"])
def test_what_was_tampered_with_is_named(loss):
    ratings = tastes(users=15, items=12, each=8)
    whole = CofiRanker(loss, factors=2, strength=0.5, user_strength=0.2).fit(ratings)
    assert whole.verify(ratings).holds
    for case, (name, value, told) in FORGED.items():
        forged = deepcopy(whole)
        with np.errstate(over="ignore"):
            setattr(forged, name, value(whole))
        wrong = forged.verify(ratings).wrong
        assert any(told in one for one in wrong), (case, wrong)
    if loss == "regression":
        for name, told in (("user_offsets_", "users cost"), ("trained_user_offsets_", "J is")):
            forged = deepcopy(whole)
            setattr(forged, name, getattr(whole, name) + 0.5)
            assert any(told in one for one in forged.verify(ratings).wrong)
    forged = deepcopy(whole)
    for of_users in OF_USERS:  # better than those of the training, and far from the best
        trained, best = getattr(whole, f"trained_{of_users}"), getattr(whole, of_users)
        setattr(forged, of_users, 0.98 * trained + 0.02 * best)
    assert any("more than user_gap_ apart" in one for one in forged.verify(ratings).wrong)
    plain = CofiRanker(loss, factors=2, strength=0.5).fit(ratings)
    plain.user_factors_ = plain.user_factors_ * 1.001
    assert plain.verify(ratings).wrong == (
        "users are not those of the training, though user_strength_ = strength_ says so",
    )


def test_users_that_are_not_solved_are_told_with_their_gap(monkeypatch):
    """As where a solver ends too soon: the gap is a true one, and a warning names it."""
    coarse = lambda blocks, now, tol: best.best_users(blocks, now, 0.3)  # noqa: E731
    monkeypatch.setattr(cofi_users, "best_users", coarse)
    ratings = tastes(users=15, items=12, each=8)
    with pytest.warns(ConvergenceWarning, match=r"users of user_strength = 0.05 may cost .* more than the best"):
        ranker = CofiRanker("ordinal", factors=2, strength=0.5, user_strength=0.05).fit(ratings)
    monkeypatch.undo()
    assert ranker.verify(ratings)
    least = ranker.fold_in(ratings).proved
    most = least.value / (1.0 - ranker.user_gap_)
    assert ranker.user_gap_ > 1e-3
    own = 0.05 * ranker.lam_max_ / 2 * (ranker.user_factors_**2).sum()
    assert least.bound <= own + loss_of_ordinal(ranker, ratings) <= most * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", ["regression", "ordinal", "nDCG@5"])
@pytest.mark.parametrize("weight", [1.0, 1e-14, 1e-30])
def test_a_guest_who_hardly_counts_is_told_no_gap_that_is_not_so(loss, weight):
    ratings = tastes(users=15, items=12, each=8)
    ranker = CofiRanker(loss, **QUICK).fit(ratings)
    guest = Ratings.of(["guest"] * 3, ratings.items[:3], [5.0, 1.0, 3.0])
    known, light = ranker.fold_in(guest), ranker.fold_in(guest, user_weight={"guest": weight})
    free = ranker.fold_in(guest, strength=1e6).proved.value  # hardly any factors: what a light guest pays
    assert light.proved.value / weight <= free * (1.0 + 1e-4)
    assert light.proved.value / weight >= known.proved.value * (1.0 - 1e-6)
    assert light.proved.relative_gap > 0.5 or light.proved.bound >= 0.9 * light.proved.value


@pytest.mark.parametrize("value", ["much", 0, -1.0, float("nan"), 1e300, True, (0.5,), np.array([0.1, 0.2])])
def test_strengths_that_cannot_be_are_refused(value):
    with pytest.raises(OptionError, match=r"user_strength = .* is no part of λ_max; give a number .*'auto', or None"):
        CofiRanker(**QUICK, user_strength=value).fit(few())


def test_the_page_says_of_which_users_it_tells():
    ratings = tastes()
    told = "For the items that were found users were solved once more, at 0.2 λ_max"
    for options, said in ((QUICK, False), (WEAK, True)):
        page = page_of_cofi(CofiRanker(**options).fit(ratings), [], None, "genre", "sample")
        assert (told in page) == said


def test_time_that_is_over_leaves_users_of_their_strength():
    with pytest.warns(ConvergenceWarning):
        ranker = CofiRanker("ordinal", **WEAK, time_limit=1e-9, tol=1e-9).fit(tastes())
    assert ranker.user_strength_ == 0.2
