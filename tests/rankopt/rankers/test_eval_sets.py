"""What a ranker chooses on, in all forms in which other libraries pass it; PyTerrier itself; a forgotten qid."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import Queries
from rankopt.errors import MissingQueryIdsWarning
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker, RegressionRanker

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
