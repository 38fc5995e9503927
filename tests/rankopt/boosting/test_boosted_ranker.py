"""The ranker of trees keeps our conventions: queries, eval sets, constraints, files, bits."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from problems.training import made
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.boosting.growth import best_round
from rankopt.boosting.ranker import Forest
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, ModelError, OptionError, SharedQueriesWarning
from rankopt.experimental import DirectBoostedRanker
from rankopt.measures import evaluate
from rankopt.rankers import BoostedRanker, load_model

pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")

SMALL = {"n_estimators": 12, "min_child_samples": 3, "n_bags": 2}


def data(seed=0, **options):
    return made(seed, queries=16, documents=10, **options)


def fitted(X, y, qid, eval_set=None, eval_qid=None, **options):
    ranker = BoostedRanker("nDCG@3", **{**SMALL, **options})
    return ranker.fit(X, y, qid=qid, eval_set=eval_set, eval_qid=eval_qid)


@parametrize_with_checks(
    [BoostedRanker(n_estimators=4, n_bags=2), BoostedRanker(n_estimators=2, n_bags=1, normalize="zscore")]
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


def test_trees_learn_what_no_linear_ranker_can():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 2)), np.repeat(np.arange(30), 20)
    y = (np.abs(X[:, 0]) > 1).astype(float)
    half, other = slice(0, 300), slice(300, 600)
    assert fitted(X[half], y[half], qid[half], n_estimators=60).score(X[other], y[other], qid=qid[other]) > 0.95


def test_rows_in_any_order_give_the_same_trees():
    X, y, qid = data()
    rows = np.random.default_rng(1).permutation(y.size)
    names = np.array([f"query {q}" for q in qid])
    straight, moved = fitted(X, y, qid), fitted(X[rows], y[rows], names[rows])
    for one, other in zip(straight.estimators_, moved.estimators_, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(fitted(csr_array(X), y, qid).predict(csr_array(X)), straight.predict(X))
    np.testing.assert_array_equal(fitted(X, y, qid, n_jobs=2).predict(X), straight.predict(X))


@pytest.mark.parametrize("normalize", [None, "zscore"])
def test_explanations_sum_to_the_difference_of_scores(normalize):
    X, y, qid = data(2)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    ranker = fitted(frame, y, qid, normalize=normalize)
    query = frame[qid == qid[0]].assign(doc_id=[f"page{i}" for i in range(np.sum(qid == qid[0]))])
    found, scores = ranker.explain(query.iloc[[0]], query.iloc[[4]], among=query), ranker.predict(query)
    assert found.total == pytest.approx(scores[0] - scores[4], abs=1e-12)
    assert str(found).startswith("x: page0, y: page4\nfeature ")
    assert "coef" not in str(found)
    swapped = ranker.explain(query.iloc[4], query.iloc[0], among=query)
    np.testing.assert_allclose(swapped.contributions, -found.contributions, atol=1e-12)
    assert set(found.features) == set(frame)


def test_an_eval_set_of_training_queries_is_warned_of():
    X, y, qid = data(3)
    some = np.isin(qid, np.unique(qid)[:2])
    other = np.where((qid == np.unique(qid)[1])[:, None], X + 1.0, X)
    with pytest.warns(SharedQueriesWarning, match=f"1 of 2 queries .* such as {np.unique(qid)[0]}: "):
        fitted(X, y, qid, n_estimators=1, eval_set=(other[some], y[some]), eval_qid=qid[some])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(
            X, y, qid, n_estimators=1, eval_set=(X + 1.0, y), eval_qid=qid
        )  # the ids alone may be numbers of a split


def test_members_are_averaged_and_differ_by_their_seeds():
    X, y, qid = data(1)
    ranker = fitted(X, y, qid, n_bags=3, random_state=4)
    alone = [Forest((text,)).scores(X, 1) for text in ranker.estimators_]
    assert len({text.tobytes() for text in ranker.estimators_}) == 3
    np.testing.assert_allclose(ranker.predict(X), np.mean(alone, axis=0))
    again = fitted(X, y, qid, n_bags=3, random_state=4)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    assert (fitted(X, y, qid, n_bags=3, random_state=5).predict(X) != ranker.predict(X)).any()


def test_an_eval_set_says_when_to_end_and_whole_queries_judge():
    X, y, qid = data(2)
    Z, z, zid = data(3)
    ranker = BoostedRanker("nDCG@3", min_child_samples=3, early_stopping=5).fit(
        X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[zid]
    )
    assert ranker.n_rounds_ < 1000
    assert ranker.best_score_ == pytest.approx(ranker.score(Z, z, qid=zid))
    best = ranker.n_rounds_
    curve = ranker.evals_result_["eval_set"]["nDCG@3"]
    assert best_round(curve) == best == ranker.best_iteration_
    for rounds in (best - 1, best, best + 1):
        other = clone(ranker).set_params(n_estimators=rounds).fit(X, y, qid=qid) if rounds else None
        assert other is None or other.score(Z, z, qid=zid) == pytest.approx(curve[rounds - 1])


def test_weights_of_queries_count():
    X, y, qid = data(4)
    doubled = np.concatenate([np.arange(y.size), np.flatnonzero(qid < 3)])
    names = np.concatenate([qid, qid[qid < 3] + 100])
    weighted = BoostedRanker(
        "nDCG@3", score_noise=0, colsample_bytree=1.0, min_child_samples=1, n_estimators=1, n_bags=1
    )
    weights = {q: 2.0 if q < 3 else 1.0 for q in range(16)}
    one = weighted.fit(X, y, qid=qid, query_weight=weights).predict(X)
    two = clone(weighted).fit(X[doubled], y[doubled], qid=names).predict(X)
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert (clone(weighted).fit(X, y, qid=qid).predict(X) != one).any()


def test_rank_and_score_obey_constraints():
    X, y, qid = data(5)
    site = np.arange(y.size) % 4
    ranker = fitted(X, y, qid, constraints=Admissible(3).at_most(1, by="site"))
    for order in ranker.rank(X, qid, attributes={"site": site}).values():
        assert len(set(site[order])) == 3
    queries = Queries.from_arrays(X, y, qid=qid, attributes={"site": site})
    assert ranker.score(queries) <= ranker.score(queries, constraints=Admissible(10)) + 1e-12


def test_score_is_the_mean_of_the_measure():
    X, y, qid = data(6)
    ranker, queries = fitted(X, y, qid), Queries.from_arrays(X, y, qid=qid)
    found = evaluate(queries, ranker.predict(X), "nDCG@3").mean()
    assert ranker.score(X, y, qid=qid) == pytest.approx(found)


def test_a_saved_ranker_gives_the_same_scores_and_the_same_bytes(tmp_path):
    X, y, qid = data(7)
    ranker = fitted(X, y, qid, normalize="rank")
    for name in ("one", "two"):
        fitted(X, y, qid, normalize="rank").save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    for again in (load_model(tmp_path / "one"), pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_array_equal(again.predict(X, qid=qid), ranker.predict(X, qid=qid))
        assert again.n_rounds_ == ranker.n_rounds_


def test_features_that_tell_nothing_apart_leave_all_scores_equal(tmp_path):
    _, y, qid = data(8)
    ranker = fitted(np.ones((y.size, 2)), y, qid)
    assert len(set(ranker.predict(np.ones((y.size, 2))))) == 1
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(np.ones((1, 2))).size == 1


def test_queries_without_anything_to_order_are_refused_only_where_there_are_no_others():
    X, y, qid = data(9)
    few = np.where(qid < 2, y, 0.0)
    assert fitted(X, few, qid).n_queries_ == 16
    with pytest.raises(DataError, match="none has documents that"):
        fitted(X, np.zeros(y.size), qid)


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 0}, {"n_estimators": 1.5}, {"learning_rate": 0}, {"learning_rate": np.inf}, {"num_leaves": 1},
        {"min_child_samples": 0}, {"colsample_bytree": 1.1}, {"score_noise": -1.0}, {"score_noise": np.nan},
        {"n_bags": 0}, {"early_stopping": None}, {"n_jobs": 0}, {"engine": "dask"},
        {"random_state": "seed"}, {"random_state": -1}, {"bound": "convexx"},
        {"position_weights": "steep"}, {"measure": "MeanNDCG"}, {"normalize": "loudly"}, {"truncation_level": 0},
        {"validation_fraction": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_cannot_work_are_refused_by_name(options):
    X, y, qid = data(10)
    with pytest.raises(OptionError, match=next(iter(options))):
        BoostedRanker(**options).fit(X, y, qid=qid)


def test_without_lightgbm_the_error_names_the_extra(monkeypatch):
    X, y, qid = data(11)
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(OptionError, match=r"pip install 'rankopt\[boosting\]'"):
        fitted(X, y, qid)


DAMAGES = {
    "another feature": lambda text: text.replace("split_feature=", "split_feature=9", 1),
    "a child that is not there": lambda text: text.replace("left_child=", "left_child=77", 1),
    "a leaf too few": lambda text: text.replace("num_leaves=", "num_leaves=1", 1),
    "a value that is no number": lambda text: text.replace("leaf_value=", "leaf_value=nan ", 1),
    "a category": lambda text: text.replace("num_cat=0", "num_cat=1", 1),
    "linear leaves": lambda text: text.replace("is_linear=0", "is_linear=1", 1),
    "another length": lambda text: text.replace("tree_sizes=", "tree_sizes=9", 1),
    "other classes": lambda text: text.replace("num_class=1", "num_class=2", 1),
    "more features": lambda text: text.replace("max_feature_idx=3", "max_feature_idx=4", 1),
    "no end": lambda text: text.replace("end of trees", ""),
    "more after the end": lambda text: text + "parameters:\n",
    "a line twice": lambda text: text.replace("num_cat=0\n", "num_cat=0\nnum_cat=0\n", 1),
    "nothing": lambda text: "tree\n",
    "no text": lambda text: "\xff",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_text_that_is_no_trees_never_reaches_lightgbm(damage):
    X, y, qid = data(12)
    ranker = fitted(X, y, qid, n_bags=1)
    text = DAMAGES[damage](ranker.estimators_[0].tobytes().decode("ascii"))
    ranker.estimators_ = (np.frombuffer(text.encode("latin-1"), dtype=np.uint8),)
    with pytest.raises(ModelError):
        ranker._check_loaded()


def test_lightgbm_reads_the_members():
    import lightgbm

    X, y, qid = data(13)
    ranker = fitted(X, y, qid, n_bags=2, n_estimators=3)
    boosters = [lightgbm.Booster(model_str=text.tobytes().decode()) for text in ranker.estimators_]
    assert [one.num_trees() for one in boosters] == [ranker.n_rounds_] * 2
    order = np.argsort(np.mean([one.predict(X) for one in boosters], axis=0), kind="stable")
    assert (np.diff(ranker.predict(X)[order]) >= -1e-12).all()


def test_texts_with_any_byte_changed_are_refused_or_are_trees():
    """What passes can be read and used by LightGBM: no size or index in it lies."""
    X, y, qid = data(13)
    ranker, rng = fitted(X, y, qid, n_bags=1, n_estimators=3), np.random.default_rng(0)
    whole, passed = ranker.estimators_[0], 0
    for _ in range(400):
        text = whole.copy()
        text[rng.integers(text.size)] = rng.choice(np.frombuffer(b"0123456789-. =\ne", dtype=np.uint8))
        ranker.estimators_ = (text,)
        try:
            ranker._check_loaded()
        except ModelError:
            continue
        passed += 1
        assert np.isfinite(Forest((text,)).scores(X, 1)).all()
    assert 20 < passed < 380


def test_importances_and_best_iteration_are_those_of_the_trees():
    X, y, qid = made(0, queries=30, documents=10)
    X = np.column_stack([X, np.zeros(len(X))])
    ranker = BoostedRanker("nDCG@5", random_state=0).fit(X[:200], y[:200], qid=qid[:200])
    assert ranker.feature_importances_.sum() == pytest.approx(1.0)
    assert ranker.feature_importances_[-1] == 0.0
    assert not hasattr(ranker, "best_iteration_")
    ranker.fit(X[:200], y[:200], qid=qid[:200], eval_set=(X[200:], y[200:]), eval_qid=qid[200:])
    assert ranker.evals_result_["eval_set"]["nDCG@5"][ranker.best_iteration_ - 1] == pytest.approx(ranker.best_score_)
    direct = DirectBoostedRanker("nDCG@5", n_estimators=5, random_state=0)
    direct.fit(X[:200], y[:200], qid=qid[:200], eval_set=(X[200:], y[200:]), eval_qid=qid[200:])
    assert direct.feature_importances_.sum() == pytest.approx(1.0)
    assert direct.feature_importances_[-1] == 0.0
    assert direct.best_iteration_ <= 5
    assert np.nanmax(direct.evals_result_) == pytest.approx(direct.best_score_)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("measure", "theirs", "k"), [("nDCG@5", "ndcg", 5), ("AP", "map", 10)])
def test_conventions_give_the_numbers_of_the_logs(library, measure, theirs, k):
    """Queries without relevant documents count 1 in both logs; k = 10 is all documents of a query."""
    package = pytest.importorskip(library)
    X, y, qid = made(0, queries=30, documents=10)
    y = np.where(qid % 3 == 0, 0, y if theirs == "ndcg" else y > 0).astype(int)
    groups, found = np.full(30, 10), {}
    if library == "lightgbm":
        data = package.Dataset(X, y, group=groups)
        options = {"objective": "lambdarank", "metric": theirs, "eval_at": [k], "verbose": -1, "min_data_in_leaf": 5}
        record = package.record_evaluation(found)
        model = package.train(options, data, 5, valid_sets=[data], callbacks=[record])
        scores, value = model.predict(X), found["training"][f"{theirs}@{k}"][-1]
    else:
        data = package.DMatrix(X, y, qid=qid)
        options = {"objective": "rank:ndcg", "eval_metric": f"{theirs}@{k}", "ndcg_exp_gain": True}
        model = package.train(options, data, 5, evals=[(data, "d")], evals_result=found, verbose_eval=False)
        scores, value = model.predict(data), found["d"][f"{theirs}@{k}"][-1]
    ours = evaluate(y, scores, measure, qid=qid, convention=library)
    assert ours.mean() == pytest.approx(value, abs=1e-6)
    assert ours.mean() > evaluate(y, scores, measure, qid=qid, convention="burges").mean() + 0.3
