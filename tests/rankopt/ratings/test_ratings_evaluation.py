"""Splits hold out what they say, and every number is the measure of the lists that its protocol names."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.evaluation import compare, evaluate
from rankopt.ratings import (
    ItemMeanBaseline,
    PopularityBaseline,
    Ratings,
    evaluate_ratings,
    given_split,
    load_ratings_sample,
    strong_split,
    weak_split,
)


def made(seed=0, users=40, items=60, n=900):
    random = np.random.default_rng(seed)
    pairs = random.choice(users * items, n, replace=False)
    return Ratings.from_arrays(
        pairs // items, pairs % items, random.integers(1, 6, n), users=range(users), items=range(items)
    )


def pairs(ratings):
    return set(zip(ratings.user_of().tolist(), ratings.columns.tolist(), ratings.values.tolist(), strict=True))


def test_weak_generalization_trains_on_n_of_every_user_and_tests_on_all_others():
    ratings = made()
    split = weak_split(ratings, n=10, seed=3)
    sizes, train, test = (np.diff(one.bounds) for one in (ratings, split.train, split.test))
    kept = sizes >= 20
    assert 0 < kept.sum() < 40
    assert (train == np.where(kept, 10, 0)).all()
    assert (test == np.where(kept, sizes - 10, 0)).all()
    assert not pairs(split.train) & pairs(split.test)
    assert pairs(split.train) | pairs(split.test) <= pairs(ratings)
    assert split.train.users is ratings.users
    assert split.seen is split.train
    assert split.protocol == f"weak generalization, n = 10, {kept.sum()} users, seed 3"


def test_strong_generalization_tells_n_ratings_of_the_keenest_users():
    ratings = made()
    split = strong_split(ratings, n=5, users=6, least=12, seed=1)
    kept = ratings.counts >= 12
    assert 0 < kept.sum() < 60
    assert split.train.items.tolist() == ratings.items[kept].tolist()
    left = ratings.select(kept[ratings.columns], drop=True)
    sizes, train, known, test = (np.diff(one.bounds) for one in (left, split.train, split.known, split.test))
    new = known > 0
    assert new.sum() == 6
    assert sizes[new].min() >= sizes[~new].max()
    assert (known == 5 * new).all()
    assert (train == np.where(new, 0, sizes)).all()
    assert (train + known + test == sizes).all()
    assert pairs(split.train) | pairs(split.known) | pairs(split.test) == pairs(left)
    assert split.seen is split.known


@pytest.mark.parametrize("split_of", [weak_split, lambda r, seed: strong_split(r, 5, 6, 12, seed)])
def test_a_split_is_drawn_by_its_seed_alone(split_of):
    ratings = made()
    order = np.random.default_rng(5).permutation(ratings.n_ratings)
    users, items = ratings.users[ratings.user_of()][order], ratings.items[ratings.columns][order]
    again = Ratings.from_arrays(users, items, ratings.values[order], users=range(40), items=range(60))
    one, other = split_of(ratings, seed=2), split_of(again, seed=2)
    assert (one.train, one.test) == (other.train, other.test)
    assert one.test != split_of(ratings, seed=3).test


def test_draws_are_even():
    ratings = Ratings.from_arrays(np.zeros(20, int), np.arange(20), np.ones(20))
    hits = sum((np.bincount(weak_split(ratings, 5, seed).train.columns, minlength=20) for seed in range(400)), 0)
    assert abs(hits - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)


@pytest.mark.parametrize("candidates", ["rated", "all"])
def test_the_value_is_the_measure_of_each_users_candidates(candidates):
    split = weak_split(made(), seed=1)
    scores = np.random.default_rng(0).integers(0, 9, (40, 60)).astype(float)  # many ties

    class Ranker:
        def predict(self, asked):
            return scores[asked.user_of(), asked.columns]

    found = evaluate_ratings(split, Ranker(), "nDCG@5", candidates)
    train, test = split.train.to_csr().toarray(), split.test.to_csr().toarray()
    expected = []
    for user in np.flatnonzero(test.any(axis=1)):
        listed = test[user] > 0 if candidates == "rated" else train[user] == 0
        told = np.ptp(test[user][listed]) > 0
        expected.append(evaluate(test[user][listed], scores[user][listed], "nDCG@5").mean() if told else np.nan)
    np.testing.assert_allclose(found.values, expected, rtol=1e-13)
    assert found.mean == pytest.approx(np.nanmean(expected))
    assert split.protocol in str(found)
    assert ("rated items only" in str(found)) == (candidates == "rated")
    np.testing.assert_array_equal(found.values, evaluate_ratings(split, scores, "nDCG@5", candidates).values)
    if candidates == "rated":
        flat = scores[split.test.user_of(), split.test.columns]
        np.testing.assert_array_equal(found.values, evaluate_ratings(split, flat, "nDCG@5").values)


def test_a_mean_has_its_standard_error_where_there_is_one():
    split = weak_split(made(), seed=1)
    found = evaluate_ratings(split, ItemMeanBaseline().fit(split.train))
    counted = found.values[~np.isnan(found.values)]
    assert found.standard_error == pytest.approx(counted.std(ddof=1) / np.sqrt(counted.size))
    assert f"{found.mean:.4f} ± {found.standard_error:.4f} (" in str(found)
    one = given_split(split.train, split.test.select(split.test.user_of() == split.test.user_of()[0]))
    alone = evaluate_ratings(one, PopularityBaseline().fit(split.train))
    assert str(alone).startswith(f"nDCG@10 {alone.mean:.4f} (given files, 1 user with test ratings; rated")
    assert str(alone).endswith("; 1 user tied)" if alone.tied else "averaged)")
    assert "±" not in str(alone) + alone._repr_html_()


def test_all_items_are_scored_some_users_at_a_time(monkeypatch):
    split = weak_split(made(), seed=1)
    whole = evaluate_ratings(split, ItemMeanBaseline().fit(split.train), candidates="all")
    monkeypatch.setattr("rankopt.ratings.evaluation.PAIRS", 130)
    np.testing.assert_array_equal(
        whole.values, evaluate_ratings(split, ItemMeanBaseline().fit(split.train), candidates="all").values
    )


def test_new_users_are_folded_in():
    split = strong_split(made(), 5, 6, 12)
    told = []

    class Ranker(ItemMeanBaseline):
        def fold_in(self, known):
            told.append(known)
            return self

    base = ItemMeanBaseline().fit(split.train)
    ranker = Ranker().fit(split.train)
    assert evaluate_ratings(split, ranker).mean == evaluate_ratings(split, base).mean
    assert told == [split.known]


def test_baselines_are_their_formulas():
    ratings = made()
    dense = ratings.to_csr().toarray()
    counts, mean = (dense > 0).sum(axis=0), ratings.values.mean()
    for shrinkage, popularity in ((5.0, 0.0), (10.0, 0.1), (0.0, 0.0)):
        found = ItemMeanBaseline(shrinkage, popularity).fit(ratings)
        sums = (dense - mean * (dense > 0)).sum(axis=0)
        expected = (
            mean + popularity * np.log(1 + counts) + np.where(counts, sums / np.maximum(counts + shrinkage, 1), 0)
        )
        np.testing.assert_allclose(found.scores_, expected, rtol=1e-12)
    np.testing.assert_array_equal(PopularityBaseline().fit(ratings).scores_, counts)
    other = Ratings.from_arrays(["x", "x"], [59, 1000], [1, 2])
    known = ItemMeanBaseline().fit(ratings)
    assert known.predict(other).tolist() == [known.scores_[59], pytest.approx(mean)]


def test_what_cannot_be_split_or_judged_is_refused():
    ratings = made()
    with pytest.raises(DataError, match="no user has 110 ratings"):
        weak_split(ratings, 100)
    with pytest.raises(DataError, match="100 new users with more than n = 10 ratings"):
        strong_split(ratings, least=1)
    with pytest.raises(DataError, match="do not exist among the 0 users"):
        strong_split(ratings)
    with pytest.raises(OptionError, match="n cannot be 0"):
        weak_split(ratings, 0)
    split = weak_split(ratings)
    with pytest.raises(OptionError, match="'rated' or 'all'"):
        evaluate_ratings(split, PopularityBaseline().fit(split.train), candidates="some")
    with pytest.raises(DataError, match="scores have shape"):
        evaluate_ratings(split, np.zeros(3))
    with pytest.raises(DataError, match="NaN"):
        evaluate_ratings(split, np.full(split.test.n_ratings, np.nan))
    with pytest.raises(OptionError, match="shrinkage must be"):
        ItemMeanBaseline(-1.0)


def test_users_of_equal_ratings_tell_no_order_anywhere():
    """One rule for the split's numbers and for `score`: nDCG of equal grades would be 1 for whoever orders them."""
    from rankopt.rankers import CofiRanker

    told = [(u, i, 1 + (u * i) % 5) for u in range(8) for i in range(6)] + [(9, 7, 3), (9, 8, 4)]
    train = Ratings.from_arrays(*zip(*told, strict=True))
    rows = [(0, 7, 3), (0, 8, 3), (1, 9, 2), (2, 7, 1), (2, 8, 5), (3, 7, 4), (3, 9, 2), (3, 8, 2)]
    split = given_split(train, Ratings.from_arrays(*zip(*rows, strict=True)))
    ranker = CofiRanker(factors=1, reg=0.5).fit(split.train)
    found = evaluate_ratings(split, ranker)
    assert np.isnan(found.values).tolist() == [True, True, False, False]
    assert found.protocol.endswith("; rated items only; ties averaged; 2 users with equal ratings left out")
    assert found.n_users == 2
    assert found.mean == pytest.approx(ranker.score(split.test), abs=1e-12)
    every = evaluate_ratings(split, ranker, candidates="all")
    assert not np.isnan(every.values).any()
    assert "left out" not in every.protocol
    undefined = evaluate_ratings(split, ranker, "AP(rel=5)")  # user 3 has no relevant item
    assert undefined.protocol.endswith("left out; 1 user on whom the measure is undefined left out")
    assert undefined.n_users == 1
    equal = given_split(train, Ratings.from_arrays([0, 0, 1], [7, 8, 7], [3, 3, 2]))
    with pytest.raises(DataError, match="judges no user"):
        evaluate_ratings(equal, ranker)


def test_what_is_no_split_and_what_cannot_predict_is_named_with_its_cure():
    split = weak_split(made(), seed=1)
    known = PopularityBaseline().fit(split.train)
    for wrong in (split.test, {"test": split.test}, "split"):
        says = f"split cannot be a {type(wrong).__name__} .*; pass a split, such as weak_split"
        with pytest.raises(DataError, match=says):
            evaluate_ratings(wrong, known)
    for what, name in (
        (known.predict, "predict"), (np.mean, "mean"), (type(known), "PopularityBaseline"),
    ):  # fmt: skip
        says = rf"predict cannot be {name} .*; pass a ranker that was fitted to split\.train"
        with pytest.raises(DataError, match=says):
            evaluate_ratings(split, what)
    with pytest.raises(NotFittedError, match="call fit"):
        evaluate_ratings(split, ItemMeanBaseline())


@pytest.mark.parametrize("baseline", [ItemMeanBaseline(2.0, 0.1), PopularityBaseline()])
def test_a_baseline_is_fitted_in_place_to_what_the_ranker_is_fitted_to(baseline):
    split = weak_split(made(), seed=1)
    expected = evaluate_ratings(split, type(baseline)(**vars(baseline)).fit(split.train))
    train = split.train
    users, items = train.users[train.user_of()], train.items[train.columns]
    frame = pd.DataFrame({"customer_id": users, "sku": items, "stars": train.values})
    for known in (train, frame):
        assert baseline.fit(known) is baseline
        np.testing.assert_array_equal(evaluate_ratings(split, baseline).values, expected.values)
    with pytest.raises(DataError, match=r"Baseline.fit cannot read a ndarray; pass Ratings"):
        baseline.fit(np.column_stack([users, items]))


@pytest.mark.parametrize(
    ("measure", "asked"),
    [("AP", "AP(rel=4)"), ("P@3", "P(rel=4)@3"), ("AP(rel=1)", "AP(rel=4)"), ("AP + 2 RR", "AP(rel=4)")],
)
def test_a_measure_to_which_all_stars_are_relevant_is_refused_with_its_cure(measure, asked):
    """It would be 1 for whoever orders them."""
    split = weak_split(made(), seed=1)
    known = ItemMeanBaseline().fit(split.train)
    with pytest.raises(MeasureError, match="all orders have the same value; all are ") as caught:
        evaluate_ratings(split, known, measure)
    assert str(caught.value).endswith(f"count as relevant; set the smallest relevant one: {asked}")
    assert 0 < evaluate_ratings(split, known, asked).mean < 1
    assert 0 < evaluate_ratings(split, known, measure, "all").mean < 3
    user, item = split.test.user_of(), split.test.columns
    for values in (split.test.values - 1, np.where(np.arange(user.size) < 1, 0, 5)):  # one irrelevant item is enough
        test = Ratings.from_arrays(user, item, values, users=split.test.users, items=split.test.items)
        if not measure.endswith("rel=1)"):
            assert evaluate_ratings(replace(split, test=test), known, measure).mean > 0


def test_a_mix_tells_what_one_of_its_parts_tells():
    split = weak_split(made(), seed=1)
    assert evaluate_ratings(split, ItemMeanBaseline().fit(split.train), "AP + nDCG@10").mean > 1


@pytest.mark.parametrize("candidates", ["rated", "all"])
def test_popularity_is_added_to_the_scores_as_recommend_adds_it(candidates):
    split = weak_split(made(), seed=1)
    scores = np.random.default_rng(0).normal(size=(40, 60))
    found = evaluate_ratings(split, scores, candidates=candidates, popularity=0.7)
    expected = evaluate_ratings(split, scores + 0.7 * np.log1p(split.train.counts), candidates=candidates)
    np.testing.assert_array_equal(found.values, expected.values)
    assert "; plus 0.7 log(1 + number of training ratings); ties" in found.protocol
    with pytest.raises(OptionError, match="popularity = 'x' is not a valid weight"):
        evaluate_ratings(split, scores, popularity="x")


def test_users_whose_ids_are_written_otherwise_are_named():
    """Without a known user only offsets of items would be judged."""
    train = Ratings.from_arrays([1, 1, 2, 3], [1, 2, 1, 2], [5, 4, 3, 2])
    with pytest.raises(DataError, match=r"no user of the test is one of training \(the test has 'u1', training 1\)"):
        given_split(train, Ratings.from_arrays(["u1", "u2"], [3, 1], [4, 2]))
    with pytest.warns(UserWarning, match="2 of 3 users of the test are not in training; check that their ids agree"):
        given_split(train, Ratings.from_arrays([1, 7, 8], [3, 1, 1], [4, 2, 5]))
    assert given_split(train, Ratings.from_arrays([1, 7], [3, 1], [4, 2])).test.n_ratings == 2


def test_a_frame_of_other_columns_is_refused_with_the_call_that_reads_it():
    frame = pd.DataFrame({"customer_id": [1, 1, 2], "thing": [7, 8, 7], "stars": [5, 3, 4]})
    cure = r"pass Ratings\.from_frame\(frame, user='customer_id', item='\.\.\.', rating='stars'\)\.$"
    from rankopt.rankers import CofiRanker

    for refused in (CofiRanker().fit, weak_split, lambda frame: given_split(frame, frame), Ratings.from_frame):
        with pytest.raises(DataError, match=cure):
            refused(frame)
    named = frame.rename(columns={"thing": "sku"})
    assert Ratings.from_frame(named) == Ratings.from_frame(frame, user="customer_id", item="thing", rating="stars")


def test_words_are_no_scores():
    with pytest.raises(DataError, match="scores cannot be read"):
        evaluate_ratings(weak_split(made(), seed=1), "x")


def test_ratings_below_zero_are_named_with_their_cure():
    split = weak_split(Ratings.from_arrays(np.repeat(range(3), 25), np.tile(range(25), 3), np.arange(75) % 9 - 4.0))
    with pytest.raises(
        MeasureError,
        match=r"measure nDCG@10 cannot judge ratings below 0 .*; add 4 to all ratings, which changes no order",
    ):
        evaluate_ratings(split, ItemMeanBaseline().fit(split.train))
    assert evaluate_ratings(split, ItemMeanBaseline().fit(split.train), "ERU(d=0)").mean >= 0


def test_frames_are_split_as_ratings_are_and_other_things_are_refused():
    ratings = made()
    frame = pd.DataFrame(
        {
            "user": ratings.users[ratings.user_of()],
            "item": ratings.items[ratings.columns],
            "rating": ratings.values,
        }
    )
    same = Ratings.from_frame(frame)
    assert weak_split(frame, seed=3).train == weak_split(same, seed=3).train
    assert strong_split(frame, users=5, least=5).test == strong_split(same, users=5, least=5).test
    assert given_split(frame[::2], frame[1::2]).test.n_ratings == 450
    for asked in (lambda: weak_split([1, 2]), lambda: strong_split(3), lambda: given_split(ratings, 3)):
        with pytest.raises(DataError, match=r"pass Ratings, as Ratings\.from_arrays"):
            asked()


def test_two_evaluations_are_compared_by_user_whatever_the_order_of_users():
    split = weak_split(load_ratings_sample(), 10)
    a, b = (evaluate_ratings(split, one.fit(split.train)) for one in (ItemMeanBaseline(), PopularityBaseline()))
    flipped = replace(b, users=b.users[::-1], values=b.values[::-1])
    d = a.values - b.values
    for other in (b, flipped):
        found = compare(a, other)
        assert found.difference == pytest.approx(np.nanmean(d))
        assert found.queries == a.n_users
        assert f"on {a.n_users} users" in str(found)
    plus = evaluate_ratings(split, ItemMeanBaseline().fit(split.train), popularity=1.0)
    assert compare(a, plus).difference == pytest.approx(np.nanmean(a.values - plus.values))
    among_all = evaluate_ratings(split, ItemMeanBaseline().fit(split.train), candidates="all")
    fewer = replace(b, users=b.users[1:], values=b.values[1:])
    for other, message in ((among_all, "their protocols differ"), (fewer, "their users differ")):
        with pytest.raises(DataError, match=message):
            compare(a, other)
