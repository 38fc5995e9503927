"""All ways of giving queries and their weights to a ranker are the same."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.errors import DataError
from rankopt.measures import evaluate
from rankopt.rankers import RegressionRanker

N, D, M = 60, 6, 7
NAMES = ["année", "citas", "length", "pagerank", "bm25", "age"]


def in_groups(rows):
    """The same rows sorted by query, and the sizes of the queries."""
    features, grades, qid = rows
    order = np.argsort(qid, kind="stable")
    return features[order], grades[order], np.bincount(qid)


@pytest.mark.parametrize(
    "name",
    [str, lambda q: ("query", q), lambda q: f"q {q}" if q % 2 else q, np.int64, float, lambda q: frozenset([q])],
    ids=["text", "tuple", "mixed", "numpy", "float", "set"],
)
def test_query_ids_of_any_hashable_type_give_the_same_ranker(rows, name):
    features, grades, qid = rows
    named = [name(q) for q in qid.tolist()]
    expected = RegressionRanker().fit(features, grades, qid=qid)
    ranker = RegressionRanker().fit(features, grades, qid=named)
    assert_array_equal(ranker.coef_, expected.coef_)
    assert set(ranker.rank(features, named)) == set(named)


def test_all_ways_of_giving_queries_agree(rows):
    features, grades, qid = rows
    sorted_features, sorted_grades, sizes = in_groups(rows)
    frame = pd.DataFrame(features, columns=NAMES)
    with_column = frame.assign(qid=qid)[["qid", *NAMES]]
    queries = Queries.from_arrays(features, grades, qid=qid)
    rankers = [
        RegressionRanker().fit(features, grades, qid=qid),
        RegressionRanker().fit(features, grades, qid=pd.Series(qid)),
        RegressionRanker().fit(csr_array(features), grades, qid=qid),
        RegressionRanker().fit(sorted_features, sorted_grades, group=sizes),
        RegressionRanker().fit(with_column, pd.Series(grades)),
        RegressionRanker().fit(queries),
    ]
    scores = rankers[0].score(features, grades, qid=qid)
    for ranker in rankers:
        assert_allclose(ranker.coef_, rankers[0].coef_, rtol=1e-10)
        assert ranker.n_queries_ == M
    assert rankers[3].score(sorted_features, sorted_grades, group=sizes) == pytest.approx(scores)
    assert rankers[4].score(with_column, grades) == pytest.approx(scores)
    assert rankers[4].score(frame, grades, qid=qid) == pytest.approx(scores)
    assert rankers[5].score(queries) == pytest.approx(scores)
    assert_array_equal(rankers[5].predict(queries), rankers[5].predict(features))
    assert_array_equal(rankers[4].predict(with_column), rankers[4].predict(frame))


def test_shuffled_rows_get_the_same_predictions_in_the_order_of_the_caller(rows):
    features, grades, qid = rows
    ranker = RegressionRanker().fit(features, grades, qid=qid)
    for seed in range(5):
        p = np.random.default_rng(seed).permutation(N)
        shuffled = RegressionRanker().fit(features[p], grades[p], qid=qid[p])
        assert_allclose(shuffled.coef_, ranker.coef_, rtol=1e-10)
        assert_array_equal(ranker.predict(features[p]), ranker.predict(features)[p])
        assert_array_equal(ranker.predict(Queries.from_arrays(features[p], qid=qid[p])), ranker.predict(features)[p])
        assert ranker.score(features[p], grades[p], qid=qid[p]) == pytest.approx(
            ranker.score(features, grades, qid=qid)
        )


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_equal_documents_get_equal_scores_wherever_they_stand(form):
    rng = np.random.default_rng(1)
    ranker = RegressionRanker()
    ranker.coef_, ranker.n_features_in_ = rng.normal(size=11), 11
    document = rng.normal(size=11)
    for n in range(1, 40):
        assert len(set(ranker.predict(form(np.tile(document, (n, 1)))))) == 1


def test_all_rows_are_one_query_when_nothing_is_said(rows):
    features, grades, _ = rows
    ranker = RegressionRanker().fit(features, grades)
    assert ranker.n_queries_ == 1
    expected = evaluate(grades, ranker.predict(features), "nDCG@10").mean()
    assert ranker.score(features, grades) == pytest.approx(expected)


def test_names_of_features_are_kept_and_compared(rows):
    features, grades, qid = rows
    frame = pd.DataFrame(features, columns=NAMES).assign(qid=qid)
    ranker = RegressionRanker().fit(frame, grades)
    assert ranker.feature_names_in_.tolist() == NAMES
    assert ranker.n_features_in_ == D
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.predict(frame.rename(columns={"citas": "cites"}))
    queries = Queries.from_arrays(features, grades, qid=qid, feature_names=NAMES)
    assert RegressionRanker().fit(queries).feature_names_in_.tolist() == NAMES
    with pytest.raises(DataError, match="Feature 4 is 'BM25' but was 'bm25'"):
        ranker.predict(queries.replace(feature_names=[*NAMES[:4], "BM25", "age"]))
    ranker.fit(queries.replace(feature_names=None))
    assert not hasattr(ranker, "feature_names_in_")
    with pytest.raises(DataError, match="X has 6 features, but RegressionRanker is expecting 2"):
        RegressionRanker().fit(features[:, :2], grades).predict(queries)


def test_weights_by_name_by_place_and_as_series_are_the_same(rows):
    features, grades, qid = rows
    weight = {query: 1.0 + query**2 for query in range(M)}
    first_seen = list(dict.fromkeys(qid.tolist()))
    forms = [weight, {**weight, "another": 7.0}, [weight[q] for q in first_seen], pd.Series(weight).sort_values()]
    coefs = [RegressionRanker().fit(features, grades, qid=qid, query_weight=form).coef_ for form in forms]
    for coef in coefs[1:]:
        assert_array_equal(coef, coefs[0])


def test_weight_zero_leaves_a_query_out_and_weight_two_counts_it_twice(rows):
    features, grades, qid = rows
    kept = qid != 3
    without = RegressionRanker(0.0).fit(features[kept], grades[kept], qid=qid[kept])
    weight = {query: float(query != 3) for query in range(M)}
    assert_allclose(
        RegressionRanker(0.0).fit(features, grades, qid=qid, query_weight=weight).coef_, without.coef_, rtol=1e-9
    )
    again = [np.concatenate([part, part[qid == 3]]) for part in (features, grades, np.where(qid == 3, 99, qid))]
    again[2][:N] = qid
    twice = RegressionRanker(0.0).fit(again[0], again[1], qid=again[2])
    weight = {query: 1.0 + (query == 3) for query in range(M)}
    assert_allclose(
        RegressionRanker(0.0).fit(features, grades, qid=qid, query_weight=weight).coef_, twice.coef_, rtol=1e-9
    )
