"""Rankers take queries in any form, learn what their formula says, and fit into scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.data import Queries
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.measures import evaluate, parse
from rankopt.rankers import RANKERS, LinearRanker, RegressionRanker

N, D, M = 60, 6, 7
NAMES = ["année", "citas", "length", "pagerank", "bm25", "age"]


@parametrize_with_checks([RegressionRanker(), RegressionRanker(alpha=0.1, target="grade")])
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.fixture
def rows():
    """Features, grades and integer query ids of shuffled rows, with some equal documents and unequal queries."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, D))
    features[7] = features[31]
    grades = np.clip(np.round(features @ rng.normal(size=D) + rng.normal(size=N)), 0, 4)
    qid = rng.permutation(np.concatenate([np.arange(M), rng.integers(0, M, N - M)]))
    return features, grades, qid


def in_groups(rows):
    """The same rows sorted by query, and the sizes of the queries."""
    features, grades, qid = rows
    order = np.argsort(qid, kind="stable")
    return features[order], grades[order], np.bincount(qid)


# --- ways of giving queries ----------------------------------------------------------------------------------------


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
        ranker.predict(queries.with_(feature_names=[*NAMES[:4], "BM25", "age"]))
    ranker.fit(queries.with_(feature_names=None))
    assert not hasattr(ranker, "feature_names_in_")
    with pytest.raises(DataError, match="X has 6 features, but RegressionRanker is expecting 2"):
        RegressionRanker().fit(features[:, :2], grades).predict(queries)


# --- weights of queries --------------------------------------------------------------------------------------------


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
    without = RegressionRanker().fit(features[kept], grades[kept], qid=qid[kept])
    weight = {query: float(query != 3) for query in range(M)}
    assert_allclose(
        RegressionRanker().fit(features, grades, qid=qid, query_weight=weight).coef_, without.coef_, rtol=1e-9
    )
    again = [np.concatenate([part, part[qid == 3]]) for part in (features, grades, np.where(qid == 3, 99, qid))]
    again[2][:N] = qid
    twice = RegressionRanker().fit(again[0], again[1], qid=again[2])
    weight = {query: 1.0 + (query == 3) for query in range(M)}
    assert_allclose(
        RegressionRanker().fit(features, grades, qid=qid, query_weight=weight).coef_, twice.coef_, rtol=1e-9
    )


# --- score, rank, explain ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG@3", parse("nDCG(gain='linear')@5")])
def test_score_is_the_weighted_mean_of_the_measure(rows, measure):
    features, grades, qid = rows
    ranker = RegressionRanker(measure=measure).fit(features, grades, qid=qid)
    queries = Queries.from_arrays(features, grades, qid=qid)
    values = evaluate(queries, ranker.predict(features)[queries.row_order], measure)[measure]
    weight = np.array([1.0 + q for q in queries.query_ids])
    assert ranker.score(features, grades, qid=qid) == pytest.approx(values.mean())
    assert ranker.score(features, grades, qid=qid, sample_weight=1.0 + qid) == pytest.approx(
        weight @ values / weight.sum()
    )
    half = queries.select([4, 1])
    halves = half.to_caller(np.repeat([3.0, 1.0], np.diff(half.offsets)))
    assert ranker.score(half, sample_weight=halves) == pytest.approx((3 * values[4] + values[1]) / 4)


def test_rank_lists_rows_by_decreasing_score_and_leaves_ties_as_they_came(rows):
    features, grades, qid = rows
    ranker = RegressionRanker().fit(features, grades, qid=qid)
    scores = ranker.predict(features)
    orders = ranker.rank(features, qid)
    assert list(orders) == list(dict.fromkeys(qid.tolist()))
    for query, order in orders.items():
        assert sorted(order) == np.flatnonzero(qid == query).tolist()
        assert (np.diff(scores[order]) <= 0).all()
        assert_array_equal(ranker.rank(features, qid, k=3)[query], order[:3])
    one = ranker.rank(features)
    assert sorted(one) == list(range(N))
    assert one.tolist().index(31) == one.tolist().index(7) + 1  # equal documents
    ranker.coef_ = np.zeros(D)
    assert_array_equal(ranker.rank(features), np.arange(N))


def test_rank_gives_document_ids_where_the_data_has_them(rows):
    features, grades, qid = rows
    names = [("doc", row) for row in range(N)]
    queries = Queries.from_arrays(features, grades, qid=qid, documents=names)
    ranker = RegressionRanker().fit(queries)
    by_row = ranker.rank(features, qid)
    for query, order in ranker.rank(queries).items():
        assert order.tolist() == [names[row] for row in by_row[query]]
    alone = ranker.rank(queries.select([2]), k=2)
    assert alone.tolist() == [names[row] for row in by_row[queries.query_ids[2]][:2]]


def test_an_explanation_adds_up_to_the_difference_of_the_scores(rows):
    features, grades, qid = rows
    frame = pd.DataFrame(features, columns=NAMES).assign(qid=qid)
    ranker = RegressionRanker().fit(frame, grades)
    reasons = ranker.explain(frame.iloc[3], frame.iloc[[4]])
    scores = ranker.predict(frame)
    assert reasons.total == pytest.approx(scores[3] - scores[4])
    assert (np.diff(np.abs(reasons.contributions)) <= 0).all()
    assert sorted(reasons.features) == sorted(NAMES)
    j = NAMES.index(reasons.features[0])
    assert reasons.contributions[0] == ranker.coef_[j] * (features[3, j] - features[4, j])
    lines = str(reasons).splitlines()
    assert len(lines) == D + 2
    assert lines[1].startswith(reasons.features[0])
    with pytest.raises(ValueError, match="read-only"):
        reasons.contributions[0] = 0.0


def test_a_long_explanation_prints_the_largest_terms_and_the_sum_of_the_rest():
    rng = np.random.default_rng(2)
    features, grades = rng.normal(size=(50, 30)), rng.integers(0, 3, 50)
    ranker = RegressionRanker().fit(csr_array(features), grades)
    reasons = ranker.explain(features[0].tolist(), csr_array(features[1:2]))
    text = str(reasons)
    assert len(text.splitlines()) == 13
    assert "20 others" in text
    assert set(reasons.features) == {f"x{j}" for j in range(30)}


# --- errors ----------------------------------------------------------------------------------------------------------

FEATURES = np.arange(12.0).reshape(6, 2) ** 2
GRADES = np.array([0, 1, 2, 0, 1, 0])
QID = list("aabbbb")
QUERIES = Queries.from_arrays(FEATURES, GRADES, qid=QID)
FRAME = pd.DataFrame(FEATURES, columns=["u", "v"]).assign(qid=QID)


@pytest.mark.parametrize(
    ("X", "y", "options", "says"),
    [
        (FEATURES, GRADES, {"qid": QID, "group": [2, 4]}, "by qid= and group= at once"),
        (FRAME, GRADES, {"qid": QID}, "by qid= and the column 'qid' of X at once"),
        (FRAME, GRADES, {"group": [2, 4]}, "group= and the column"),
        (QUERIES, GRADES, {}, "y cannot be given beside a Queries"),
        (QUERIES, None, {"qid": QID, "group": [6]}, "qid and group cannot be given beside"),
        (QUERIES.with_(relevance=None), None, {}, "requires y .* have no relevance"),
        (FEATURES, None, {"qid": QID}, "requires y"),
        (FEATURES, GRADES[:5], {"qid": QID}, "inconsistent numbers of samples"),
        (FEATURES, GRADES, {"qid": QID[:5]}, "5"),
        (FEATURES, GRADES, {"group": [2, 3]}, "5"),
        (FEATURES, -GRADES, {"qid": QID}, "grade is -1"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": {"a": 1.0}}, "no weight for query 'b'"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [1.0]}, "there are 2 queries"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [1.0, -1.0]}, "of query 'b' is -1"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [np.nan, 1.0]}, "of query 'a' is nan"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [0, 0]}, "0 for every query"),
        (FEATURES, GRADES, {"qid": QID, "eval_qid": QID}, "belong to eval_set"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)]}, "eval_set cannot be a list"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES[:, :1], GRADES)}, "1 features"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES), "eval_qid": QID, "eval_group": [6]}, "at once"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES, "eval_qid": QID}, "beside a Queries"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES}, "cannot use eval_set"),
    ],
)  # fmt: skip
def test_fit_says_what_is_wrong_with_its_data(X, y, options, says):
    with pytest.raises(ValueError, match=says):
        RegressionRanker().fit(X, y, **options)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": -1.0}, OptionError, "alpha = -1.0"),
        ({"alpha": np.inf}, OptionError, "alpha = inf"),
        ({"target": "rank"}, OptionError, "'gain', 'grade'"),
        ({"measure": "nDGC@10"}, MeasureError, "nDCG"),
    ],
)
def test_fit_says_what_is_wrong_with_an_option(options, error, says):
    with pytest.raises(error, match=says):
        RegressionRanker(**options).fit(FEATURES, GRADES)


def test_score_needs_the_queries_after_a_fit_on_several():
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        ranker.score(FEATURES, GRADES)
    with pytest.raises(DataError, match="requires y"):
        ranker.score(FEATURES, qid=QID)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ([1, 1, 2, 2, 3, 2], r"differs inside query 'b' \(row 4\)"),
        ([1, 1], "there are 6 rows"),
        ([1, 1, -2, -2, -2, -2], "of query 'b' is -2"),
    ],
)
def test_weights_of_rows_are_weights_of_queries(weight, says):
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match=says):
        ranker.score(FEATURES, GRADES, qid=QID, sample_weight=weight)


def test_an_unfitted_ranker_says_so():
    for call in (
        lambda ranker: ranker.predict(FEATURES),
        lambda ranker: ranker.score(FEATURES, GRADES),
        lambda ranker: ranker.rank(FEATURES),
        lambda ranker: ranker.explain(FEATURES[0], FEATURES[1]),
        lambda ranker: ranker.save("nowhere"),
    ):
        with pytest.raises(NotFittedError):
            call(RegressionRanker())
    with pytest.raises(NotImplementedError, match="write one"):
        LinearRanker().fit(FEATURES, GRADES)


def test_rank_and_explain_say_what_they_cannot_do():
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match="k = 0"):
        ranker.rank(FEATURES, QID, k=0)
    with pytest.raises(DataError, match="x has 2 rows"):
        ranker.explain(FEATURES[:2], FEATURES[0])
    with pytest.raises(ValueError, match="3 features"):
        ranker.explain(FEATURES[0], [1.0, 2.0, 3.0])


# --- the package -----------------------------------------------------------------------------------------------------


def test_options_survive_cloning():
    ranker = RegressionRanker(0.25, target="grade", measure="nDCG@3")
    assert clone(ranker).get_params() == ranker.get_params() == {"alpha": 0.25, "target": "grade", "measure": "nDCG@3"}


def test_the_table_names_every_ranker():
    import rankopt.rankers as package

    for name in RANKERS:
        assert issubclass(getattr(package, name), LinearRanker)
        assert name in dir(package)
    assert not hasattr(package, "OracleRanker")
