"""Weights of trees are what enumeration of all crossings says: best in the interval, best alone, never falling."""

from itertools import pairwise

import numpy as np
import pytest
from problems.training import made

from rankopt.data import Queries
from rankopt.data.canonical_order import canonical
from rankopt.direct_trees.certificate import MeasureObjective
from rankopt.direct_trees.growers.documents import Size, TrainingDocuments
from rankopt.direct_trees.growers.on_measure import OnMeasure
from rankopt.direct_trees.growers.scikit_learn import ScikitLearn
from rankopt.measures import parse
from rankopt.rankers import DirectBoostedRanker
from rankopt.sweeps import sweep as sweep_module
from rankopt.sweeps.reference import all_crossings, value_at

MEASURES = ("nDCG@3", "nDCG", "AP@10", "ERR@10", "AP", "ERR", "RR", "AUC", "P@3")
SMALL = {"n_estimators": 8, "num_leaves": 5, "min_child_samples": 3, "interval": (0.1, 0.5)}


def data(seed=0):
    return made(seed, queries=14, documents=12)


def problem_of(measure, X, y, qid):
    arranged = canonical(Queries.from_arrays(X, y, qid=qid), np.ones(len(set(qid))))
    return MeasureObjective.of(parse(measure), arranged), arranged.features[arranged.rows]


def run(measure, seed=0, **options):
    """The ranker, its problem, and every standing that training passed through."""
    X, y, qid = data(seed)
    seen = []
    ranker = DirectBoostedRanker(measure, **{**SMALL, **options}, callbacks=[lambda step, now: seen.append(now)])
    ranker.fit(X, y, qid=qid)
    return ranker, problem_of(measure, X, y, qid)[0], seen


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
@pytest.mark.parametrize("weight", ["inside", "window", "clamped"])
def test_what_is_predicted_is_measured_and_it_never_falls(measure, weight):
    ranker, problem, seen = run(measure, strategy="both", weight=weight)
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
    monkeypatch.setattr(sweep_module, "PAIRS", 2**14 if small else 0)
    ranker, problem, seen = run(measure)
    before = [np.zeros(problem.grades.size), *(now.scores for now in seen)]
    for scores, now, step in zip(before, seen, ranker.history_.predicted, strict=False):
        _, values = enumerated(problem, scores, now.trees[-1].column, 0.1, 0.5)
        assert step == pytest.approx(values.max(), abs=1e-12)
        assert now.weights[-1] == 0 or 0.1 < now.weights[-1] < 0.5


def test_clamped_weights_are_the_ends_or_the_best_of_the_line():
    ranker, problem, seen = run("nDCG@3", weight="clamped")
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
    ranker, problem, seen = run(measure, 1, strategy=strategy, n_estimators=5, interval=(0.02, 0.1))
    now, proved = seen[-1], ranker.certificate_
    trees = [tree for tree, weight in zip(now.trees, now.weights, strict=True) if weight]
    reached = [enumerated(problem, now.scores, tree.column)[1].max() for tree in trees]
    assert proved.kind == "direction-wise"
    assert proved.directions == len(trees) == ranker.weights_.size
    assert proved.bound == pytest.approx(max(proved.value, *reached), abs=1e-12)
    if strategy != "stage-wise":
        assert proved.gap < 1e-11
        assert "no weight alone" in str(proved)
    else:
        assert proved.gap == pytest.approx(max(0, max(reached) - proved.value), abs=1e-12)


def test_leveraging_begins_at_the_trees_of_plain_boosting_and_only_rises():
    ranker, problem, seen = run("nDCG@3", 2, strategy="leveraging")
    stages = ranker.history_.sweep == 0
    plain = [now for now, stage in zip(seen, stages, strict=True) if stage]
    assert all(weight == 0.5 for weight in plain[-1].weights)
    target = problem.grades - problem.grades.mean()
    for tree in plain[-1].trees:  # each leaf is the mean of what is left
        means = [target[tree.landed == leaf].mean() for leaf in np.unique(tree.landed)]
        np.testing.assert_allclose(tree.values[np.unique(tree.landed)], means, atol=1e-12)
        target = target - 0.5 * tree.column
    moved = ranker.history_.measure[~stages]
    assert (np.diff(np.append(plain[-1].measure, moved)) > 0).all()
    assert np.isnan(ranker.history_.predicted[stages]).all()


@pytest.mark.study
def test_a_tree_of_the_measure_takes_the_best_split_of_all():
    """The first split against every feature, threshold and step, enumerated."""
    X, y, qid = data(3)
    for measure in ("nDCG@3", "AP@10"):
        problem, table = problem_of(measure, X, y, qid)
        grower = OnMeasure.of(TrainingDocuments(table, problem), Size(2, 3, 0.5, 0, 1))
        zeros = np.zeros(y.size)
        tree = grower.grow(zeros, zeros)
        best = max(
            enumerated(problem, zeros, (table[:, feature] > cut).astype(float))[1].max()
            for feature, cuts in enumerate(grower.thresholds)
            for cut in cuts
            if 3 <= np.count_nonzero(table[:, feature] > cut) <= y.size - 3
        )
        assert problem.value(0.5 * tree.column) == pytest.approx(best, abs=1e-12)
        larger = OnMeasure.of(TrainingDocuments(table, problem), Size(4, 3, 0.5, 0, 1)).grow(zeros, zeros)
        assert 2 < larger.leaves <= 4
        assert problem.value(larger.column) > best
        assert np.bincount(larger.landed)[np.unique(larger.landed)].min() >= 3


def test_growers_split_as_their_packages_do():
    from sklearn.tree import DecisionTreeRegressor

    X, y, qid = data(4)
    problem, table = problem_of("nDCG@3", X, y, qid)
    target = np.random.default_rng(0).normal(size=y.size) + table[:, 1]
    tree = ScikitLearn.of(TrainingDocuments(table, problem), Size(6, 4, 0.5, 0, 1)).grow(target, 0 * target)
    package = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=4, random_state=0).fit(table, target)
    np.testing.assert_allclose(tree.column, package.predict(table), atol=1e-12)
    lightgbm = pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    from rankopt.direct_trees.growers.light_gbm import LightGBM

    grower = LightGBM.of(TrainingDocuments(table, problem), Size(6, 4, 0.5, 0, 1))
    first, second = grower.grow(target, 0 * target), grower.grow(-target, 0 * target)
    found = grower.booster.predict(table, num_iteration=1)
    np.testing.assert_allclose(first.column, found, atol=1e-6)
    np.testing.assert_allclose(second.column, -first.column, atol=1e-12)
    assert lightgbm.Booster is type(grower.booster)


def test_more_bins_than_values_are_quantiles():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 2))
    y, qid = (table[:, 0] > 1).astype(float), np.repeat(np.arange(100), 20)
    problem, table = problem_of("AUC", table, y, qid)
    grower = ScikitLearn.of(TrainingDocuments(table, problem), Size(2, 20, 0.5, 0, 1))
    assert all(edges.size == 254 for edges in grower.edges)
    tree = grower.grow(problem.grades, problem.grades)
    assert abs(tree.threshold[0] - 1) < 0.05
    for feature, edges in enumerate(grower.edges):
        for low, high in pairwise(edges[::50].tolist()):
            inside = (table[:, feature] > low) & (table[:, feature] <= high)
            assert 350 < np.count_nonzero(inside) < 450
