"""Objectives and metrics: what LightGBM and XGBoost are given is what our loss and our measure say."""

import pickle

import numpy as np
import pytest
from problems.training import made

from rankopt.boosting import boosting_metric, boosting_objective
from rankopt.boosting.objective import BoostingData
from rankopt.data import Queries
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.losses import ScoreLoss
from rankopt.measures import evaluate
from rankopt.measures.measure import Convention

MADE = made(0, queries=14, documents=9)


def rows(scores, weights=None):
    _, y, qid = MADE
    return BoostingData.from_arrays(y, scores, weights, np.bincount(qid), "the test")


def scores_of(seed=0):
    return np.random.default_rng(seed).normal(size=MADE[1].size)


@pytest.mark.parametrize("bound", ["nonconvex", "tie-aware"])
@pytest.mark.parametrize(("level", "cutoff"), [(1, 3), (3, 3), (5, 5)])
def test_without_noise_the_gradient_is_the_slope_of_the_loss_in_units_of_its_mean(bound, level, cutoff):
    options = {"score_noise": 0.0, "scale": 0.5, "damping": 0.2, "position_weights": "power(0.5)"}
    objective = boosting_objective("nDCG@3", bound=bound, truncation_level=level, **options)
    _, y, qid = MADE
    y = np.where(qid == 5, 1.0, y)
    gradient, hessian = objective.at(BoostingData.from_arrays(y, scores_of(), None, np.bincount(qid), "the test"))
    found = ScoreLoss(f"nDCG@{cutoff}", bound).bind(y, qid=qid).at(0.5 * scores_of())
    counted = np.repeat(found.counted, np.bincount(qid))
    mean = np.abs(found.slope[counted]).mean()
    np.testing.assert_allclose(gradient, found.slope / mean)
    np.testing.assert_allclose(hessian, np.where(counted, np.abs(found.slope) / mean + 0.2, 1e-6))
    assert not counted[qid == 5].any()


def test_noise_is_a_draw_for_each_scores_and_seed():
    one, same, other = (boosting_objective("nDCG@3", score_noise=0.5, seed=seed) for seed in (1, 1, 2))
    given = rows(scores_of())
    np.testing.assert_array_equal(one.at(given)[0], same.at(given)[0])
    assert (one.at(given)[0] != other.at(given)[0]).any()
    still = boosting_objective("nDCG@3", score_noise=0.0)
    np.testing.assert_array_equal(one.at(rows(np.zeros(given.scores.size)))[0], still.at(rows(0 * scores_of()))[0])


def test_where_every_query_is_right_by_a_margin_nothing_moves():
    _, y, _ = MADE
    gradient, hessian = boosting_objective("nDCG@3", score_noise=0.0).at(rows(100.0 * y))
    assert not gradient.any()
    assert np.isfinite(hessian).all()


def test_objectives_are_data_and_know_several_data_sets():
    objective = boosting_objective("nDCG@3")
    first = objective.at(rows(scores_of()))[0]
    for size in range(2, 14):
        objective.at(BoostingData.from_arrays(np.arange(size) % 2, np.zeros(size), None, [size], "the test"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(objective)).at(rows(scores_of()))[0], first)
    np.testing.assert_array_equal(objective.at(rows(scores_of()))[0], first)


def test_lightgbm_learns_with_it_by_both_doors():
    lightgbm = pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    X, y, qid = MADE
    sizes, weights = np.bincount(qid), np.repeat(np.linspace(1, 2, 14), 9)
    options = {"num_leaves": 4, "min_child_samples": 3, "verbosity": -1, "n_jobs": 1, "learning_rate": 0.1}
    ranker = lightgbm.LGBMRanker(objective=boosting_objective("nDCG@3"), n_estimators=15, **options)
    ranker.fit(
        X, y, group=sizes, sample_weight=weights, eval_X=X, eval_y=y, eval_group=[sizes],
        eval_metric=boosting_metric("nDCG@3"), callbacks=[lightgbm.early_stopping(15, verbose=False)],
    )  # fmt: skip
    assert pickle.loads(pickle.dumps(ranker)).predict(X).shape == y.shape
    watched = next(iter(ranker.evals_result_.values()))["nDCG@3"]
    queries = Queries.from_arrays(X, y, qid=qid)
    weight = np.linspace(1, 2, 14)
    assert evaluate(queries, ranker.predict(X), "nDCG@3").mean() > 0.85
    assert len(watched) == 15
    data = lightgbm.Dataset(X, y, group=sizes, weight=weights)
    found = {}
    booster = lightgbm.train(
        {"objective": boosting_objective("nDCG@3"), "metric": "None", **options}, data, 15, valid_sets=[data],
        valid_names=["own"], feval=boosting_metric("nDCG@3"), callbacks=[lightgbm.record_evaluation(found)],
    )  # fmt: skip
    mean = evaluate(queries, booster.predict(X), "nDCG@3").mean(weights=weight)
    assert found["own"]["nDCG@3"][-1] == pytest.approx(mean, abs=1e-7)


def test_xgboost_learns_with_it():
    xgboost = pytest.importorskip("xgboost", reason="needs rankopt[boosting]")
    X, y, qid = MADE
    matrix = xgboost.DMatrix(X, y, qid=qid, weight=np.linspace(1, 2, 14))
    objective, metric, found = boosting_objective("nDCG@3"), boosting_metric("nDCG@3"), {}
    booster = xgboost.train(
        {"max_depth": 3, "nthread": 1, "eta": 0.1, "disable_default_eval_metric": 1}, matrix, 20,
        obj=objective.xgboost, custom_metric=metric.xgboost, maximize=True, evals=[(matrix, "own")],
        evals_result=found, verbose_eval=False,
    )  # fmt: skip
    queries = Queries.from_arrays(X, y, qid=qid)
    reached = evaluate(queries, booster.predict(matrix).astype(float), "nDCG@3").mean(weights=np.linspace(1, 2, 14))
    assert found["own"]["nDCG@3"][-1] == pytest.approx(reached, abs=1e-6)
    assert reached > 0.9
    with pytest.raises(DataError, match="group= or qid="):
        objective.xgboost(np.zeros(y.size), xgboost.DMatrix(X, y))


@pytest.mark.parametrize(
    ("convention", "empty"), [("default", None), ("burges", 0.0), (Convention(no_relevant=1.0), 1.0)]
)
def test_the_metric_says_what_a_query_without_relevant_documents_counts(convention, empty):
    y, scores = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0, 1.0])
    value = boosting_metric("nDCG", convention=convention).at(
        BoostingData.from_arrays(y, scores, None, [2, 2], "the test")
    )
    own = 1 / np.log2(3)
    assert value == pytest.approx(own if empty is None else (own + empty) / 2)


def test_data_without_queries_and_options_that_cannot_work_are_refused():
    with pytest.raises(DataError, match="group="):
        boosting_objective()([1.0, 0.0], [0.0, 0.0])
    for options in (
        {"score_noise": -1},
        {"scale": 0},
        {"damping": 0},
        {"seed": 0.5},
        {"truncation_level": 0},
        {"bound": "none"},
    ):
        with pytest.raises(OptionError, match=next(iter(options))):
            boosting_objective(**options)
    with pytest.raises(MeasureError):
        boosting_metric(convention="letor9")
