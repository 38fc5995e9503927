"""Trees and weights of classifiers as plain arrays: scikit-learn's bits, in files of data, read without trust."""

import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from problems.training import made
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from formulations.registry import load
from rankopt.errors import ModelError
from rankopt.mcrank import CLASSIFIERS, FORMS
from rankopt.mcrank.classifier_data import BLOCK, PART, GradeTrees, GradeWeights, _descend
from rankopt.rankers import McRanker, load_model

BOOSTED = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=6, early_stopping=False, random_state=0)


def data(seed, classes=3, n=400, kind=np.float64):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 1).astype(kind)
    y = np.digitize(X[:, 0] * X[:, 1] + rng.normal(size=n), np.linspace(-0.5, 1, classes - 1))
    return X, y


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_trees_give_the_bits_of_scikit_learn(classes, kind, monkeypatch):
    X, y = data(classes, classes, kind=kind)
    boosted = BOOSTED.fit(X, y)
    trees = GradeTrees.of(boosted)
    assert (trees.n_features, trees.n_classes) == (5, classes)
    rng = np.random.default_rng(0)
    asked = rng.normal(size=(2 * PART + 3, 5)).astype(kind)
    thresholds = trees.number[trees.feature >= 0]
    asked[:400, 0] = rng.choice(thresholds, 400)  # at a threshold exactly
    asked[500] = 1e30
    expected = boosted.predict_proba(asked)
    for compiled in (True, False):
        monkeypatch.setattr(type(_descend), "pays", lambda *_, compiled=compiled: compiled)
        assert_array_equal(trees.probabilities(asked), expected)
        assert_array_equal(trees.probabilities(csr_array(asked[: BLOCK + 1])), expected[: BLOCK + 1])
        assert trees.probabilities(asked[:0]).shape == (0, classes)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_weights_give_the_bits_of_scikit_learn(classes):
    X, y = data(classes, classes)
    regression = LogisticRegression().fit(X, y)
    weights = GradeWeights.of(regression)
    assert (weights.n_features, weights.n_classes) == (5, classes)
    assert_array_equal(weights.probabilities(X), regression.predict_proba(X))
    without = LogisticRegression(fit_intercept=False).fit(X, y)
    assert_array_equal(GradeWeights.of(without).probabilities(csr_array(X)), without.predict_proba(csr_array(X)))


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "classifier",
    [None, BOOSTED, LogisticRegression(C=0.5), HistGradientBoostingClassifier(learning_rate=0.3, max_iter=7)],
    ids=["default", "boosted", "logistic", "stopped on queries"],
)
@pytest.mark.parametrize("expected", ["grade", "gain"])
def test_a_saved_ranker_gives_the_same_scores_and_the_same_bytes(classifier, expected, tmp_path):
    X, y, qid = made(0, queries=12, documents=10)
    held = made(1, queries=12, documents=10)
    for name in ("one", "two"):
        ranker = McRanker(classifier, expected, normalize="rank")
        ranker.fit(X, y, qid=qid, eval_set=held[:2], eval_qid=held[2])
        ranker.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    again = load_model(tmp_path / "one")
    assert_array_equal(again.predict(X, qid=qid), ranker.predict(X, qid=qid))
    assert not hasattr(again, "classifier_")
    assert again.eval_score_ == ranker.eval_score_ == again.score(*held[:2], qid=held[2])
    assert getattr(again, "n_rounds_", 0) == getattr(ranker, "n_rounds_", 0)
    again.save(tmp_path / "three")
    assert (tmp_path / "three").read_bytes() == (tmp_path / "one").read_bytes()
    assert repr(again.classifier) == repr(classifier)
    assert_array_equal(again.fit(X, y, qid=qid).predict(X, qid=qid), ranker.fit(X, y, qid=qid).predict(X, qid=qid))
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {name.rpartition(".")[2] for name in archive.namelist()} == {"json", "npy", "SHA256SUMS"}


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(3),
        CalibratedClassifierCV(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, categorical_features=[0]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_no_data_is_not_saved_and_the_error_says_why(classifier, tmp_path):
    X, y, qid = made(1, queries=12, documents=10)
    X[:, 0] = np.arange(y.size) % 4
    y = (X[:, 0] % 3 == 0) + (X[:, 1] > 0) * 1.0
    ranker = McRanker(classifier).fit(X, y, qid=qid)
    assert ranker.grades_ is None
    assert np.isfinite(ranker.predict(X)).all()
    with pytest.raises(ModelError, match=f"a {type(classifier).__name__}, cannot"):
        ranker.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_options_that_are_no_data_are_not_saved(tmp_path):
    X, y, qid = made(2, queries=12, documents=10)
    options = {"random_state": np.random.RandomState(0), "max_iter": 3}
    ranker = McRanker(HistGradientBoostingClassifier(**options)).fit(X, y, qid=qid)
    with pytest.raises(ModelError, match="random_state cannot be saved because a RandomState is not data"):
        ranker.save(tmp_path / "model")


class Pretending(HistGradientBoostingClassifier):
    """Its probabilities are not those of its trees."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_a_class_of_ones_own_is_not_taken_for_another(monkeypatch):
    X, y, qid = made(3, queries=12, documents=10)
    assert McRanker(Pretending(max_iter=3)).fit(X, y, qid=qid).grades_ is None
    monkeypatch.setattr(GradeWeights, "probabilities", lambda self, features: np.full((len(features), 3), 1 / 3))
    assert McRanker(LogisticRegression()).fit(X, y, qid=qid).grades_ is None


def test_the_tables_name_what_is_there():
    for name, place in CLASSIFIERS.items():
        kind = load(place)
        assert (kind.__name__, f"{kind.__module__}:{kind.__qualname__}") == (name, place)
        assert any(load(form).of(kind().fit(*data(0))) is not None for form in FORMS.values())


def edited(trees, **changes):
    made = {name: change(getattr(trees, name)) for name, change in changes.items()}
    return lambda: dataclasses.replace(trees, **made)


def put(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def test_trees_that_are_none_are_refused():
    trees = GradeTrees.of(BOOSTED.fit(*data(0)))
    split, leaf = int(np.flatnonzero(trees.feature >= 0)[1]), int(np.flatnonzero(trees.feature < 0)[0])
    second = int(trees.roots[1])
    damages = {
        "a feature that is not there": edited(trees, feature=put(split, 5)),
        "no leaf and no split": edited(trees, feature=put(leaf, -2)),
        "a circle": edited(trees, left=put(split, split)),
        "its parent": edited(trees, left=put(split, 0)),
        "another tree's node": edited(trees, left=put(split, second)),
        "beyond the nodes": edited(trees, right=put(split, trees.feature.size)),
        "before the nodes": edited(trees, right=put(split, -1)),
        "a leaf that is a split": edited(trees, feature=put(leaf, 0)),
        "NaN as a threshold": edited(trees, number=put(split, np.nan)),
        "an infinite leaf": edited(trees, number=put(leaf, np.inf)),
        "leaves whose sum overflows": edited(trees, number=put(leaf, 1e300)),
        "an infinite baseline": edited(trees, baseline=put(0, -np.inf)),
        "two raw values": edited(trees, baseline=lambda array: array[:2]),
        "no raw value": edited(trees, baseline=lambda array: array[:0]),
        "a tree too few": edited(trees, roots=lambda array: array[:-1]),
        "no tree": edited(trees, roots=lambda array: array[:0]),
        "a root elsewhere": edited(trees, roots=put(1, second + 1)),
        "a root twice": edited(trees, roots=put(1, 0)),
        "a root beyond": edited(trees, roots=put(-1, trees.feature.size + 7)),
        "a shorter column": edited(trees, number=lambda array: array[:-1]),
        "other integers": edited(trees, left=lambda array: array.astype(np.int64)),
        "a matrix": edited(trees, number=lambda array: array[None]),
        "no array": edited(trees, feature=list),
        "no features": edited(trees, n_features=lambda _: 0),
        "features by word": edited(trees, n_features=str),
    }  # fmt: skip
    for name, damage in damages.items():
        try:
            damage()
        except ModelError:
            continue
        pytest.fail(name)
    far = edited(trees, number=put(split, np.inf))()  # scikit-learn's own mark: all go left
    assert np.isfinite(far.probabilities(data(1)[0])).all()


def test_weights_that_are_none_are_refused():
    weights, intercepts = np.ones((3, 4)), np.ones(3)
    for one, other in [
        (weights[:2], intercepts[:2]), (weights[:0], intercepts[:0]), (weights, intercepts[:2]),
        (weights[0], intercepts),
        (weights * np.nan, intercepts), (weights, intercepts * np.inf), (weights.astype(int), intercepts),
        (weights[:, :0], intercepts), (weights.tolist(), intercepts),
    ]:  # fmt: skip
        with pytest.raises(ModelError):
            GradeWeights(one, other)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"fitted": {"grades_": None}}, "grades_ is missing, or no classifier"),
        ({"fitted": {"grades_": {"record": "record:Decay", "fields": {}}}}, "grades_ is missing, or no classifier"),
        ({"fitted": {"grades_": {"record": "solver:highs", "fields": {}}}}, "grades_ is missing, or no classifier"),
        ({"fitted": {"classes_": [0, 1, 2]}}, "classes_ is missing, or no vector"),
        ({"fitted": {"n_features_in_": 3}}, "of 4 features into 3 classes, not of 3"),
        ({"params": {"expected": "median"}}, "expected = 'median' is unknown"),
        ({"params": {"classifier": 3}}, "classifier cannot be a int"),
        ({"params": {"classifier": {"record": "classifier:SVC", "fields": {}}}}, "not one of the records"),
        ({"params": {"classifier": {"record": "classifier:LogisticRegression", "fields": {"x": 1}}}}, "no field 'x'"),
    ],
)  # fmt: skip
def test_a_manifest_that_we_would_not_write_is_refused(changes, says, tmp_path):
    X, y, qid = made(4, queries=12, documents=10)
    McRanker(BOOSTED).fit(X, y, qid=qid).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != "SHA256SUMS"}
    manifest = json.loads(members["model.json"])
    for part, values in changes.items():
        manifest[part].update(values)
    from rankopt.persistence.archive import write_archive

    write_archive(tmp_path / "model", {**members, "model.json": json.dumps(manifest).encode()})
    with pytest.raises(ModelError, match=says):
        load_model(tmp_path / "model")


def test_classes_that_are_no_grades_are_refused():
    X, y, qid = made(5, queries=12, documents=10)
    ranker = McRanker(BOOSTED, "gain").fit(X, y, qid=qid)
    for classes in (
        [0.0, 1.0],
        [0.0, 2.0, 1.0],
        [-1.0, 0.0, 1.0],
        [0.0, 1.0, np.inf],
        [0.0, np.nan, 1.0],
        [0.0, 1.0, 2e3],
    ):
        ranker.classes_ = np.array(classes, dtype=float)
        with pytest.raises(ModelError):
            ranker.save(io.BytesIO())
