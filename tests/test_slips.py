"""Slips of new users: each message names what was received and a cure of the API that was called."""

import numpy as np
import pandas as pd
import pytest
from problems.command import called

from formulations import verify_integrality
from rankopt.constraints import Admissible
from rankopt.data import Queries, read_svmlight, read_table
from rankopt.measures import evaluate, parse
from rankopt.rankers import BoostedRanker, LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker, load_model
from rankopt.ratings import Ratings

RNG = np.random.default_rng(0)
X, Y, QID = RNG.normal(size=(40, 3)), RNG.integers(0, 3, 40), np.repeat(np.arange(8), 5)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def spoilt(value):
    frame = FRAME.astype(object)
    frame.loc[3, "b"] = value
    return frame


def fit(ranker=None, features=X, grades=Y, **options):
    return (ranker or RegressionRanker()).fit(features, grades, **{"qid": QID, **options})


SLIPS = {
    "ids as group": (lambda: fit(qid=None, group=QID), ["one entry per row (40)", "qid="]),
    "sizes as qid": (lambda: fit(qid=[5] * 8), ["qid has 8 entries", "40 rows"]),
    "sizes by position": (lambda: RegressionRanker().fit(X, Y, [5] * 8), ["got 3 arguments", "qid=", "group="]),
    "normalise": (lambda: RegressionRanker(normalise="zscore"), ["normalise", "normalize='zscore'"]),
    "groups": (lambda: fit(qid=None, groups=QID), ["groups", "qid", "group,"]),
    "k as qid": (lambda: fit().rank(X, 10), ["got 10", "pass k=10"]),
    "unjudged": (lambda: fit(unjudged=0), ["unjudged", "Queries.from_arrays(X, y, qid=qid, unjudged=0)"]),
    "negative grades": (lambda: fit(grades=Y - 1), ["-1", "Queries.from_arrays(X, y, qid=qid, unjudged=0)"]),
    "group_weight": (lambda: fit(group_weight=[1] * 8), ["group_weight", "query_weight"]),
    "sample_weight": (lambda: fit(sample_weight=[1] * 40), ["sample_weight", "query_weight="]),
    "n_estimators in fit": (lambda: fit(BoostedRanker(), n_estimators=5), ["BoostedRanker(n_estimators=...).fit"]),
    "n_estimators": (lambda: LargeMarginRanker(n_estimators=5), ["n_estimators", "BoostedRanker"]),
    "num_boost_round": (lambda: BoostedRanker(num_boost_round=5), ["num_boost_round", "n_estimators"]),
    "objective": (lambda: BoostedRanker(objective="lambdarank"), ["objective", "measure='nDCG@10'"]),
    "objective in fit": (lambda: fit(objective="lambdarank"), ["objective", "measure="]),
    "learning_rate": (lambda: LargeMarginRanker(learning_rate=0.1), ["learning_rate", "BoostedRanker"]),
    "eta": (lambda: BoostedRanker(eta=0.1), ["eta", "learning_rate=0.1"]),
    "alpha": (lambda: LargeMarginRanker(alpha=0.1), ["alpha", "lam=0.1"]),
    "metric": (lambda: BoostedRanker(metric="ndcg"), ["metric", "measure='nDCG@10'"]),
    "callbacks": (lambda: fit(BoostedRanker(), callbacks=[]), ["callbacks", "early_stopping="]),
    "verbose in fit": (lambda: fit(LargeMarginRanker(), verbose=1), ["LargeMarginRanker(verbose=...).fit"]),
    "verbose of a quiet ranker": (lambda: fit(verbose=1), ["verbose", "LargeMarginRanker(verbose=1)"]),
    "early_stopping_rounds": (lambda: fit(early_stopping_rounds=5), ["early_stopping_rounds", "early_stopping="]),
    "eval_metric": (lambda: fit(eval_metric="ndcg"), ["eval_metric", "measure="]),
    "eval_set of three": (lambda: fit(eval_set=(X, Y, QID)), ["tuple of 3", "eval_qid="]),
    "lam and C": (lambda: fit(LargeMarginRanker(lam=0.1, C=2.0)), ["lam=0.1, C=2.0", "Pass one"]),
    "text in y": (lambda: fit(grades=pd.Series(["good", "bad"] * 20, name="g")), ["'good'", "column 'g'", "y.map("]),
    "text in X": (lambda: fit(features=spoilt("bad")), ["'bad'", "row 3", "column 'b'", "Leave the column out"]),
    "text in an array": (lambda: fit(features=spoilt("bad").to_numpy()), ["'bad'", "row 3", "column 1"]),
    "inf": (lambda: fit(features=spoilt(np.inf).astype(float)), ["inf", "row 3", "column 'b'", "Impute"]),
    "column missing in predict": (
        lambda: fit(features=FRAME).predict(FRAME[["a", "c"]].assign(site="x")), ["missing:\n- b"]
    ),
    "columns in another order": (
        lambda: fit(features=FRAME).predict(FRAME[["b", "a", "c"]]), ["same order", "X[[*ranker.feature_names_in_]]"]
    ),
    "sorted y": (lambda: fit(features=FRAME, grades=pd.Series(Y)[::-1]), ["y has the index of X", "y.loc[X.index]"]),
    "misspelled attribute": (
        lambda: Admissible(2).at_most(1, by="site").for_query({"sites": ["a"] * 4}, 4),
        ["'site'", "did you mean 'sites'?"],
    ),
    "NaN": (lambda: fit(features=spoilt(np.nan).astype(float)), ["nan", "row 3", "column 'b'", "SimpleImputer"]),
    "hit_rate@10": (lambda: parse("hit_rate@10"), ["'hit_rate'", "did you mean Success?"]),
    "HR@10": (lambda: parse("HR@10"), ["'HR'", "did you mean Success?"]),
    "rank:ndcg": (lambda: parse("rank:ndcg"), ["'rank:ndcg'", "did you mean nDCG?"]),
    "NDCG_10": (lambda: parse("NDCG_10"), ["'NDCG_10'", "did you mean nDCG@10?"]),
    "ndcg_at_10": (lambda: parse("ndcg_at_10"), ["'ndcg_at_10'", "did you mean nDCG@10?"]),
    "precision_at_5": (lambda: parse("precision_at_5"), ["'precision_at_5'", "did you mean P@5?"]),
    "lambdarank": (lambda: parse("lambdarank"), ["'lambdarank'", "did you mean nDCG?"]),
    "no such convention": (lambda: evaluate(Y, X[:, 0], "nDCG", convention="lgbm"), ["'lgbm'", "lightgbm, xgboost"]),
    "parquet as SVMlight": (lambda: read_svmlight("x.parquet"), ["x.parquet is a table", "read_table"]),
    "SVMlight as table": (lambda: read_table("x.txt"), ["x.txt", "read_svmlight"]),
    "grades of another name": (lambda: read_table(FRAME.assign(qid=QID, clicks=Y)), ["relevance='clicks'"]),
    "Admissible verified": (lambda: verify_integrality(Admissible(3)), ["Admissible", "to_ranking_set(attributes, n)"]),
    "score without queries": (lambda: fit().score(X, Y), ["8 queries", "pass qid="]),
    "k of a half": (lambda: fit().rank(X, QID, 2.5), ["2.5", "integer >= 1"]),
    "normalize": (lambda: fit(RegressionRanker(normalize="std")), ["'std'", "'zscore'"]),
    "solver": (lambda: fit(LargeMarginRanker(argmax_solver="gurobi")), ["'gurobi'", "cvxpy:GUROBI"]),
    "not a model": (lambda: load_model(__file__), ["test_slips.py", "not a saved model"]),
    "rated twice": (lambda: Ratings.from_arrays([1, 1], [2, 2], [3, 4]), ["User 1", "item 2", "remove one"]),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_the_message_names_what_was_received_and_a_cure(slip):
    call, words = SLIPS[slip]
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert [word for word in words if word not in str(error.value)] == []


def test_cures_of_fit_work():
    queries = Queries.from_arrays(X, Y - 1, qid=QID, unjudged=0)
    np.testing.assert_array_equal(queries.relevance, np.maximum(Y - 1, 0))
    assert BoostedRanker(n_estimators=2).fit(X, Y, qid=QID).n_rounds_ <= 2


@pytest.mark.parametrize("kind", [LargeMarginRanker, LossRanker, PairwiseRanker])
def test_C_alone_sets_the_strength(kind):
    assert fit(kind(C=2.0)).lam_ == pytest.approx(fit(kind(lam=None, C=2.0)).lam_)
    assert fit(LargeMarginRanker(C=2.0)).lam_ == pytest.approx(1 / (2.0 * 8))


def test_a_model_of_ratings_given_to_predict_names_recommend(tmp_path):
    done = called("cofi", "--model", tmp_path / "m", "--reg", "0.7", "--factors", "2", "--max-iter", "2")
    assert done.returncode == 0, done.stderr
    assert f"rankopt recommend {tmp_path / 'm'}" in called("predict", tmp_path / "m", __file__, "--output", "-").stderr
