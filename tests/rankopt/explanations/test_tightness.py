"""Tightness: regret and every bound equal their definitions, written out over all orders; tables say what they hold."""

import warnings
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.admissible import SETS
from scipy.sparse import csr_array

from rankopt import Queries
from rankopt.constraints import Admissible
from rankopt.errors import DataError, OptionError
from rankopt.explanations.contributions import deviations_within
from rankopt.losses import ScoreLoss
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import evaluate, parse
from rankopt.rankers import LargeMarginRanker, LossRanker, MatchingRanker, PairwiseRanker, RegressionRanker

D = 3


def drawn(seed, queries=5, largest=6, tied=False):
    """Rows of a few small queries, some of them with nothing to order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, largest + 1, queries)
    features = rng.integers(-1, 2, (sizes.sum(), D)).astype(float) if tied else rng.normal(size=(sizes.sum(), D))
    return features, rng.integers(0, 3, sizes.sum()).astype(float), np.repeat(np.arange(queries), sizes)


def with_weights(ranker, features, grades, qid, seed):
    """The ranker, fitted, with weights that are not where training left them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where training ends does not matter here
        ranker.fit(features, grades, qid=qid)
    ranker.coef_ = np.random.default_rng(seed).integers(-2, 3, D).astype(float)
    return ranker


def written_out(measure, position_weights, grades, scores, allowed=lambda order: True, k=None):
    """Of one query: regrets of the orders that the scores like most, the bounds, and what the worst order loses."""
    n = grades.size
    k = n if k is None else k
    gain = measure.gain(grades, np.array([0, n]))
    a, c = measure.discount(n)[:k], position_weights.weights(n, measure)[:k]
    orders = [np.array(order) for order in permutations(range(n), k) if allowed(order)]
    worth = np.array([a @ gain[order] for order in orders])
    liked = np.array([c @ scores[order] for order in orders])
    best, falling = worth.max(), [order for order in orders if (np.diff(scores[order]) <= 0).all()]
    if k == n:
        regrets = [best - a @ gain[order] for order in falling]
    else:
        regrets = list(best - worth[liked >= liked.max() - 1e-12])
    high = (liked - worth).max() + best
    ideal = worth >= best - 1e-12
    means = np.zeros(n)  # each document's mean weight over the orders that sort by gain
    by_gain = [order for order in orders if (np.diff(gain[order]) <= 0).all()]
    for order in by_gain:
        means[order] += c / len(by_gain)
    bounds = {
        "convex": high - means @ scores,
        "tie-aware": high - liked[ideal].max(),
        "nonconvex": high - liked.max(),
    }
    return regrets, bounds, best - worth.min()


@pytest.mark.every(5)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("measure", "position_weights"), [("nDCG@3", "power(0.5)"), ("P@2", "linear"), ("DCG", "log@2")]
)
@pytest.mark.parametrize("seed", range(4))
def test_regret_and_bounds_are_their_definitions(measure, position_weights, tied, seed):
    features, grades, qid = drawn(seed, tied=tied)
    ranker = with_weights(
        LargeMarginRanker(measure, position_weights=position_weights, max_iter=50), features, grades, qid, seed
    )
    found = ranker.bound_tightness(features, grades, qid=qid)
    measure, position_weights, scores = (
        parse(measure),
        parse_position_weights(position_weights),
        ranker.predict(features),
    )
    rows = iter(range(len(found)))
    for query in range(5):
        own = qid == query
        regrets, bounds, most = written_out(measure, position_weights, grades[own], scores[own])
        if most <= 1e-12:
            assert query not in found.query
            continue
        row = next(rows)
        assert found.query[row] == query
        assert found.documents[row] == own.sum()
        assert found.regret[row] == pytest.approx(max(regrets), abs=1e-12)
        assert found.expected[row] == pytest.approx(np.mean(regrets), abs=1e-12)
        assert found.max_regret[row] == pytest.approx(most, abs=1e-12)
        for name, value in bounds.items():
            assert found.bounds[name][row] == pytest.approx(value, abs=1e-10), name
    for tight, loose in pairwise([found.regret, *(found.bounds[b] for b in ("nonconvex", "tie-aware", "convex"))]):
        assert (tight <= loose + 1e-10).all()
    for bound, values in found.bounds.items():
        told = ScoreLoss(measure, bound, position_weights).bind(grades, qid=qid).at(scores)
        assert_allclose(values, told.value[told.counted], atol=1e-12)
    assert found.trained == "nonconvex"
    assert_array_equal(found.looseness, found.bounds["nonconvex"] - found.regret)


@pytest.mark.every(5)
@pytest.mark.parametrize("name", ["quota", "caps", "overlap", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_under_constraints_regret_is_from_the_best_admissible_ranking(name, seed):
    features, grades, qid = drawn(seed)
    rng, admissible, n = np.random.default_rng(seed), SETS[name], grades.size
    genres = np.empty(n, dtype=object)
    genres[:] = [tuple(rng.choice(4, 2, replace=False)) for _ in range(n)]
    attributes = {"site": rng.integers(0, 3, n), "new": rng.random(n) < 0.5, "genres": genres}
    ranker = with_weights(RegressionRanker(measure="nDCG@3"), features, grades, qid, seed)
    found = ranker.bound_tightness(
        features,
        grades,
        qid=qid,
        attributes=attributes,
        constraints=admissible,
        position_weights="log",
        measure="nDCG@3",
    )
    scores, row = ranker.predict(features), 0
    for query in range(5):
        own = qid == query
        admitted = admissible.for_query({key: attributes[key][own] for key in admissible.attributes}, int(own.sum()))
        regrets, bounds, most = written_out(
            parse("nDCG@3"),
            parse_position_weights("log"),
            grades[own],
            scores[own],
            admitted.is_feasible,
            admitted.positions,
        )
        if most <= 1e-12:
            continue
        assert found.query[row] == query
        assert min(abs(found.regret[row] - np.array(regrets))) <= 1e-10
        assert found.max_regret[row] == pytest.approx(most, abs=1e-9)
        for bound in ("tie-aware", "nonconvex"):
            assert found.bounds[bound][row] == pytest.approx(bounds[bound], abs=1e-7)
        row += 1
    assert row == len(found)
    assert (found.looseness >= -1e-9).all()


def test_means_agree_with_what_score_counts():
    features, grades, qid = drawn(7, queries=30, largest=9, tied=True)
    ranker = with_weights(LargeMarginRanker("nDCG@4", max_iter=20), features, grades, qid, 1)
    found = ranker.bound_tightness(features, grades, qid=qid)
    by_query = evaluate(Queries.from_arrays(features, grades, qid=qid), ranker.predict(features), "nDCG@4")
    values = dict(zip(by_query.query_ids, by_query.values[0], strict=True))
    assert_allclose(1.0 - found.expected, [values[query] for query in found.query], atol=1e-12)
    assert (found.regret >= found.expected).all()
    assert "expected" in found.columns()


def test_growth_is_the_derivative_along_the_scale_of_the_scores():
    features, grades, qid = drawn(3, queries=12, largest=9)
    for bound in ("convex", "nonconvex"):
        ranker = with_weights(LargeMarginRanker("nDCG@4", bound=bound, max_iter=20), features, grades, qid, 2)
        here = ranker.bound_tightness(features, grades, qid=qid)
        coef, step = ranker.coef_, 1e-7
        ends = []
        for sign in (1, -1):
            ranker.coef_ = coef * (1 + sign * step)
            ends.append(ranker.bound_tightness(features, grades, qid=qid).bound)
        assert_allclose(here.growth, (ends[0] - ends[1]) / (2 * step), atol=1e-5)


def test_matchings_are_judged_by_their_benefit():
    rng = np.random.default_rng(0)
    features, slot, qid = rng.normal(size=(36, D)), rng.integers(0, 3, 36), np.repeat(np.arange(9), 4)
    ranker = MatchingRanker(n_positions=2, position_weight=[2.0, 1.0], bound="nonconvex", lam=0.1, max_iter=20)
    ranker.fit(features, slot, qid=qid)
    found = ranker.bound_tightness(features, slot, qid=qid)
    scores, weights = ranker.predict(features), np.array([2.0, 1.0])
    for row, query in enumerate(found.query):
        own = np.flatnonzero(qid == query)
        benefit = (slot[own, None] == [1, 2]) * weights
        orders = list(permutations(range(4), 2))
        worth = np.array([benefit[list(order), [0, 1]].sum() for order in orders])
        liked = np.array([scores[own][list(order), [0, 1]].sum() for order in orders])
        high = (liked - worth).max() + worth.max()
        assert found.regret[row] == pytest.approx(worth.max() - worth[np.argmax(liked)])
        assert found.max_regret[row] == pytest.approx(np.ptp(worth))
        assert found.bounds["nonconvex"][row] == pytest.approx(high - liked.max())
        assert found.bounds["tie-aware"][row] == pytest.approx(high - liked[worth == worth.max()].max())
    with pytest.raises(OptionError, match="do not apply to slots"):
        ranker.bound_tightness(features, slot, qid=qid, position_weights="log")
    with pytest.raises(OptionError, match="slots are matched, not ranked"):
        ranker.sensitivity("site", [1], features, qid=qid)


@dataclass(frozen=True)
class Halfway:
    convex: ClassVar[bool] = False

    def __call__(self, argmax, scores):
        return (argmax.mean_of_best() + argmax.best_then_score(scores)) / 2


def test_the_bound_that_was_trained_has_a_column():
    data = drawn(5)

    def found(**options):
        ranker = with_weights(LargeMarginRanker("nDCG@3", max_iter=20, **options), *data, 3)
        return ranker.bound_tightness(*data[:2], qid=data[2])

    own = found(bound=Halfway())
    assert own.trained == "trained (Halfway)"
    assert_allclose(own.bound, (own.bounds["convex"] + own.bounds["tie-aware"]) / 2)
    assert found(bound="convex", target_ranking="first").trained == "trained (Convex)"
    assert found(bound="convex").trained == "convex"
    features, grades, qid = data
    for other in (RegressionRanker(), PairwiseRanker(), LossRanker("pairwise")):
        found = other.fit(features, grades, qid=qid).bound_tightness(features, grades, qid=qid)
        assert (found.trained, found.own, found.position_weights) == ("nonconvex", False, "power(0.5)")
        assert "trained no bound" in found.finding


def test_tables_print_sort_and_become_frames():
    features, grades, qid = drawn(6, queries=20, largest=9)
    ranker = with_weights(LargeMarginRanker("nDCG@3", max_iter=20), features, grades, qid, 4)
    found = ranker.bound_tightness(features, grades, qid=qid)
    frame = found.to_frame()
    assert list(frame.columns) == [*found.columns()]
    assert_array_equal(frame["regret"], found.regret)
    assert (
        f"{found.regret.mean():.3f} of nDCG@3 are lost, and the mean bound is {found.bound.mean():.3f}" in found.finding
    )
    worst = found.worst(4)
    assert (np.diff(found.regret[worst]) <= 0).all()
    assert found.regret[worst].min() >= np.delete(found.regret, worst).max()
    lines = str(found).splitlines()
    assert lines[1].split()[:3] == ["query", "documents", "regret"]
    assert f"{len(found) - 10} others" in lines
    assert lines[-1].startswith("mean of all")
    ranker.coef_ = np.zeros(D)  # all scores tie: no bound can say anything
    silent = ranker.bound_tightness(features, grades, qid=qid)
    assert silent.is_loose.all()
    assert f"loose on {len(silent)} of {len(silent)} queries" in silent.finding
    assert_allclose(silent.bound, silent.max_regret)


def test_the_advice_on_the_scale_of_scores_brings_the_bound_nearer():
    features, grades, qid = drawn(6, queries=20, largest=9)
    ranker = with_weights(LargeMarginRanker("nDCG@3", max_iter=20), features, grades, qid, 4)
    ranker.coef_ = 0.05 * ranker.coef_
    found = ranker.bound_tightness(features, grades, qid=qid)
    assert "Scores further apart would bring the two nearer: try a smaller lam" in found.finding
    ranker.coef_ = 1.1 * ranker.coef_
    nearer = ranker.bound_tightness(features, grades, qid=qid)
    assert_allclose(nearer.regret, found.regret)
    assert nearer.looseness.mean() < found.looseness.mean()


def test_trees_have_tables_too():
    pytest.importorskip("lightgbm", reason="the extra 'boosting' is not installed")
    from rankopt.rankers import BoostedRanker

    features, grades, qid = drawn(9, queries=30, largest=9)
    ranker = BoostedRanker("nDCG@3", bound="tie-aware").fit(features, grades, qid=qid)
    found = ranker.bound_tightness(features, grades, qid=qid)
    assert (found.trained, found.own, found.lam) == ("tie-aware", True, False)
    told = ScoreLoss("nDCG@3", "tie-aware", ranker.position_weights).bind(grades, qid=qid).at(ranker.predict(features))
    assert_allclose(found.bound, told.value[told.counted], atol=1e-12)
    assert (found.looseness >= -1e-12).all()
    assert "lam" not in found.finding


def test_what_has_no_bound_is_refused():
    features, grades, qid = drawn(0)
    ranker = RegressionRanker(target="grade", measure="AP").fit(features, grades, qid=qid)
    with pytest.raises(OptionError, match="map 'positional' cannot bound the regret of MeanNDCG"):
        ranker.bound_tightness(features, grades, qid=qid, measure="MeanNDCG")
    assert len(ranker.bound_tightness(features, grades, qid=qid)) == len(
        ranker.bound_tightness(features, grades, qid=qid, feature_map="pairwise")
    )
    with pytest.raises(DataError, match="requires y"):
        ranker.bound_tightness(features, qid=qid)
    with pytest.raises(DataError, match="`qid` is missing"):
        ranker.bound_tightness(features, grades)
    with pytest.raises(DataError, match="none has documents that"):
        ranker.bound_tightness(features, np.zeros(grades.size), qid=qid, measure="nDCG@3")
    topic = np.empty(4, dtype=object)
    topic[:] = [("a", "b"), ("a",), ("b",), None]
    ranker.coef_ = np.array([1.0, 0.0, 0.0])
    rows = np.array([[3.0, 0, 0], [2.9, 0, 0], [2.8, 0, 0], [0.1, 0, 0]])  # the first, or the two after it
    with pytest.raises(OptionError, match=r"position_weights power\(0.5\)@1 do not decrease over all"):
        ranker.bound_tightness(
            rows, [2, 1, 0, 0], qid=np.zeros(4), measure="nDCG@2", position_weights="power(0.5)@1",
            constraints=Admissible(2).at_most(1, by="topic"), attributes={"topic": topic},
        )  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
def test_deviations_are_those_within_the_queries(sparse):
    rng = np.random.default_rng(2)
    features = rng.normal(size=(5000, 4)) * (rng.random((5000, 4)) < 0.5)
    sizes = rng.integers(1, 40, 400)
    offsets = np.append(0, np.minimum(np.cumsum(sizes), 5000))
    offsets = np.unique(np.append(offsets, 5000))
    query = np.repeat(range(offsets.size - 1), np.diff(offsets))
    features[:, 3] = query  # constant inside each
    centered = features - np.stack([features[query == q].mean(axis=0) for q in range(offsets.size - 1)])[query]
    found = deviations_within(csr_array(features) if sparse else features, offsets)
    assert_allclose(found[:3], np.sqrt((centered[:, :3] ** 2).mean(axis=0)), rtol=1e-9)
    assert found[3] == 0.0
