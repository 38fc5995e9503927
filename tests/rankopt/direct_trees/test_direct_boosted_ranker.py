"""Trees with exact weights keep our conventions: queries, eval sets, constraints, files, bits, interruptions."""

import pickle
import sys
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from problems.training import made
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.direct_trees import GROWERS, STRATEGIES
from rankopt.direct_trees import training as training_module
from rankopt.errors import DataError, Interrupted, ModelError, OptionError
from rankopt.measures import evaluate
from rankopt.rankers import DirectBoostedRanker, load_model

SMALL = {"n_estimators": 8, "num_leaves": 5, "min_child_samples": 3}


def data(seed=0, **options):
    return made(seed, queries=16, documents=10, **options)


FEW = {"n_estimators": 1, "num_leaves": 3}
"""Of trees of the measure, which take hundreds of line searches each."""


def fitted(X, y, qid, *, query_weight=None, **options):
    few = FEW if options.get("trees") == "measure" else {}
    return DirectBoostedRanker("nDCG@3", **{**SMALL, **few, **options}).fit(X, y, qid=qid, query_weight=query_weight)


@parametrize_with_checks(
    [
        DirectBoostedRanker(n_estimators=4),
        DirectBoostedRanker(n_estimators=3, strategy="both", weight="window", normalize="zscore"),
    ]
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.fixture(params=GROWERS)
def trees(request):
    if request.param == "lightgbm":
        pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    return request.param


@pytest.mark.every(5)
def test_trees_learn_what_no_linear_ranker_can(trees):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 2)), np.repeat(np.arange(30), 20)
    y = (np.abs(X[:, 0]) > 1).astype(float)
    learnt, other = slice(0, 300), slice(300, 600)
    options = {"n_estimators": 20} if trees != "measure" else {"n_estimators": 2, "num_leaves": 5}
    ranker = fitted(X[learnt], y[learnt], qid[learnt], trees=trees, interval=(0.1, 0.5), **options)
    assert ranker.score(X[other], y[other], qid=qid[other]) > 0.9


@pytest.mark.every(5)
def test_rows_in_any_order_of_any_table_give_the_same_trees(trees):
    X, y, qid = data()
    rows = np.random.default_rng(1).permutation(y.size)
    names = np.array([f"query {q}" for q in qid])
    straight, moved = fitted(X, y, qid, trees=trees), fitted(X[rows], y[rows], names[rows], trees=trees)
    assert straight.weights_.size
    for name in ("feature", "number", "left", "right", "roots"):
        assert_array_equal(getattr(straight.trees_, name), getattr(moved.trees_, name))
    assert_array_equal(straight.weights_, moved.weights_)
    scores = straight.predict(X)
    assert_array_equal(fitted(csr_array(X), y, qid, trees=trees).predict(csr_array(X)), scores)
    for options in ({"n_jobs": 1}, {"n_jobs": 2}, {"engine": "serial"}):
        assert_array_equal(fitted(X, y, qid, trees=trees, **options).predict(X), scores)
    single = X.astype(np.float32)
    assert_array_equal(fitted(single, y, qid).predict(single), fitted(single.astype(float), y, qid).predict(single))


@pytest.mark.every(5)
def test_a_saved_ranker_gives_the_same_scores_and_the_same_bytes(trees, tmp_path):
    X, y, qid = data(7)
    options = {"normalize": "rank", "trees": trees, "strategy": "both", "interval": (0.1, 0.5)}
    ranker = fitted(X, y, qid, **options)
    for name in ("one", "two"):
        fitted(X, y, qid, **options).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    for again in (load_model(tmp_path / "one"), pickle.loads(pickle.dumps(ranker))):
        assert_array_equal(again.predict(X, qid=qid), ranker.predict(X, qid=qid))
        assert again.certificate_ == ranker.certificate_
        assert [*again.history_] == [*ranker.history_] or len(again.history_) == len(ranker.history_)
        assert_array_equal(again.history_.measure, ranker.history_.measure)
    load_model(tmp_path / "one").save(tmp_path / "three")
    assert (tmp_path / "three").read_bytes() == (tmp_path / "one").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {name.rpartition(".")[2] for name in archive.namelist()} == {"json", "npy", "SHA256SUMS"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_eval_set_chooses_what_is_best_there(strategy, tmp_path):
    X, y, qid = data(2)
    Z, z, zid = data(3)
    ranker = DirectBoostedRanker("nDCG@3", min_child_samples=3, early_stopping=5, strategy=strategy).fit(
        X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[zid]
    )
    judged = ranker.history_.judged
    assert np.nanmax(judged) == ranker.eval_score_ == ranker.score(Z, z, qid=zid)
    stages = judged[ranker.history_.sweep == 0]
    assert len(stages) == min(np.argmax(stages) + 1 + 5, 1000)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").eval_score_ == ranker.eval_score_
    assert not hasattr(clone(ranker).set_params(n_estimators=2).fit(X, y, qid=qid), "eval_score_")


def test_trees_up_to_the_best_are_those_of_a_shorter_run():
    X, y, qid = data(2)
    Z, z, zid = data(3)
    chosen = fitted(X, y, qid, n_estimators=30).set_params(early_stopping=30)
    chosen.fit(X, y, qid=qid, eval_set=(Z, z), eval_qid=zid)
    best = int(np.nanargmax(chosen.history_.judged)) + 1
    assert_array_equal(fitted(X, y, qid, n_estimators=best).predict(X), chosen.predict(X))


def test_weights_of_queries_count():
    X, y, qid = data(4)
    doubled = np.concatenate([np.arange(y.size), np.flatnonzero(qid < 3)])
    names = np.concatenate([qid, qid[qid < 3] + 100])
    options = {"min_child_samples": 1, "n_estimators": 3, "trees": "scikit-learn"}
    one = fitted(X, y, qid, query_weight={q: 2.0 if q < 3 else 1.0 for q in range(16)}, **options)
    two = fitted(X[doubled], y[doubled], names, **options)
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-9)
    assert one.certificate_.value == pytest.approx(two.certificate_.value)
    assert (fitted(X, y, qid, **options).predict(X) != one.predict(X)).any()
    left_out = fitted(X, y, qid, query_weight={q: float(q > 2) for q in range(16)})
    assert_array_equal(left_out.predict(X), fitted(X[qid > 2], y[qid > 2], qid[qid > 2]).predict(X))


def test_rank_and_score_obey_constraints():
    X, y, qid = data(5)
    site = np.arange(y.size) % 4
    ranker = fitted(X, y, qid, constraints=Admissible(3).at_most(1, by="site"))
    for order in ranker.rank(X, qid, attributes={"site": site}).values():
        assert len(set(site[order])) == 3
    queries = Queries.from_arrays(X, y, qid=qid, attributes={"site": site})
    assert ranker.score(queries) <= ranker.score(queries, constraints=Admissible(10)) + 1e-12
    ranker.fit(queries, eval_set=queries)
    assert ranker.eval_score_ == ranker.score(queries)


def test_score_is_the_mean_of_the_measure_and_what_the_certificate_says():
    X, y, qid = data(6)
    y = np.where(qid < 2, 0.0, y)  # no nDCG there: grown on, and not measured
    ranker, queries = fitted(X, y, qid), Queries.from_arrays(X, y, qid=qid)
    found = evaluate(queries, ranker.predict(X)[queries.row_order], "nDCG@3").mean()
    assert ranker.score(X, y, qid=qid) == pytest.approx(found)
    assert ranker.certificate_.value == pytest.approx(found)
    with pytest.raises(DataError, match="give nDCG@3 a value"):
        fitted(X, np.zeros(y.size), qid)
    with pytest.raises(DataError, match="1 sample"):
        DirectBoostedRanker().fit([[1.0]], [1.0], group=[1])


def test_features_that_tell_nothing_apart_leave_all_scores_equal(trees, tmp_path):
    _, y, qid = data(8)
    ranker = fitted(np.ones((y.size, 2)), y, qid, trees=trees, strategy="both")
    assert set(ranker.predict(np.ones((y.size, 2)))) == {0.0}
    assert (ranker.weights_.size, len(ranker.history_), ranker.certificate_.directions) == (0, 0, 0)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(np.ones((1, 2))).tolist() == [0.0]


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 0}, {"n_estimators": 1.5}, {"num_leaves": 1}, {"min_child_samples": 0}, {"passes": 0},
        {"early_stopping": None}, {"n_jobs": 0}, {"engine": "dask"}, {"trees": "oaks"}, {"strategy": "at once"},
        {"weight": "best"}, {"interval": (0.5, 0.1)}, {"interval": (0.0, 0.1)}, {"interval": 0.1}, {"window": 0.0},
        {"interval": (0.1, np.inf)}, {"time_limit": 0}, {"callbacks": 3}, {"random_state": "seed"},
        {"random_state": -1}, {"measure": "nDCGG"}, {"normalize": "loudly"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_cannot_work_are_refused_by_name(options):
    X, y, qid = data(10)
    with pytest.raises(ValueError, match=next(iter(options))):
        DirectBoostedRanker(**options).fit(X, y, qid=qid)


def test_without_lightgbm_the_error_names_the_extra(monkeypatch):
    X, y, qid = data(11)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(OptionError, match=r"pip install 'rankopt\[boosting\]'"):
        fitted(X, y, qid, trees="lightgbm")
    assert fitted(X, y, qid).weights_.size


def test_callbacks_see_every_step_and_end_training():
    X, y, qid = data(12)
    seen = []

    def watch(step, standing):
        seen.append((step, standing.measure, len(standing.trees)))
        return step.step == 3

    ranker = fitted(X, y, qid, callbacks=[watch])
    assert [step.step for step, _, _ in seen] == [1, 2, 3]
    assert all(step.measure == measure and step.step == count for step, measure, count in seen)
    assert "callback" in str(ranker.certificate_)
    assert len(ranker.history_) == 3
    assert ranker.history_[2] == seen[2][0] or np.isnan(seen[2][0].judged)
    assert_array_equal(ranker.predict(X), fitted(X, y, qid, n_estimators=3).predict(X))


def test_a_limit_of_time_ends_training_after_a_whole_step_and_warns():
    X, y, qid = data(12)
    with pytest.warns(ConvergenceWarning, match="time_limit passed"):
        ranker = fitted(X, y, qid, time_limit=1e-9)
    assert_array_equal(ranker.predict(X), fitted(X, y, qid, n_estimators=1).predict(X))


@pytest.mark.parametrize("stage", [0, 1, 4])
def test_an_interruption_keeps_whole_steps(stage, monkeypatch):
    X, y, qid = data(13)
    true, calls = training_module._stage, []

    def interrupted(run, now):
        calls.append(0)
        if len(calls) > stage:
            raise KeyboardInterrupt
        return true(run, now)

    ranker = DirectBoostedRanker("nDCG@3", **SMALL)
    before = dict(vars(ranker))
    monkeypatch.setattr(training_module, "_stage", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        ranker.fit(X, y, qid=qid)
    assert isinstance(raised.value, Interrupted) == (stage > 0)
    if not stage:
        assert vars(ranker) == before
        return
    monkeypatch.undo()
    assert_array_equal(ranker.predict(X), fitted(X, y, qid, n_estimators=stage).predict(X))
    assert "interrupted" in str(ranker.certificate_)


def test_a_refit_that_fails_leaves_the_old_model_whole():
    X, y, qid = data(16)
    ranker = fitted(X, y, qid)
    before = dict(vars(ranker))
    with pytest.raises(DataError):
        ranker.fit(np.ones((6, 2)), np.zeros(6), group=[6])
    assert vars(ranker) == before
    ranker.trees_ = fitted(X[:, :3], y, qid).trees_
    with pytest.raises(DataError, match="fit again"):
        ranker.predict(X)


def test_what_does_not_fit_together_is_not_read():
    X, y, qid = data(17)
    whole = vars(fitted(X, y, qid))
    narrow = fitted(X[:, :3], y, qid)
    for name, value in {
        "trees_": narrow.trees_, "weights_": whole["weights_"][:-1], "history_": None, "certificate_": None,
    }.items():  # fmt: skip
        ranker = DirectBoostedRanker("nDCG@3", **SMALL)
        vars(ranker).update({**whole, name: value})
        with pytest.raises(ModelError, match=name):
            ranker._check_loaded()
    for weights in ([np.nan] * len(whole["weights_"]), list(whole["weights_"])):
        vars(ranker).update({**whole, "weights_": np.array(weights) if np.isnan(weights[0]) else weights})
        with pytest.raises(ModelError, match="weights_"):
            ranker._check_loaded()


def test_options_are_searched_like_any_other():
    import sklearn

    X, y, qid = data(15)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = DirectBoostedRanker("nDCG@3", **SMALL)
        search = GridSearchCV(ranker, {"weight": ["inside", "clamped"], "num_leaves": [2, 4]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_what_can_be_said_of_it_is_said():
    X, y, qid = data(18)
    ranker = fitted(X, y, qid)
    found = ranker.tightness(X, y, qid=qid)
    assert (found.trained, found.own, found.linear) == ("nonconvex", False, False)
    assert found.expected.mean() == pytest.approx(1 - ranker.score(X, y, qid=qid))
