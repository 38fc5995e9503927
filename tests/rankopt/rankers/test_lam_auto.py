"""λ by cross-validation over whole queries."""

import warnings

import numpy as np
import pytest

from rankopt.data import Queries, load_sample
from rankopt.errors import OptionError
from rankopt.measures import evaluate
from rankopt.optimize.bundle import Bundle
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker
from rankopt.rankers.path import FACTORS, FOLDS, FROM_ZERO, dealt, judged


def drawn(seed=0, queries=9):
    random = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), random.integers(3, 8, queries))
    X = random.normal(size=(qid.size, 3))
    y = np.digitize(X[:, 0] + random.normal(size=qid.size), [-0.5, 0.8]).astype(float)
    return X, y, qid


@pytest.mark.parametrize("ranker", [LargeMarginRanker("nDCG@3"), PairwiseRanker("nDCG@3"), LargeMarginRanker("P@2")])
def test_the_best_on_queries_left_out_is_chosen(ranker):
    X, y, qid = drawn()
    queries = Queries.from_arrays(X, y, qid=qid)
    found, factors = judged(ranker.set_params(lam="auto"), queries, np.ones(len(queries)))
    assert factors == (FROM_ZERO if isinstance(ranker, PairwiseRanker) else FACTORS)
    assert found.shape == (1 + len(factors), len(queries))
    fitted = ranker.fit(queries)
    natural = ranker.set_params(lam="scale").fit(queries).lam_
    means = np.nanmean(found, axis=1)
    best = factors[max(int(np.argmax(means)) - 1, 0)]
    assert ranker.set_params(lam="auto").fit(queries).lam_ == pytest.approx(best * natural, rel=1e-12)
    assert fitted.lam_ > 0


def test_the_first_row_is_the_start_itself():
    X, y, qid = drawn(1)
    queries, w0 = Queries.from_arrays(X, y, qid=qid), np.array([1.0, -2.0, 0.5])
    found, _ = judged(LargeMarginRanker("nDCG@2", w0=w0), queries, np.ones(len(queries)))
    expected = evaluate(queries, queries.features @ w0, ["nDCG@1", "nDCG@2"]).values.mean(axis=0)
    assert found[0] == pytest.approx(expected, nan_ok=True)


def test_folds_are_of_the_content_alone():
    X, y, qid = drawn(2)
    order = np.random.default_rng(3).permutation(qid.size)
    one, other = (Queries.from_arrays(X[p], y[p], qid=qid[p]) for p in (np.arange(qid.size), order))
    folds = [
        dict(zip(q.query_ids, dealt(q, np.ones(len(q)), np.ones(len(q), dtype=bool), FOLDS), strict=True))
        for q in (one, other)
    ]
    assert folds[0] == folds[1]
    assert np.bincount(list(folds[0].values())).tolist() == [5, 4]
    fits = [LargeMarginRanker(lam="auto").fit(queries) for queries in (one, other)]
    assert fits[0].lam_ == fits[1].lam_
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_one_query_leaves_nothing_to_choose_by():
    with pytest.raises(OptionError, match="lam='scale'"):
        LargeMarginRanker(lam="auto").fit(np.eye(3), [0, 1, 2])


def test_an_unknown_strength_is_refused():
    X, y, qid = drawn()
    with pytest.raises(OptionError, match="'scale', 'auto' or None; got 'best'"):
        LargeMarginRanker(lam="best").fit(X, y, qid=qid)


def test_slots_have_a_strength_of_their_own_too():
    X, y, qid = drawn(4)
    assert MatchingRanker(lam="auto").fit(X, y, qid=qid).lam_ > 0


def test_sparse_models_are_scaled_by_the_largest_that_matters():
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(penalty="l1", bound="convex").fit(sample)
    twice = LargeMarginRanker(penalty="l1", bound="convex").fit(sample.replace(features=sample.features * 2.0))
    assert twice.lam_ == pytest.approx(2.0 * ranker.lam_)


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("options", [{"lam": "auto"}, {"w0": "ranksvm"}], ids=["chosen", "a start"])
def test_ctrl_c_before_the_first_step_leaves_nothing_half(options, at, monkeypatch):
    X, y, qid = drawn(queries=20)
    X = X + np.random.default_rng(1).normal(size=X.shape)
    step, calls = Bundle.step, []

    def interrupted(self, state, objective):
        calls.append(None)
        if len(calls) == at:
            raise KeyboardInterrupt
        return step(self, state, objective)

    monkeypatch.setattr(Bundle, "step", interrupted)
    ranker = LargeMarginRanker(**options)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "coef_")


@pytest.mark.study
def test_a_sparse_model_is_not_judged_by_a_start_that_leaves_nothing_out():
    """It chose 10 times the natural strength, which leaves one feature in, since the dense ridge ranks better."""
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(penalty="l1", lam="auto")
    found, factors = judged(ranker, sample, np.ones(len(sample)))
    assert np.isnan(found[0]).all()
    natural = ranker.set_params(lam="scale").fit(sample).lam_
    best = factors[int(np.argmax(np.nanmean(found[1:], axis=1)))]
    assert ranker.set_params(lam="auto").fit(sample).lam_ == pytest.approx(best * natural)


@pytest.mark.parametrize("useful", [0, 1, 2, 3])
def test_queries_with_nothing_to_order_are_in_no_fold(useful):
    X, y, qid = drawn(5, queries=6)
    y = np.where(qid < useful, np.arange(y.size) % 2, 0.0)
    ranker = LargeMarginRanker("nDCG@3", lam="auto")
    if useful < 2:
        with pytest.raises(ValueError, match=r"lam='scale'|something to order|different"):
            ranker.fit(X, y, qid=qid)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert ranker.fit(X, y, qid=qid).lam_ > 0
