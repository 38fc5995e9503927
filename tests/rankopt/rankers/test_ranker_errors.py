"""A ranker says what is wrong with its data or options, and what to do."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

import rankopt.rankers
from rankopt.data import Queries
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.rankers import RANKERS, LinearRanker, RegressionRanker

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
        (QUERIES, GRADES, {}, "y cannot be passed with a Queries"),
        (QUERIES, None, {"qid": QID, "group": [6]}, "qid and group cannot be passed with"),
        (QUERIES.replace(relevance=None), None, {}, "requires y .* have no relevance"),
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
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)]}, "pass eval_qid="),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)] * 2}, "list of 2 because one data set"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [], "eval_qid": []}, "list of 0"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [FEATURES, GRADES], "eval_qid": QID}, "list of 2"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [FEATURES]}, "eval_set cannot be a ndarray"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)], "eval_qid": QID}, r"eval_qid=\[qid\]"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)], "eval_group": [6]}, r"eval_group=\[group\]"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES), "eval_group": [[2, 4]]}, "group"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": {"X": FEATURES}}, r"pass eval_set=\(X, y\)"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES[:, :1], GRADES), "eval_qid": QID}, "1 features"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES)}, "pass eval_qid="),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES), "eval_qid": QID, "eval_group": [6]}, "at once"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES, "eval_qid": QID}, "with a Queries"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES}, "eval_set needs alpha='auto'"),
    ],
)  # fmt: skip
def test_fit_says_what_is_wrong_with_its_data(X, y, options, says):
    with pytest.raises(ValueError, match=says):
        RegressionRanker(0.0).fit(X, y, **options)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": -1.0}, OptionError, "alpha must be a number >= 0 or .auto.; got -1.0"),
        ({"alpha": np.inf}, OptionError, "alpha must be a number >= 0 or .auto.; got inf"),
        ({"target": "rank"}, OptionError, "'grade' or 'gain'; got 'rank'"),
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
    with pytest.raises(DataError, match="got 0"):
        ranker.rank(FEATURES, QID, k=0)
    with pytest.raises(DataError, match="x has 2 rows"):
        ranker.explain(FEATURES[:2], FEATURES[0])
    with pytest.raises(ValueError, match="3 features"):
        ranker.explain(FEATURES[0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "CofiRanker"])
def test_weights_of_rows_are_refused_with_the_word_for_those_of_queries(name):
    try:
        ranker = getattr(rankopt.rankers, name)
    except ImportError:
        pytest.skip("an optional package is missing")
    assert not has_fit_parameter(ranker, "sample_weight")
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    made = object.__new__(ranker)
    for kind in (OptionError, TypeError):
        with pytest.raises(kind, match="pass query_weight="):
            made.fit(X, y, qid=[0, 0, 0, 1, 1, 1], sample_weight=np.ones(6))
    assert not vars(made)


@pytest.mark.parametrize(
    ("theirs", "value", "ours"),
    [
        ("early_stopping_rounds", 3, "early_stopping"), ("eval_metric", "ndcg", "measure"),
        ("eval_at", [5], "measure='nDCG@10'"),
    ],
)  # fmt: skip
def test_words_of_other_libraries_are_refused_with_ours(theirs, value, ours):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    for kind in (OptionError, TypeError):
        with pytest.raises(kind, match=f"^{theirs} .*{ours}"):
            RegressionRanker(**{theirs: value})
        with pytest.raises(kind, match=f"^{theirs} .*{ours}"):
            RegressionRanker().fit(X, y, qid=[0, 0, 0, 1, 1, 1], **{theirs: value})
    assert theirs not in RegressionRanker().get_params()
    assert theirs not in signature(RegressionRanker).parameters
    with pytest.raises(TypeError, match="unexpected keyword argument 'rounds'"):
        RegressionRanker(rounds=3)


def test_a_ranker_of_your_own_may_have_such_a_word():
    class Own(RegressionRanker):
        def __init__(self, eval_at=5):
            super().__init__()
            self.eval_at = eval_at

    assert Own(eval_at=3).eval_at == 3
    with pytest.raises(TypeError, match="early_stopping"):
        Own(early_stopping_rounds=3)


def test_no_weights_of_rows_are_no_fault():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    one, two = (RegressionRanker().fit(X, y, qid=[0, 0, 0, 1, 1, 1], **more) for more in ({}, {"sample_weight": None}))
    np.testing.assert_array_equal(one.coef_, two.coef_)
