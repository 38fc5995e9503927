"""All ways of giving queries and their weights to a ranker are the same."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.rated import tastes
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency

from rankopt.data import Queries
from rankopt.errors import DataError, MissingQueryIdsWarning
from rankopt.measures import evaluate
from rankopt.optimize.line_search import LineSearch
from rankopt.rankers import CofiRanker, LargeMarginRanker, MatchingRanker, PairwiseRanker, RegressionRanker

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
    with pytest.raises(DataError, match="X lacks the features bm25 of fit; it has année"):
        ranker.predict(queries.replace(feature_names=[*NAMES[:4], "BM25", "age"]))
    ranker.fit(queries.replace(feature_names=None))
    assert not hasattr(ranker, "feature_names_in_")
    with pytest.raises(DataError, match="X has 6 features, but RegressionRanker is expecting 2"):
        RegressionRanker().fit(features[:, :2], grades).predict(queries)


def test_features_are_picked_by_name(rows):
    features, grades, qid = rows
    frame = pd.DataFrame(features, columns=NAMES).assign(qid=qid)
    ranker = RegressionRanker(normalize="zscore").fit(frame, grades)
    more = frame.assign(relevance=grades, docid=[f"d{i}" for i in range(N)], empty=np.nan, day=pd.Timestamp(0))
    assert_array_equal(ranker.predict(more), ranker.predict(frame))
    assert ranker.score(more, grades) == ranker.score(frame, grades)
    for query, ranked in ranker.rank(more, k=3).items():
        assert_array_equal(ranked, ranker.rank(frame, k=3)[query])
    with pytest.raises(ValueError, match=r"(?s)now missing:\n- bm25.*"):
        ranker.predict(more.drop(columns="bm25"))
    reversed_names = more[[*NAMES[::-1], "qid"]]
    for X, more in ((reversed_names, {}), (reversed_names.drop(columns="qid"), {"qid": qid})):
        with pytest.raises(ValueError, match=r"(?s)same order as they were in fit") as caught:  # scikit-learn's rule
            ranker.predict(X, **more)
        cure = str(caught.value).partition("Pass ")[2].removesuffix(".")
        assert_array_equal(ranker.predict(eval(cure, {"X": X, "ranker": ranker}), **more), ranker.predict(frame))
    check_dataframe_column_names_consistency("RegressionRanker", RegressionRanker())
    queries = Queries.from_arrays(reversed_names.assign(other=1.0), grades)
    assert_array_equal(ranker.predict(queries), ranker.predict(frame))
    assert ranker.score(queries) == ranker.score(frame, grades)
    with pytest.raises(DataError, match="several features 'age'"):
        ranker.predict(queries.replace(feature_names=[*NAMES[::-1], "age"]))


def test_a_series_in_another_order_than_its_rows_is_refused(rows):
    features, grades, qid = rows
    table = pd.DataFrame(features, columns=NAMES).assign(qid=qid, y=grades).sample(frac=1, random_state=0)
    frame, y, q = table[NAMES], table.y, table.qid
    ranker = RegressionRanker().fit(frame, y, qid=q)
    assert_array_equal(RegressionRanker().fit(frame, y.to_numpy(), qid=list(q)).coef_, ranker.coef_)
    assert_array_equal(RegressionRanker().fit(frame, y.sort_index().loc[frame.index], qid=q).coef_, ranker.coef_)
    ids = frame.assign(qid=q)
    for call in (
        lambda: RegressionRanker().fit(frame, y.sort_index(), qid=q),
        lambda: RegressionRanker().fit(ids, y.sort_index()),
        lambda: RegressionRanker().fit(frame, y, qid=q, eval_set=(frame, y.sort_index()), eval_qid=q),
        lambda: ranker.score(frame, y, qid=q.sort_index()),
        lambda: ranker.score(frame, y, qid=q, sample_weight=(y * 0 + 1).sort_index()),
        lambda: ranker.rank(frame, q, attributes=table[["qid"]].sort_index()),
        lambda: evaluate(y, ranker.predict(frame), "nDCG", qid=q.sort_index()),
        lambda: Queries.from_arrays(frame, y.sort_index(), qid=q),
    ):
        with pytest.raises(
            DataError, match=r"in another order, but rows count by position; pass \w+\.loc\[\w+\.index\]"
        ):
            call()


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


# What a ranker chooses on, in all forms in which other libraries pass it; PyTerrier itself; a forgotten qid.


WEIGHTS = np.array([1.0, 0.5, 0.0, -1.0])
SIZES = np.array([12, 9, 15, 12, 12])


def made(seed, sizes=SIZES):
    """Features, grades and query ids, query after query."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sizes.sum(), WEIGHTS.size))
    y = np.clip(np.round(X @ WEIGHTS + rng.normal(size=len(X))), 0, 3)
    return X, y, np.repeat(np.arange(sizes.size), sizes)


X, Y, QID = made(0)
V, VY, VQ = made(1)

FORMS = {
    "sizes": {"eval_set": (V, VY), "eval_group": SIZES},
    "list": {"eval_set": [(V, VY)], "eval_qid": [VQ]},
    "list, sizes": {"eval_set": [(V, VY)], "eval_group": [SIZES]},
    "list, list of sizes": {"eval_set": [(V, VY)], "eval_group": [SIZES.tolist()]},
    "list, tuple": {"eval_set": [(V, VY)], "eval_qid": (VQ.tolist(),)},
    "queries": {"eval_set": Queries.from_arrays(V, VY, qid=VQ)},
    "list of queries": {"eval_set": [Queries.from_arrays(V, VY, qid=VQ)]},
}


def fitted(**options):
    return LargeMarginRanker("nDCG@5", lam=0.01).fit(X, Y, qid=QID, **options)


@pytest.fixture(scope="module")
def expected():
    return fitted(eval_set=(V, VY), eval_qid=VQ)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_chooses_the_same_weights(form, expected):
    chosen = fitted(**FORMS[form])
    assert_array_equal(chosen.coef_, expected.coef_)
    assert chosen.best_score_ == expected.best_score_ == chosen.score(V, VY, qid=VQ)


def test_a_path_takes_a_list_too(expected):
    path = LargeMarginRanker("nDCG@5").path(X, Y, qid=QID, lams=[0.1, 0.01], eval_set=[(V, VY)], eval_qid=[VQ])
    assert path.best.best_score_ >= path.models[-1].best_score_


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # PyTerrier's own, of pandas 3.1
def test_pyterrier_trains_and_reranks():
    """What its pipelines call: `group`, `eval_set=[(X, y)]`, `eval_group=[sizes]`, in the order of its sorted ids."""

    def results(X, qid, prefix):
        frame = pd.DataFrame({"qid": [f"{prefix}{q}" for q in qid], "features": list(X), "query": "asked"})
        frame["docno"], frame["score"] = [f"{prefix}d{i}" for i in range(len(X))], 0.0
        return frame.assign(rank=frame.groupby("qid").cumcount())

    train, valid = results(X, QID, "t"), results(V, VQ, "v")
    labels = [frame[["qid", "docno"]].assign(label=y) for frame, y in ((train, Y), (valid, VY))]
    shuffled = train.sample(frac=1.0, random_state=0)
    reranker = pt.ltr.apply_learned_model(LargeMarginRanker("nDCG@5", lam=0.01), form="ltr")
    reranker.fit(shuffled, labels[0], valid, labels[1])
    expected = fitted(eval_set=(V, VY), eval_qid=VQ)
    np.testing.assert_allclose(reranker.learner.coef_, expected.coef_, rtol=1e-9)
    assert reranker.learner.n_queries_ == SIZES.size
    assert reranker.learner.best_score_ == pytest.approx(expected.best_score_)
    reranked = reranker(valid).set_index("docno")
    np.testing.assert_allclose(reranked.loc[valid["docno"], "score"], V @ expected.coef_, rtol=1e-9)
    assert (reranked[reranked["rank"] == 0].groupby("qid").size() == 1).all()


MANY = made(2, np.full(40, 10))


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y, **ways: RegressionRanker().fit(X, y, **ways),
        pytest.param(
            lambda X, y, **ways: LargeMarginRanker("nDCG@5", tol=0.05).path(X, y, lams=[1.0], **ways),
            marks=pytest.mark.study,
        ),
    ],
    ids=["fit", "path"],
)
def test_many_rows_without_query_ids_warn_the_caller(fit):
    features, grades, qid = MANY
    with pytest.warns(
        MissingQueryIdsWarning, match=r"all 400 rows .* pass qid= .* group=\[400\] if they are one"
    ) as caught:
        fit(features, grades)
    assert [warning.filename for warning in caught] == [__file__]
    # Said in any way, or few: no warning, which would be an error here.
    fit(features, grades, qid=qid)
    fit(features, grades, group=np.full(40, 10))
    fit(features, grades, group=[400])
    fit(pd.DataFrame(features).add_prefix("f").assign(qid=qid), grades)
    fit(Queries.from_arrays(features, grades, group=[400]), None)
    fit(features[:300], grades[:300])


def test_pyterriers_regression_form_forgets_the_queries():
    """Its other form calls fit(X, y) alone: the model is fitted, and the warning tells."""
    features, grades, qid = MANY
    frame = pd.DataFrame({"qid": qid.astype(str), "features": list(features), "query": "asked"})
    frame = frame.assign(docno=[f"d{i}" for i in range(len(frame))], score=0.0, rank=0)
    with pytest.warns(MissingQueryIdsWarning, match="pass qid="):
        pt.ltr.apply_learned_model(RegressionRanker(), form="regression").fit(
            frame, frame[["qid", "docno"]].assign(label=grades)
        )


@pytest.mark.parametrize("ranker", [LargeMarginRanker, PairwiseRanker, MatchingRanker])
@pytest.mark.parametrize(
    "fit",
    [
        lambda one, *data: one.fit(*data, group=[10] * 40),
        lambda one, *data: one.path(*data, group=[10] * 40, lams=[1e-3]),
    ],
)
def test_an_open_gap_warns_the_caller(ranker, fit):
    features, grades, _ = MANY
    with pytest.warns(ConvergenceWarning, match="before the gap closed") as caught:
        fit(ranker(tol=1e-9, max_iter=1, lam=1e-3), features, grades)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_series_counts_by_position_unless_its_index_are_the_ids(rows):
    features, grades, qid = rows
    random = np.random.default_rng(0)
    first_seen = list(dict.fromkeys(qid.tolist()))
    weight = random.uniform(1.0, 2.0, M)
    shuffled = pd.Series(weight, index=first_seen).sample(frac=1, random_state=1)

    def series(values):
        """With an index that is neither the position nor an id."""
        return pd.Series(values, index=1000 + random.permutation(len(values)))

    expected = RegressionRanker().fit(features, grades, qid=qid, query_weight=weight)
    frame = pd.DataFrame(features, index=random.permutation(N))
    for passed in (series(weight), shuffled, dict(zip(first_seen, weight, strict=True))):
        ranker = RegressionRanker().fit(frame, series(grades), qid=series(qid), query_weight=passed)
        assert_array_equal(ranker.coef_, expected.coef_)
        line = LineSearch.from_measure("nDCG@3", Queries.from_arrays(features, grades, qid=qid), passed)
        values = evaluate(grades, features[:, 0], "nDCG@3", qid=qid).values[0]
        assert line.value(np.eye(D)[0]) == pytest.approx(np.average(values, weights=weight))
    rows_weight = weight[[first_seen.index(q) for q in qid.tolist()]]
    assert expected.score(frame, series(grades), qid=series(qid), sample_weight=series(rows_weight)) == pytest.approx(
        expected.score(features, grades, qid=qid, sample_weight=rows_weight)
    )
    with pytest.raises(DataError, match=r"shape \(2,\)"):
        RegressionRanker().fit(features, grades, qid=qid, query_weight=series(weight[:2]))


def test_a_series_of_users_counts_by_position_unless_its_index_are_the_users():
    ratings = tastes()
    weight = np.random.default_rng(0).uniform(1.0, 2.0, ratings.n_users)
    shuffled = pd.Series(weight, index=ratings.users.tolist()).sample(frac=1, random_state=1)
    expected = CofiRanker(factors=2, reg=0.5).fit(ratings, user_weight=weight)
    for passed in (shuffled, pd.Series(weight, index=np.arange(weight.size)[::-1] + 1000)):
        ranker = CofiRanker(factors=2, reg=0.5).fit(ratings, user_weight=passed)
        assert_array_equal(ranker.item_bias_, expected.item_bias_)
