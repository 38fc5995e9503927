"""How trees are grown: the number of rounds, continued training, monotone features."""

import numpy as np
import pandas as pd
import pytest
from problems.training import made
from sklearn.base import clone

from rankopt.boosting import BoostingMetric, BoostingObjective
from rankopt.boosting.growth import best_round, smoothed
from rankopt.errors import OptionError, TrainingInterruptedWarning
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


ONE_NOISE = {"early_stopping": 10, "min_child_samples": 3, "learning_rate": 0.3, "score_noise": 1.0}


def test_with_few_queries_each_is_held_out_once_and_all_are_trained_on(monkeypatch):
    """The number of trees is the best on held-out thirds; the trees are those of this number on all queries."""
    seen, real = [], BoostingMetric.at
    monkeypatch.setattr(BoostingMetric, "at", lambda metric, rows: seen.append(rows.relevance) or real(metric, rows))
    X, y, qid = made(1, queries=45, documents=16)
    ranker = BoostedRanker("nDCG@3", **ONE_NOISE).fit(X, y, qid=qid)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen[:3])), np.sort(y))
    (curve,) = ranker.evals_result_["validation"].values()
    assert ranker.n_rounds_ == ranker.best_iteration_ == best_round(curve)
    assert ranker.best_score_ == curve[ranker.n_rounds_ - 1]
    assert len(curve) == 1000 or len(curve) - best_round(curve) >= 10
    straight = clone(ranker).set_params(n_estimators=ranker.n_rounds_).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(X), straight.predict(X))


@pytest.mark.parametrize(("noise", "chosen"), [(0.1, 1.0), (2.0, 2.0)])
def test_the_noise_of_scores_is_the_better_one_on_held_out_queries(noise, chosen):
    X, y, qid = made(1, queries=45, documents=16, noise=noise)
    ranker = BoostedRanker("nDCG@3", **ONE_NOISE | {"score_noise": None}).fit(X, y, qid=qid)
    tried = [clone(ranker).set_params(score_noise=one).fit(X, y, qid=qid) for one in (1.0, 2.0)]
    best = max(tried, key=lambda one: smoothed(one.evals_result_["validation"]["nDCG@3"]).max())
    assert best.score_noise == chosen
    assert ranker.n_rounds_ == best.n_rounds_
    assert ranker.evals_result_ == best.evals_result_
    np.testing.assert_array_equal(ranker.predict(X), best.predict(X))


@pytest.mark.parametrize(("queries", "options"), [(40, {}), (210, {}), (40, {"validation_fraction": 0.2})])
def test_without_a_number_of_trees_queries_are_held_out(queries, options):
    X, y, qid = made(1, queries=queries, documents=8)
    ranker = BoostedRanker("nDCG@3", **ONE_NOISE, **options).fit(X, y, qid=qid)
    (curve,) = ranker.evals_result_["validation"].values()
    assert ranker.n_rounds_ == ranker.best_iteration_ == best_round(curve)
    assert ranker.best_score_ == curve[ranker.n_rounds_ - 1]
    straight = clone(ranker).set_params(n_estimators=ranker.n_rounds_).fit(X, y, qid=qid)
    is_refitted = queries < 200 and not options
    assert (ranker.predict(X) == straight.predict(X)).all() == is_refitted
    rows = np.random.default_rng(1).permutation(y.size)
    moved = clone(ranker).fit(X[rows], y[rows], qid=qid[rows])
    np.testing.assert_array_equal(moved.predict(X), ranker.predict(X))
    assert moved.evals_result_ == ranker.evals_result_


@pytest.mark.parametrize("phase", ["first noise", "second noise", "all queries"])
def test_ctrl_c_returns_the_best_trees_so_far_of_all_queries(phase, monkeypatch):
    """In the sixth round of held-out queries, in the second one of another noise, in the third one on all queries."""
    X, y, qid = made(1, queries=45, documents=16)
    ranker = BoostedRanker("nDCG@3", **ONE_NOISE).fit(X, y, qid=qid)
    (curve,) = ranker.evals_result_["validation"].values()
    done, rounds, held = {
        "first noise": (5, best_round(curve[:5]), 5),
        "second noise": (len(curve) + 1, ranker.n_rounds_, len(curve)),
        "all queries": (len(curve) + 2, 2, len(curve)),
    }[phase]
    calls, real = [], BoostingObjective.__call__

    def pressed(objective, *given):
        calls.append(objective)
        if len(calls) == 3 * done + 1:
            raise KeyboardInterrupt
        return real(objective, *given)

    straight = clone(ranker).set_params(n_estimators=rounds).fit(X, y, qid=qid)
    monkeypatch.setattr(BoostingObjective, "__call__", pressed)
    noise = None if phase == "second noise" else 1.0
    with pytest.warns(TrainingInterruptedWarning, match="the best trees so far"):
        ended = clone(ranker).set_params(score_noise=noise).fit(X, y, qid=qid)
    assert ended.n_rounds_ == rounds
    assert ended.evals_result_ == {"validation": {"nDCG@3": curve[:held]}}
    np.testing.assert_array_equal(ended.predict(X), straight.predict(X))


def test_with_fewer_than_30_queries_there_are_100_trees():
    X, y, qid = made(1, queries=29, documents=8)
    few = BoostedRanker("nDCG@3", **SMALL).fit(X, y, qid=qid)
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
        lambda X, y, qid: BoostedRanker(n_estimators=1, monotone_constraints={0: 1}, **SMALL).fit(X, y, qid=qid),
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
