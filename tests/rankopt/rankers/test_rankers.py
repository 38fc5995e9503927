"""Rankers fit into scikit-learn; they score, rank and explain what they say they do."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.measures import evaluate, parse
from rankopt.rankers import (
    RANKERS,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.rankers.base import Ranker

N, D, M = 60, 6, 7
NAMES = ["année", "citas", "length", "pagerank", "bm25", "age"]


@pytest.mark.every(5)
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # some checks fit pure noise
@parametrize_with_checks(
    [
        DirectRanker(init="ridge"),
        RegressionRanker(),
        PairwiseRanker(),
        LossRanker(),
        LargeMarginRanker(),
        SmoothRanker(),
    ]
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
@parametrize_with_checks(
    [
        DirectRanker(),
        RegressionRanker(alpha=0.1, target="grade"),
        LargeMarginRanker(bound="nonconvex", position_weights="power(0.5)"),
        LargeMarginRanker(constraints=Admissible(3)),
    ]
)
def test_scikit_learn_accepts_other_options(estimator, check):
    check(estimator)


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG@3", parse("nDCG(gain='linear')@5")])
def test_score_is_the_weighted_mean_of_the_measure(rows, measure):
    features, grades, qid = rows
    ranker = RegressionRanker(measure=measure).fit(features, grades, qid=qid)
    queries = Queries.from_arrays(features, grades, qid=qid)
    values = evaluate(queries, ranker.predict(features)[queries.input_order], measure)[measure]
    weight = np.array([1.0 + q for q in queries.query_ids])
    assert ranker.score(features, grades, qid=qid) == pytest.approx(values.mean())
    assert ranker.score(features, grades, qid=qid, sample_weight=1.0 + qid) == pytest.approx(
        weight @ values / weight.sum()
    )
    half = queries.select([4, 1])
    halves = half.to_input_order(np.repeat([3.0, 1.0], np.diff(half.offsets)))
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


def test_options_survive_cloning():
    ranker = RegressionRanker(0.25, target="grade", measure="nDCG@3")
    assert (
        clone(ranker).get_params()
        == ranker.get_params()
        == {"alpha": 0.25, "target": "grade", "intercept": "query", "measure": "nDCG@3", "normalize": None}
    )


def test_the_table_names_every_ranker():
    import rankopt.rankers as package

    for name in RANKERS:
        assert issubclass(getattr(package, name), CofiRanker if name == "CofiRanker" else Ranker)
        assert name in dir(package)
    assert not hasattr(package, "OracleRanker")
