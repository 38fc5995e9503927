"""McRank scores by the expectation that its classifier gives, and keeps our conventions."""

import pickle
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems.rated import tastes
from problems.training import made
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.experimental import McRanker, RescaledSlack
from rankopt.measures import evaluate
from rankopt.rankers import CofiRanker, LossRanker, save_model
from rankopt.testing import check_loss

SMALL = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=4, early_stopping=False, random_state=0)


def data(seed=0, **options):
    return made(seed, queries=12, documents=10, **options)


def fitted(X, y, qid, classifier=SMALL, expectation="grade", **options):
    return McRanker(classifier, expectation, measure="nDCG@3", **options).fit(X, y, qid=qid)


@parametrize_with_checks([McRanker(LogisticRegression(max_iter=1000), "gain")])
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.mark.study
@parametrize_with_checks([McRanker(SMALL), McRanker(normalize="zscore")])
def test_scikit_learn_accepts_other_classifiers(estimator, check):
    check(estimator)


@pytest.mark.parametrize("expected", ["grade", "gain"])
@pytest.mark.parametrize(
    "classifier",
    [SMALL, LogisticRegression(), RandomForestClassifier(5, random_state=0), LinearDiscriminantAnalysis()],
    ids=lambda one: type(one).__name__,
)
def test_the_score_is_the_expected_grade_or_gain(classifier, expected):
    X, y, qid = data()
    for grades in (y, np.minimum(y, 1.0), y / 2 + 1):
        ranker = fitted(X, grades, qid, classifier, expected)
        assert_array_equal(ranker.classes_, np.unique(grades))
        worth = ranker.classes_ if expected == "grade" else 2**ranker.classes_ - 1
        assert_allclose(ranker.predict(X), ranker.classifier_.predict_proba(X) @ worth, rtol=1e-12, atol=1e-14)


def test_rows_in_any_order_give_the_same_bits():
    X, y, qid = data(7)
    rows = np.random.default_rng(1).permutation(y.size)
    straight, moved = fitted(X, y, qid), fitted(X[rows], y[rows], np.array([f"query {q}" for q in qid])[rows])
    assert_array_equal(moved.predict(X), straight.predict(X))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
    assert_array_equal(McRanker(SMALL, measure="nDCG@3").fit(frame, y).predict(frame), straight.predict(X))
    assert_array_equal(McRanker(SMALL, measure="nDCG@3").fit(X, y, group=[10] * 12).predict(X), straight.predict(X))
    assert_array_equal(fitted(csr_array(X), y, qid).predict(csr_array(X)), straight.predict(X))


def test_the_default_is_the_same_each_time_and_an_eval_set_is_judged():
    X, y, qid = data(8)
    Z, z, zid = data(4)
    one = McRanker().fit(X, y, qid=qid)
    assert not hasattr(one, "best_score_")
    two = McRanker().fit(X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[zid])
    assert_array_equal(two.predict(X), one.predict(X))
    assert two.best_score_ == two.score(Z, z, qid=zid)
    assert not hasattr(two.fit(X, y, qid=qid), "best_score_")


def test_weights_of_queries_are_weights_of_their_rows_and_of_their_measure():
    X, y, qid = data(9)
    whole = clone(SMALL).set_params(min_samples_leaf=1)
    doubled = np.concatenate([np.arange(y.size), np.flatnonzero(qid < 3)])
    names = np.concatenate([qid, qid[qid < 3] + 100])
    weighted = McRanker(whole).fit(X, y, qid=qid, query_weight={q: 2.0 if q < 3 else 1.0 for q in range(12)})
    twice = McRanker(whole).fit(X[doubled], y[doubled], qid=names)
    assert_allclose(weighted.predict(X), twice.predict(X), atol=2e-2)  # bins see weights, and rows, their own way
    assert (McRanker(whole).fit(X, y, qid=qid).predict(X) != weighted.predict(X)).any()
    without = McRanker(SMALL).fit(X, y, qid=qid, query_weight={q: float(q > 2) for q in range(12)})
    assert_array_equal(without.predict(X), McRanker(SMALL).fit(X[qid > 2], y[qid > 2], qid=qid[qid > 2]).predict(X))
    with pytest.raises(OptionError, match="sample_weight"):
        McRanker(LinearDiscriminantAnalysis()).fit(X, y, qid=qid, query_weight=np.arange(12.0))


def test_rank_and_score_obey_constraints():
    X, y, qid = data(10)
    site = np.arange(y.size) % 4
    ranker = fitted(X, y, qid, constraints=Admissible(3).at_most(1, by="site"))
    for order in ranker.rank(X, qid, attributes={"site": site}).values():
        assert len(set(site[order])) == 3
    queries = Queries.from_arrays(X, y, qid=qid, attributes={"site": site})
    assert ranker.score(queries) <= ranker.score(queries, constraints=Admissible(10)) + 1e-12
    found = evaluate(queries, ranker.predict(X), "nDCG@3").mean()
    assert fitted(X, y, qid).score(queries) == pytest.approx(found)


def test_grades_that_are_no_classes_are_refused():
    X, y, qid = data(11)
    with pytest.raises(DataError, match="2 to 31 distinct grades; got 1 in 120 samples"):
        fitted(X, np.full(y.size, 2.0), qid)
    with pytest.raises(DataError, match=r"got 120 in 120 samples. Bin them"):
        fitted(X, np.arange(y.size) / 7, qid)
    with pytest.raises(DataError, match="use expectation='grade'"):
        fitted(X, y * 1000, qid, expectation="gain")
    assert McRanker(SMALL).fit(X, y * 1000, qid=qid).classes_.tolist() == [0, 1000, 2000]
    with pytest.raises(DataError, match="1 sample"):
        McRanker().fit([[1.0]], [1.0], group=[1])
    apart = np.repeat(np.arange(12) % 2, 10)  # each query of one grade: nothing to order inside, and yet two classes
    assert fitted(X, apart, qid).classes_.tolist() == [0, 1]


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 3), np.nan)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classifier": LinearSVC()}, "must have predict_proba"),
        ({"classifier": HistGradientBoostingClassifier}, "an object such as"),
        ({"classifier": "trees"}, "an object such as .* got 'trees'"),
        ({"expectation": "median"}, "got 'median'"),
        ({"normalize": "loudly"}, "normalize"),
    ],
)
def test_options_that_cannot_work_are_refused_by_name(options, says):
    X, y, qid = data(13)
    with pytest.raises(OptionError, match=says):
        McRanker(**options).fit(X, y, qid=qid)


def test_a_classifier_without_probabilities_of_documents_is_told_of():
    X, y, qid = data(14)
    with pytest.raises(DataError, match="predict_proba of Broken must give a finite table of 120 × 3"):
        McRanker(Broken()).fit(X, y, qid=qid).predict(X)


def test_options_of_the_classifier_are_searched_like_any_other():
    ranker = McRanker(SMALL).set_params(classifier__max_leaf_nodes=7)
    assert ranker.get_params()["classifier__max_leaf_nodes"] == 7
    X, y, qid = data(15)
    ranker.fit(X, y, qid=qid)
    assert ranker.classifier_ is not ranker.classifier


def test_what_can_be_said_of_it_is_said():
    X, y, qid = data(18)
    ranker = fitted(X, y, qid)
    found = ranker.bound_tightness(X, y, qid=qid)
    assert (found.trained, found.own, found.lam, found.linear) == ("nonconvex", False, False, False)
    assert found.finding.endswith("BoostedRanker grows trees on one.")
    assert found.expected.mean() == pytest.approx(1 - ranker.score(X, y, qid=qid))
    assert not hasattr(ranker, "explain")


def test_pipelines_and_searches_keep_queries_whole():
    X, y, qid = data(17)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), McRanker(SMALL, measure="nDCG@3"))
        grid = {"mcranker__expectation": ["grade", "gain"], "mcranker__classifier": [SMALL, LogisticRegression()]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3)).fit(X, y, qid=qid, groups=qid)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.score(X, y, qid=qid) > 0.5


def test_a_refit_that_fails_leaves_the_old_model_whole():
    X, y, qid = data(16)
    ranker = fitted(X, y, qid)
    before = dict(vars(ranker))
    with pytest.raises(DataError):
        ranker.fit(np.ones((6, 2)), np.ones(6), group=[6])
    assert vars(ranker) == before


def test_a_ranker_is_pickled_and_not_saved(tmp_path):
    X, y, qid = data(16)
    ranker = fitted(X, y, qid)
    assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(X), ranker.predict(X))
    with pytest.raises(ModelError, match=r"joblib.dump\(ranker, path\) or skops.io.dump"):
        ranker.save(tmp_path / "model")
    with pytest.raises(ModelError, match="McRanker cannot be saved"):
        save_model(ranker, tmp_path / "model")
    assert not [*tmp_path.iterdir()]


# The rescaled slack: a convex bound of the regret, valid planes, a certificate with true gaps.


def every_order(loss, scores):
    """For each query regret and margin of all orders, and whether the scores allow them."""
    ranking, reference = loss.problem.ranking, loss.problem.reference
    for low, high in pairwise(loss.offsets.tolist()):
        s, gain = scores[low:high], ranking.gain[low:high]
        discount, decay = ranking.discount[low:high], ranking.position_weights[low:high]
        orders = [list(order) for order in permutations(range(high - low))]
        earned = np.array([discount @ gain[order] for order in orders])
        margin = np.array([1 + decay @ s[order] for order in orders]) - reference[low:high] @ s
        yield earned.max() - earned, margin, np.array([(np.diff(s[order]) <= 0).all() for order in orders])


@pytest.mark.every(5)
@pytest.mark.parametrize("position_weights", ["power(0.5)", "linear", "discount"])
def test_it_passes_what_losses_pass(position_weights):
    check_loss(partial(RescaledSlack, measure="nDCG@3", position_weights=position_weights))


def test_value_and_bound_enclose_the_maximum_and_the_maximum_bounds_the_regret():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 3, 8, 9, 15])
    loss = RescaledSlack(rng.integers(0, 3, 15).astype(float), offsets, "nDCG@3")
    for scale in (0.01, 1.0, 100.0):
        scores = scale * rng.normal(size=15)
        for prove in (False, True):
            here = loss.at(scores, prove)
            slope = here.assigned - here.reference
            np.testing.assert_allclose(here.height + np.add.reduceat(slope * scores, offsets[:-1]), here.value)
            for q, (regret, margin, allowed) in enumerate(every_order(loss, scores)):
                most = (regret * margin).max()
                assert here.value[q] <= most + 1e-9 * scale
                assert most <= here.bound[q] + 1e-9 * scale
                assert regret[allowed].max() <= most + 1e-12


def test_training_closes_the_gap_and_its_bound_is_below_every_objective():
    X, y, qid = made(queries=20, documents=12)
    ranker = LossRanker(RescaledSlack, "nDCG@5", lam=0.05, tol=1e-2).fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert proved.kind == "global"
    assert proved.relative_gap <= 1e-2
    risk = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    rng = np.random.default_rng(1)
    for w in ranker.coef_ + rng.normal(size=(20, 4)) * np.logspace(-3, 0, 20)[:, None]:
        there = risk.risk.at(w)
        assert risk.regularizer(w) + there.bound >= proved.bound
        assert there.bound >= there.value
    assert ranker.score(X, y, qid=qid) > 0.7


def test_it_is_of_the_measure_of_its_ranker():
    X, y, qid = made(queries=10)
    named = LossRanker(RescaledSlack, "P@2", lam=0.1, tol=0.1).fit(X, y > 0, qid=qid)
    given = LossRanker(partial(RescaledSlack, measure="P@2"), "nDCG@10", lam=0.1, tol=0.1).fit(X, y > 0, qid=qid)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    with pytest.raises(OptionError, match="has no regret"):
        LossRanker(RescaledSlack, "AP").fit(X, y > 0, qid=qid)


def test_collaborative_ranking_refuses_a_loss_that_is_known_within_bounds_only():
    with pytest.raises(OptionError, match="is known within bounds only"):
        CofiRanker(RescaledSlack).fit(tastes())
