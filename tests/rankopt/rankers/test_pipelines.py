"""Query ids survive scikit-learn's pipelines, searches and folds of queries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.errors import DataError
from rankopt.rankers import RegressionRanker

N, D, M = 60, 6, 7


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_query_ids_reach_the_ranker_through_a_pipeline(rows, routing):
    features, grades, qid = rows
    weight = {query: query + 1.0 for query in range(M)}
    pipeline = make_pipeline(StandardScaler(), RegressionRanker(0.1))
    pipeline.fit(features, grades, qid=qid, query_weight=weight)
    scaled = StandardScaler().fit_transform(features)
    ranker = RegressionRanker(0.1).fit(scaled, grades, qid=qid, query_weight=weight)
    assert_array_equal(pipeline[-1].coef_, ranker.coef_)
    assert pipeline.score(features, grades, qid=qid) == ranker.score(scaled, grades, qid=qid)
    row_weight = 1.0 + qid
    assert pipeline.score(features, grades, qid=qid, sample_weight=row_weight) == ranker.score(
        scaled, grades, qid=qid, sample_weight=row_weight
    )


@pytest.mark.parametrize("name", [int, str, lambda q: ("query", q)], ids=["int", "text", "tuple"])
def test_a_grid_search_over_folds_of_queries_scores_as_by_hand(rows, routing, name):
    features, grades, qid = rows
    named = [name(q) for q in qid.tolist()]
    alphas = [0.01, 10.0, 1000.0]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RegressionRanker()), {"regressionranker__alpha": alphas}, cv=GroupKFold(3)
    )
    search.fit(features, grades, qid=named, groups=qid)
    expected = []
    for train, test in GroupKFold(3).split(features, grades, qid):
        scaler = StandardScaler().fit(features[train])
        seen, unseen = scaler.transform(features[train]), scaler.transform(features[test])
        fitted = [RegressionRanker(alpha).fit(seen, grades[train], qid=qid[train]) for alpha in alphas]
        expected.append([ranker.score(unseen, grades[test], qid=qid[test]) for ranker in fitted])
    assert_allclose(search.cv_results_["mean_test_score"], np.mean(expected, axis=0), rtol=1e-12)
    assert search.score(features, grades, qid=named) == search.best_estimator_.score(features, grades, qid=named)


def test_cross_validation_keeps_weights_that_are_keyed_by_query(rows, routing):
    features, grades, qid = rows
    weight = {query: query + 1.0 for query in range(M)}
    params = {"qid": qid, "query_weight": weight, "groups": qid}
    scores = cross_val_score(RegressionRanker(), features, grades, params=params, cv=GroupKFold(3))
    for score, (train, test) in zip(scores, GroupKFold(3).split(features, grades, qid), strict=True):
        ranker = RegressionRanker().fit(features[train], grades[train], qid=qid[train], query_weight=weight)
        assert score == ranker.score(features[test], grades[test], qid=qid[test])


def test_a_pipeline_does_not_pass_evaluation_data_that_its_steps_would_not_scale(rows, routing):
    features, grades, qid = rows
    with pytest.raises(UnsetMetadataPassedError, match="eval_set"):
        make_pipeline(StandardScaler(), RegressionRanker()).fit(features, grades, qid=qid, eval_set=(features, grades))


def test_without_routing_a_pipeline_says_which_line_is_missing(rows):
    features, grades, qid = rows
    pipeline = make_pipeline(StandardScaler(), RegressionRanker())
    pipeline.fit(features, grades, regressionranker__qid=qid)
    with pytest.raises(DataError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        pipeline.score(features, grades)
