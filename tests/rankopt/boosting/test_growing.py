"""How trees are grown: the number of rounds, continued training, monotone features."""

import numpy as np
import pandas as pd
import pytest
from problems.training import made

from rankopt.boosting.growth import best_round
from rankopt.errors import OptionError
from rankopt.rankers import BoostedRanker

pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")

SMALL = {"min_child_samples": 3, "n_bags": 2, "random_state": 0}


@pytest.mark.parametrize("length", [1, 4, 9, 60])
def test_the_best_round_has_the_largest_mean_of_nine_values(length):
    values = np.random.default_rng(length).normal(size=length)
    padded = [values[0]] * 4 + values.tolist() + [values[-1]] * 4
    means = [np.mean(padded[at : at + 9]) for at in range(length)]
    assert best_round(values.tolist()) == int(np.argmax(means)) + 1


def test_one_lucky_round_is_not_the_best():
    values = 0.5 - 1e-3 * np.abs(np.arange(100) - 60)
    values[5] = 0.6
    assert best_round(values.tolist()) == 61


def test_without_a_number_of_trees_queries_are_held_out():
    X, y, qid = made(1, queries=80, documents=8)
    ranker = BoostedRanker("nDCG@3", early_stopping=10, **SMALL).fit(X, y, qid=qid)
    (curve,) = ranker.evals_result_["validation"].values()
    assert ranker.n_rounds_ == ranker.best_iteration_ == best_round(curve)
    assert ranker.best_score_ == curve[ranker.n_rounds_ - 1]
    assert len(curve) == 1000 or len(curve) - best_round(curve) >= 10
    rows = np.random.default_rng(1).permutation(y.size)
    moved = BoostedRanker("nDCG@3", early_stopping=10, **SMALL).fit(X[rows], y[rows], qid=qid[rows])
    np.testing.assert_array_equal(moved.predict(X), ranker.predict(X))
    few = BoostedRanker("nDCG@3", **SMALL).fit(X[:160], y[:160], qid=qid[:160])
    assert few.n_rounds_ == 100
    assert not hasattr(few, "evals_result_")


def test_continued_training_is_training_in_one_go(tmp_path):
    """With all features and all queries a round depends on the scores alone."""
    X, y, qid = made(2, queries=12, documents=10)
    options = {"colsample_bytree": 1.0, **SMALL}
    first = BoostedRanker("nDCG@3", n_estimators=4, **options).fit(X, y, qid=qid)
    first.save(tmp_path / "model")
    straight = BoostedRanker("nDCG@3", n_estimators=10, **options).fit(X, y, qid=qid)
    for init in (first, tmp_path / "model", str(tmp_path / "model")):
        more = BoostedRanker("nDCG@3", n_estimators=6, **options).fit(X, y, qid=qid, init_model=init)
        assert more.n_rounds_ == 10
        np.testing.assert_array_equal(more.predict(X), straight.predict(X))
        for one, other in zip(more.estimators_, straight.estimators_, strict=True):
            np.testing.assert_array_equal(one, other)
    more.save(tmp_path / "again")
    Z, z, zid = made(3, queries=12, documents=10)
    both = {"eval_set": (Z, z), "eval_qid": zid}
    whole = BoostedRanker("nDCG@3", n_estimators=10, **options).fit(X, y, qid=qid, **both)
    part = BoostedRanker("nDCG@3", n_estimators=6, **options).fit(X, y, qid=qid, init_model=first, **both)
    ours, all_rounds = (one.evals_result_["eval_set"]["nDCG@3"] for one in (part, whole))
    np.testing.assert_allclose(ours, all_rounds[4:], atol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda X, y, qid: BoostedRanker(n_estimators=1, **SMALL).fit(X[:, :2], y, qid=qid),
        lambda X, y, qid: BoostedRanker(n_estimators=1, min_child_samples=3, n_bags=1).fit(X, y, qid=qid),
        lambda X, y, qid: BoostedRanker(n_estimators=1, normalize="rank", **SMALL).fit(X, y, qid=qid),
        lambda X, y, qid: 3,
    ],
)
def test_other_models_cannot_be_continued(wrong):
    X, y, qid = made(4, queries=12, documents=10)
    with pytest.raises(OptionError, match="init_model"):
        BoostedRanker(n_estimators=1, **SMALL).fit(X, y, qid=qid, init_model=wrong(X, y, qid))


@pytest.mark.parametrize("normalize", [None, "zscore"])
def test_scores_are_monotone_where_they_must_be(normalize):
    X, y, qid = made(5, queries=30, documents=10)
    frame = pd.DataFrame(X, columns=list("abcd")[: X.shape[1]])
    signs = {"a": 1, "b": -1}
    options = {"n_estimators": 30, "normalize": normalize, **SMALL}
    free = BoostedRanker("nDCG@5", **options).fit(frame, y, qid=qid)
    named = BoostedRanker("nDCG@5", monotone_constraints=signs, **options).fit(frame, y, qid=qid)
    listed = BoostedRanker("nDCG@5", monotone_constraints=[1, -1] + [0] * (X.shape[1] - 2), **options)
    numbered = BoostedRanker("nDCG@5", monotone_constraints={0: 1, 1: -1}, **options).fit(X, y, qid=qid)
    for other, features in ((listed.fit(frame, y, qid=qid), frame), (numbered, X)):
        np.testing.assert_array_equal(other.predict(features, qid=qid), named.predict(frame, qid=qid))
    line = np.linspace(X.min(), X.max(), 50)
    for number, (name, sign) in enumerate(signs.items()):
        rows = pd.DataFrame(np.tile(X[number], (50, 1)), columns=frame.columns).assign(**{name: line})
        query = np.zeros(50)
        assert (sign * np.diff(named.predict(rows, qid=query)) >= 0).all()
        assert (sign * np.diff(free.predict(rows, qid=query)) < 0).any()


@pytest.mark.parametrize("signs", [{"z": 1}, [1, 0], [2, 0, 0, 0], "increasing"])
def test_monotone_constraints_of_no_feature_are_refused(signs):
    X, y, qid = made(6, queries=12, documents=10)
    frame = pd.DataFrame(X, columns=list("abcd")[: X.shape[1]])
    with pytest.raises(OptionError, match="monotone_constraints"):
        BoostedRanker(monotone_constraints=signs, n_estimators=1, **SMALL).fit(frame, y, qid=qid)


def test_a_query_is_left_to_train_on_when_nearly_all_are_held_out():
    X, y, qid = made(7, queries=40, documents=5)
    ranker = BoostedRanker(validation_fraction=0.999, early_stopping=1, **SMALL).fit(X, y, qid=qid)
    assert ranker.n_rounds_ >= 1
