"""Trees with exact weights against enumeration of all crossings; splits against scikit-learn; conventions."""

import pickle
import zipfile
from dataclasses import replace
from itertools import pairwise

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
from rankopt.data.canonical_order import canonical
from rankopt.errors import DataError, ModelError, TrainingInterruptedWarning
from rankopt.experimental import DirectBoostedRanker
from rankopt.experimental.tree_ensemble import MeasureObjective, TreeGrower
from rankopt.measures import evaluate, parse
from rankopt.rankers import load_model
from rankopt.sweeps import sweep
from rankopt.sweeps.reference import all_crossings, value_at

MEASURES = ("nDCG@3", "nDCG", "AP@10", "ERR@10", "AP", "ERR", "RR", "AUC", "P@3")
SMALL = {"n_estimators": 8, "num_leaves": 5, "min_child_samples": 3}


def data(seed=0, **options):
    return made(seed, queries=16, documents=10, **options)


def fitted(X, y, qid, *, query_weight=None, **options):
    return DirectBoostedRanker("nDCG@3", **{**SMALL, **options}).fit(X, y, qid=qid, query_weight=query_weight)


def objective_and_features(measure, X, y, qid):
    arranged = canonical(Queries.from_arrays(X, y, qid=qid), np.ones(len(set(qid))))
    return MeasureObjective.from_queries(parse(measure), arranged), arranged.features[arranged.rows]


def run(measure, seed=0, **options):
    """The ranker, its objective, and every state that training passed through."""
    X, y, qid = data(seed)
    seen = []
    options = {**SMALL, "weight_bounds": (0.1, 0.5), **options}
    ranker = DirectBoostedRanker(measure, **options, callbacks=[lambda step, now: seen.append(now)])
    ranker.fit(X, y, qid=qid)
    return ranker, objective_and_features(measure, X, y, qid)[0], seen


def enumerated(problem, scores, column, low=-np.inf, high=np.inf):
    """A t in each interval between all crossings that meets (low, high), and M there."""
    own = problem.sweep
    s, a = scores[problem.rows], column[problem.rows]
    crossings = all_crossings(s, a, own.offsets)
    kept = crossings[(crossings > low) & (crossings < high)]
    if kept.size:
        far = max(1.0, np.abs(kept).max())
        low, high = max(low, kept[0] - far), min(high, kept[-1] + far)
    else:
        low, high = max(low, -1.0), min(high, 1.0)
    ends = np.concatenate([[low], kept, [high]])
    wide = np.diff(ends) > 1e-9 * np.maximum(1, np.abs(ends[1:]))
    times = (ends[:-1] + np.diff(ends) / 2)[wide]
    given = (own.relevance, own.weights, own.offsets)
    return times, np.array([value_at(own.measure, s, a, *given, float(t)) for t in times])


@pytest.mark.every(4)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("weight", ["inside", "clamped"])
def test_what_is_predicted_is_measured_and_it_never_falls(measure, weight):
    ranker, problem, seen = run(measure, strategy="both", weight_rule=weight)
    history = ranker.history_
    taken = history.weight != 0
    np.testing.assert_allclose(history.predicted[taken], history.measure[taken], rtol=0, atol=1e-12)
    assert (np.diff(history.measure) >= 0).all()
    assert (history.predicted[~taken] < history.measure[~taken]).all()
    for now, measured in zip(seen, history.measure, strict=True):
        assert problem.value(now.scores) == now.measure == measured
    assert history.measure[-1] == ranker.certificate_.value == pytest.approx(ranker.score(*data()[:2], qid=data()[2]))


@pytest.mark.every(3)
@pytest.mark.parametrize("measure", ["nDCG@3", "AP@10", "ERR@10", "RR"])
@pytest.mark.parametrize("small", [True, False])
def test_a_stage_takes_the_best_weight_inside_the_interval(measure, small, monkeypatch):
    monkeypatch.setattr(sweep, "PAIRS", 2**14 if small else 0)
    ranker, problem, seen = run(measure)
    before = [np.zeros(problem.grades.size), *(now.scores for now in seen)]
    for scores, now, step in zip(before, seen, ranker.history_.predicted, strict=False):
        _, values = enumerated(problem, scores, now.trees[-1].column, 0.1, 0.5)
        assert step == pytest.approx(values.max(), abs=1e-12)
        assert now.weights[-1] == 0 or 0.1 < now.weights[-1] < 0.5


def test_clamped_weights_are_the_ends_or_the_best_of_the_line():
    ranker, problem, seen = run("nDCG@3", weight_rule="clamped")
    ends = 0
    before = [np.zeros(problem.grades.size), *(now.scores for now in seen)]
    for scores, now, step in zip(before, seen, ranker.history_.predicted, strict=False):
        at_end = any(abs(now.weights[-1] - end) < 0.05 for end in (0.1, 0.5))
        ends += at_end
        if not at_end and now.weights[-1]:
            assert step == pytest.approx(enumerated(problem, scores, now.trees[-1].column)[1].max(), abs=1e-12)
    assert ends > 1


@pytest.mark.every(4)
@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "ERR@10"])
@pytest.mark.parametrize("strategy", ["leveraging", "stage-wise", "both"])
def test_no_weight_alone_reaches_more_than_the_certificate_says(measure, strategy):
    ranker, problem, seen = run(measure, 1, strategy=strategy, n_estimators=5, weight_bounds=(0.02, 0.1))
    now, proved = seen[-1], ranker.certificate_
    trees = [tree for tree, weight in zip(now.trees, now.weights, strict=True) if weight]
    reached = [enumerated(problem, now.scores, tree.column)[1].max() for tree in trees]
    assert proved.kind == "directions"
    assert proved.directions == len(trees) == ranker.estimator_weights_.size
    assert proved.bound == pytest.approx(max(proved.value, *reached), abs=1e-12)
    if strategy != "stage-wise":
        assert proved.gap < 1e-11
        assert "no single weight" in str(proved)
    else:
        assert proved.gap == pytest.approx(max(0, max(reached) - proved.value), abs=1e-12)


def test_leveraging_begins_at_the_trees_of_plain_boosting_and_only_rises():
    ranker, problem, seen = run("nDCG@3", 2, strategy="leveraging")
    stages = ranker.history_.sweep == 0
    plain = [now for now, stage in zip(seen, stages, strict=True) if stage]
    assert all(weight == 0.5 for weight in plain[-1].weights)
    target = problem.grades - problem.grades.mean()
    for tree in plain[-1].trees:  # each leaf is the mean of what is left
        means = [target[tree.leaf_of == leaf].mean() for leaf in np.unique(tree.leaf_of)]
        np.testing.assert_allclose(tree.values[np.unique(tree.leaf_of)], means, atol=1e-12)
        target = target - 0.5 * tree.column
    moved = ranker.history_.measure[~stages]
    assert (np.diff(np.append(plain[-1].measure, moved)) > 0).all()
    assert np.isnan(ranker.history_.predicted[stages]).all()


def test_trees_split_as_scikit_learn_does():
    from sklearn.tree import DecisionTreeRegressor

    objective, features = objective_and_features("nDCG@3", *data(4))
    target = np.random.default_rng(0).normal(size=len(features)) + features[:, 1]
    tree = TreeGrower(features, objective.shares, leaves=6, samples=4).grow(target)
    package = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=4, random_state=0).fit(features, target)
    np.testing.assert_allclose(tree.column, package.predict(features), atol=1e-12)


def test_more_bins_than_values_are_quantiles():
    table = np.random.default_rng(0).normal(size=(2000, 2))
    y, qid = (table[:, 0] > 1).astype(float), np.repeat(np.arange(100), 20)
    objective, features = objective_and_features("AUC", table, y, qid)
    grower = TreeGrower(features, objective.shares, leaves=2, samples=20)
    assert all(edges.size == 254 for edges in grower.edges)
    tree = grower.grow(objective.grades)
    assert abs(tree.threshold[0] - 1) < 0.05
    for column, edges in zip(features.T, grower.edges, strict=True):
        for low, high in pairwise(edges[::50].tolist()):
            assert 350 < np.count_nonzero((column > low) & (column <= high)) < 450


@parametrize_with_checks(
    [
        DirectBoostedRanker(n_estimators=4),
        DirectBoostedRanker(n_estimators=3, strategy="both", weight_rule="clamped", normalize="zscore"),
    ]
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.mark.every(5)
def test_trees_learn_what_no_linear_ranker_can():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 2)), np.repeat(np.arange(30), 20)
    y = (np.abs(X[:, 0]) > 1).astype(float)
    learned, other = slice(0, 300), slice(300, 600)
    ranker = fitted(X[learned], y[learned], qid[learned], weight_bounds=(0.1, 0.5), n_estimators=20)
    assert ranker.score(X[other], y[other], qid=qid[other]) > 0.9


@pytest.mark.every(5)
def test_rows_in_any_order_of_any_table_give_the_same_trees():
    X, y, qid = data()
    rows = np.random.default_rng(1).permutation(y.size)
    names = np.array([f"query {q}" for q in qid])
    straight, moved = fitted(X, y, qid), fitted(X[rows], y[rows], names[rows])
    assert straight.estimator_weights_.size
    for name in ("feature", "number", "left", "right", "roots"):
        assert_array_equal(getattr(straight.estimators_, name), getattr(moved.estimators_, name))
    assert_array_equal(straight.estimator_weights_, moved.estimator_weights_)
    scores = straight.predict(X)
    assert_array_equal(fitted(csr_array(X), y, qid).predict(csr_array(X)), scores)
    for options in ({"n_jobs": 1}, {"n_jobs": 2}):
        assert_array_equal(fitted(X, y, qid, **options).predict(X), scores)
    single = X.astype(np.float32)
    assert_array_equal(fitted(single, y, qid).predict(single), fitted(single.astype(float), y, qid).predict(single))


@pytest.mark.every(5)
def test_a_saved_ranker_gives_the_same_scores_and_the_same_bytes(tmp_path):
    X, y, qid = data(7)
    options = {"normalize": "rank", "strategy": "both", "weight_bounds": (0.1, 0.5)}
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


@pytest.mark.parametrize("strategy", DirectBoostedRanker._rules["strategy"])
def test_an_eval_set_chooses_what_is_best_there(strategy, tmp_path):
    X, y, qid = data(2)
    Z, z, zid = data(3)
    ranker = DirectBoostedRanker("nDCG@3", min_child_samples=3, early_stopping=5, strategy=strategy).fit(
        X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[zid]
    )
    judged = ranker.history_.judged
    assert np.nanmax(judged) == ranker.best_score_ == ranker.score(Z, z, qid=zid)
    stages = judged[ranker.history_.sweep == 0]
    assert len(stages) == min(np.argmax(stages) + 1 + 5, 1000)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").best_score_ == ranker.best_score_
    assert not hasattr(clone(ranker).set_params(n_estimators=2).fit(X, y, qid=qid), "best_score_")


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
    options = {"min_child_samples": 1, "n_estimators": 3}
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
    assert ranker.best_score_ == ranker.score(queries)


def test_score_is_the_mean_of_the_measure_and_what_the_certificate_says():
    X, y, qid = data(6)
    y = np.where(qid < 2, 0.0, y)  # no nDCG there: grown on, and not measured
    ranker, queries = fitted(X, y, qid), Queries.from_arrays(X, y, qid=qid)
    found = evaluate(queries, ranker.predict(X), "nDCG@3").mean()
    assert ranker.score(X, y, qid=qid) == pytest.approx(found)
    assert ranker.certificate_.value == pytest.approx(found)
    with pytest.raises(DataError, match="give nDCG@3 a value"):
        fitted(X, np.zeros(y.size), qid)
    with pytest.raises(DataError, match="1 sample"):
        DirectBoostedRanker().fit([[1.0]], [1.0], group=[1])


def test_features_that_tell_nothing_apart_leave_all_scores_equal(tmp_path):
    _, y, qid = data(8)
    ranker = fitted(np.ones((y.size, 2)), y, qid, strategy="both")
    assert set(ranker.predict(np.ones((y.size, 2)))) == {0.0}
    assert (ranker.estimator_weights_.size, len(ranker.history_), ranker.certificate_.directions) == (0, 0, 0)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(np.ones((1, 2))).tolist() == [0.0]


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 0}, {"n_estimators": 1.5}, {"num_leaves": 1}, {"min_child_samples": 0},
        {"early_stopping": None}, {"n_jobs": 0}, {"strategy": "at once"},
        {"weight_rule": "best"},
        {"weight_bounds": (0.5, 0.1)}, {"weight_bounds": (0.0, 0.1)}, {"weight_bounds": 0.1},
        {"weight_bounds": (0.1, np.inf)}, {"time_limit": 0}, {"callbacks": 3}, {"random_state": "seed"},
        {"random_state": -1}, {"measure": "nDCGG"}, {"normalize": "loudly"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_cannot_work_are_refused_by_name(options):
    X, y, qid = data(10)
    with pytest.raises(ValueError, match=next(iter(options))):
        DirectBoostedRanker(**options).fit(X, y, qid=qid)


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

    grow, grown, ranker = TreeGrower.grow, [], DirectBoostedRanker("nDCG@3", **SMALL)

    def interrupting(grower, target):
        grown.append(0)
        if len(grown) > stage:
            raise KeyboardInterrupt
        return grow(grower, target)

    before = dict(vars(ranker))
    monkeypatch.setattr(TreeGrower, "grow", interrupting)
    with pytest.raises(KeyboardInterrupt) if not stage else pytest.warns(TrainingInterruptedWarning):
        ranker.fit(X, y, qid=qid)
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
    ranker.estimators_ = fitted(X[:, :3], y, qid).estimators_
    with pytest.raises(DataError, match="fit again"):
        ranker.predict(X)


def test_what_does_not_fit_together_is_not_read():
    X, y, qid = data(17)
    whole = vars(fitted(X, y, qid))
    narrow = fitted(X[:, :3], y, qid)
    for name, value in {
        "estimators_": narrow.estimators_, "estimator_weights_": whole["estimator_weights_"][:-1], "history_": None,
        "certificate_": None,
    }.items():  # fmt: skip
        ranker = DirectBoostedRanker("nDCG@3", **SMALL)
        vars(ranker).update({**whole, name: value})
        with pytest.raises(ModelError, match=name):
            ranker._check_loaded()
    for weights in ([np.nan] * len(whole["estimator_weights_"]), list(whole["estimator_weights_"])):
        vars(ranker).update({**whole, "estimator_weights_": np.array(weights) if np.isnan(weights[0]) else weights})
        with pytest.raises(ModelError, match="estimator_weights_"):
            ranker._check_loaded()


def changed(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def test_arrays_that_are_no_trees_are_refused():
    table = fitted(*data(9)).estimators_
    split, leaf = int(np.flatnonzero(table.feature >= 0)[1]), int(np.flatnonzero(table.feature < 0)[0])
    second = int(table.roots[1])
    damages = {
        "a feature that is not there": {"feature": changed(split, 4)},
        "no leaf and no split": {"feature": changed(leaf, -2)},
        "a circle": {"left": changed(split, split)},
        "its parent": {"left": changed(split, 0)},
        "another tree's node": {"left": changed(split, second)},
        "beyond the nodes": {"right": changed(split, table.feature.size)},
        "before the nodes": {"right": changed(split, -1)},
        "a leaf that is a split": {"feature": changed(leaf, 0)},
        "NaN as a threshold": {"number": changed(split, np.nan)},
        "an infinite leaf": {"number": changed(leaf, np.inf)},
        "leaves whose sum overflows": {"number": changed(leaf, 1e300)},
        "no tree": {"roots": lambda array: array[:0]},
        "a root elsewhere": {"roots": changed(1, second + 1)},
        "a root twice": {"roots": changed(1, 0)},
        "a root beyond": {"roots": changed(-1, table.feature.size + 7)},
        "a shorter column": {"number": lambda array: array[:-1]},
        "other integers": {"left": lambda array: array.astype(np.int64)},
        "a matrix": {"number": lambda array: array[None]},
        "no array": {"feature": list},
        "no features": {"n_features": lambda _: 0},
        "features by word": {"n_features": str},
    }  # fmt: skip
    for name, changes in damages.items():
        try:
            replace(table, **{field: change(getattr(table, field)) for field, change in changes.items()})
        except ModelError:
            continue
        pytest.fail(name)


def test_options_are_searched_like_any_other():
    import sklearn

    X, y, qid = data(15)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = DirectBoostedRanker("nDCG@3", **SMALL)
        search = GridSearchCV(ranker, {"weight_rule": ["inside", "clamped"], "num_leaves": [2, 4]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_what_can_be_said_of_it_is_said():
    X, y, qid = data(18)
    ranker = fitted(X, y, qid)
    found = ranker.bound_tightness(X, y, qid=qid)
    assert (found.trained, found.own, found.linear) == ("nonconvex", False, False)
    assert found.expected.mean() == pytest.approx(1 - ranker.score(X, y, qid=qid))
