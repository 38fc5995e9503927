"""Queries that arrive: the optimum and certificate of one fit of all, in whatever order, and fewer steps than anew."""

import contextlib
import pickle

import numpy as np
import pandas as pd
import pytest
from problems.training import made
from sklearn.base import clone

from rankopt.constraints.admissible import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.optimize import METHODS
from rankopt.rankers import LargeMarginRanker, LossRanker, PairwiseRanker, load_model


def arrivals(parts=10, queries=60, seed=0, **options):
    """All queries, and the same in parts that are dealt at random."""
    X, y, qid = made(seed, queries=queries, **options)
    data = Queries.from_arrays(X, y, qid=qid)
    order = np.random.default_rng(seed).permutation(queries)
    return data, [data.select(order[part::parts]) for part in range(parts)]


def streamed(ranker, parts):
    for part in parts:
        ranker.partial_fit(part)
    return ranker


def value(ranker, data):
    """J of all queries at the weights, evaluated afresh."""
    objective = clone(ranker).objective(data)
    return objective.regularizer(ranker.coef_.ravel()) + objective.risk.at(ranker.coef_.ravel()).value


CONVEX = {
    "pairs": lambda **options: PairwiseRanker(**options),
    "orders": lambda **options: LargeMarginRanker("AP", feature_map="pairwise", bound="convex", **options),
    "any sign": lambda **options: LossRanker("ordinal", w0="ridge", **options),
    "l1": lambda **options: PairwiseRanker(penalty="l1", lam=0.01, **options),
    "signs": lambda **options: PairwiseRanker(coef_bounds=[(0, None), (0, None), (0, None), (-0.1, 0)], **options),
    "normalized": lambda **options: PairwiseRanker(normalize="zscore", **options),
}


@pytest.mark.parametrize("make", CONVEX.values(), ids=CONVEX)
def test_ten_arrivals_end_within_the_gap_of_one_fit(make):
    data, parts = arrivals()
    one = make(tol=1e-4).fit(data)
    for some in (parts, parts[::-1]):
        ranker = streamed(make(tol=1e-4), some)
        proved = ranker.certificate_
        assert ranker.n_queries_ == len(data)
        assert (proved.kind, proved.relative_gap <= 1e-4) == ("global", True)
        assert ranker.lam_ == pytest.approx(one.lam_)
        if ranker.normalize != "zscore":
            assert proved.primal == pytest.approx(value(ranker, data), rel=1e-9)
        assert max(proved.bound, one.certificate_.bound) <= min(proved.primal, one.certificate_.primal) + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_join_queries(method):
    data, parts = arrivals(3, queries=20)
    ranker = streamed(PairwiseRanker(method=method), parts)
    one = PairwiseRanker().fit(data).certificate_
    assert ranker.certificate_.relative_gap <= 1e-3
    assert max(ranker.certificate_.bound, one.bound) <= min(ranker.certificate_.primal, one.primal)


def test_a_nonconvex_certificate_holds_for_all_queries():
    data, parts = arrivals()
    ranker, rng = streamed(LargeMarginRanker("nDCG@5", tol=1e-4), parts), np.random.default_rng(0)
    majorant = clone(ranker).objective(data).majorant(ranker.coef_)
    assert ranker.certificate_.primal == pytest.approx(value(ranker, data), rel=1e-9)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(30):
            w = ranker.coef_ + scale * rng.normal(size=ranker.coef_.size)
            assert majorant.upper(w, majorant.risk.at(w)) >= ranker.certificate_.bound


def test_planes_are_kept_so_that_arrivals_take_fewer_steps_than_warm_starts():
    _, parts = arrivals(queries=300, noise=2.0)
    taken = []
    ranker, warm = PairwiseRanker(tol=1e-4), PairwiseRanker(tol=1e-4, warm_start=True)
    for part in parts:
        ranker.partial_fit(part)
        warm.fit(ranker._stream.queries)
        taken.append((ranker.n_iter_, warm.n_iter_))
    steps, anew = np.sum(taken[1:], axis=0)
    assert steps < 0.75 * anew


def test_the_first_call_is_fit_and_rows_in_another_order_give_the_same_bits():
    X, y, qid = made(queries=20)
    assert np.array_equal(PairwiseRanker().partial_fit(X, y, qid=qid).coef_, PairwiseRanker().fit(X, y, qid=qid).coef_)
    rng, found = np.random.default_rng(0), []
    for shuffle in (False, True):
        ranker = PairwiseRanker()
        for own in (qid < 8, qid >= 8):
            rows = rng.permutation(np.flatnonzero(own)) if shuffle else np.flatnonzero(own)
            ranker.partial_fit(X[rows], y[rows], qid=qid[rows])
        found.append(ranker.coef_)
    assert np.array_equal(*found)


def test_weights_of_queries_count_across_calls():
    data, parts = arrivals(3, queries=20)
    weight = {query: 1.0 + query % 3 for query in data.query_ids}
    one, ranker = PairwiseRanker(tol=1e-5).fit(data, query_weight=weight), PairwiseRanker(tol=1e-5)
    for part in parts:
        ranker.partial_fit(part, query_weight={query: weight[query] for query in part.query_ids})
    assert ranker.certificate_.primal == pytest.approx(one.certificate_.primal, rel=2e-5)


def test_constraints_and_attributes_join():
    X, y, qid = made(queries=20)
    site, rules = np.arange(y.size) % 3, Admissible(3).at_most(2, by="site")
    ranker, one = (LargeMarginRanker("nDCG@3", bound="convex", lam=1e-3, constraints=rules) for _ in range(2))
    one.fit(X, y, qid=qid, attributes={"site": site})
    for own in (qid < 8, qid >= 8):
        ranker.partial_fit(X[own], y[own], qid=qid[own], attributes={"site": site[own]})
    assert ranker.certificate_.primal == pytest.approx(one.certificate_.primal, rel=2e-3)


def test_queries_with_nothing_to_order_join_and_change_no_plane():
    X, y, qid = made(queries=20)
    ranker = PairwiseRanker().partial_fit(X, y, qid=qid)
    before = ranker.certificate_.primal
    ranker.partial_fit(X[:8], np.ones(8), qid=["all alike"] * 8)
    assert ranker.n_queries_ == 21
    assert ranker.certificate_.primal <= before * (1 + 1e-3)
    assert ranker.n_iter_ == 1
    with pytest.raises(DataError, match="no order to learn"):
        PairwiseRanker().partial_fit(X[:8], np.ones(8), qid=["all alike"] * 8)


def test_frames_and_sizes_are_passed_as_to_fit():
    X, y, qid = made(queries=20)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(qid=qid)
    ranker, sized = PairwiseRanker(), PairwiseRanker()
    for own in (qid < 8, qid >= 8):
        ranker.partial_fit(frame[own], y[own])
        sized.partial_fit(X[own], y[own], group=np.bincount(qid[own])[qid[own][0] :])
    assert ranker.feature_names_in_.tolist() == [*"abcd"]
    assert np.array_equal(ranker.coef_, sized.coef_)


def test_a_failed_call_leaves_the_ranker_as_it_was():
    X, y, qid = made(queries=20)
    ranker = PairwiseRanker().partial_fit(X, y, qid=qid)
    before = dict(vars(ranker))
    with pytest.raises(DataError, match="0, a query of an earlier call; pass all documents of a query in one call"):
        ranker.partial_fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="3 features"):
        ranker.partial_fit(X[:, :3], y, qid=qid + 100)
    with pytest.raises(OptionError, match="checkpoint=None"):
        clone(ranker).set_params(checkpoint="folder").partial_fit(X, y, qid=qid)
    with pytest.raises(OptionError, match=r"normalize cannot change .* it was 'auto' and is 'zscore'"):
        ranker.set_params(normalize="zscore").partial_fit(X, y, qid=qid + 100)
    ranker.set_params(normalize="auto")
    assert vars(ranker) == before
    ranker.partial_fit(X, y, qid=qid + 100)
    assert ranker.n_queries_ == 40


def test_scales_that_the_first_call_could_not_see_are_warned_of():
    X, y, qid = made(queries=30)
    scales = np.exp(np.random.default_rng(1).normal(size=30))[qid][:, None]
    first, second = qid < 5, qid >= 5
    for features, calls in ((X, contextlib.nullcontext()), (X * scales, pytest.warns(UserWarning, match="'zscore'"))):
        ranker = PairwiseRanker().partial_fit(features[first], y[first], qid=qid[first])
        with calls:
            ranker.partial_fit(features[second], y[second], qid=qid[second])
        assert ranker.normalize_ is None


@pytest.mark.parametrize("how", ["fit", "load", "pickle"])
def test_without_the_earlier_queries_the_weights_are_the_center(how, tmp_path):
    _, (first, second) = arrivals(2, queries=40)
    ranker = PairwiseRanker().fit(first) if how == "fit" else PairwiseRanker().partial_fit(first)
    if how == "load":
        ranker.save(tmp_path / "model")
        ranker = load_model(tmp_path / "model")
    elif how == "pickle":
        assert len(pickle.dumps(ranker)) < first.features.nbytes
        ranker = pickle.loads(pickle.dumps(ranker))
    before = ranker.coef_
    ranker.partial_fit(second)
    assert ranker.n_queries_ == len(second)
    assert np.array_equal(ranker.w0_, before)
    direct = PairwiseRanker(w0=before, lam=ranker.lam_).fit(second)
    assert ranker.certificate_.primal == pytest.approx(direct.certificate_.primal, rel=2e-3)
    ranker.partial_fit(first.select([0, 1, 2]))
    assert np.array_equal(ranker.w0_, before)


def test_fit_forgets_the_queries_of_earlier_calls():
    _, (first, second) = arrivals(2, queries=40)
    ranker = PairwiseRanker().partial_fit(first)
    assert np.array_equal(ranker.fit(second).coef_, PairwiseRanker().fit(second).coef_)
    assert ranker.n_queries_ == len(second)


def test_sizes_join_ids_that_are_numbers_already():
    X, y, qid = made(queries=20)
    first, more = qid < 10, qid >= 10
    sizes = np.unique(qid[first], return_counts=True)[1]
    ranker = PairwiseRanker().partial_fit(X[more], y[more], qid=qid[more]).partial_fit(X[first], y[first], group=sizes)
    assert ranker.n_queries_ == 20


def test_one_query_a_call_needs_no_ids():
    X, y, qid = made(2, queries=8)
    named, alone = PairwiseRanker(), PairwiseRanker()
    for query in dict.fromkeys(qid):
        own = qid == query
        named.partial_fit(X[own], y[own], qid=qid[own])
        alone.partial_fit(X[own], y[own])
    assert alone.n_queries_ == named.n_queries_ == 8
    np.testing.assert_array_equal(alone.coef_, named.coef_)
    own = qid == qid[0]
    with pytest.raises(DataError, match="qid has 3, a query of an earlier call"):
        alone.partial_fit(X[own], y[own], qid=np.full(own.sum(), 3))


def test_missing_values_cannot_change_between_calls():
    X, y, qid = made(queries=20)
    streamed = PairwiseRanker().partial_fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="missing cannot change"):
        streamed.set_params(missing="indicator").partial_fit(X, y, qid=qid + 100)


def test_weights_of_an_earlier_fit_are_projected_to_limits_that_are_set_since():
    X, y, qid = made(queries=20)
    ranker = PairwiseRanker().fit(X, y, qid=qid)
    center = np.minimum(ranker.coef_, 0.1)
    ranker.set_params(coef_bounds=(None, 0.1)).partial_fit(X, y.max() - y, qid=qid + 100)
    np.testing.assert_array_equal(ranker.w0_, center)
